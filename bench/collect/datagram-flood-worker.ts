/** The thread that sends (datagram-flood.ts). Must never be imported. */
import { parentPort, workerData } from 'node:worker_threads';
import { addressOf, checked, system } from '@levee/lab/system-calls.ts';
import type { DatagramFlood } from './datagram-flood.ts';

const { datagrams, port, perSecond, seconds } = workerData as DatagramFlood;
const batch = 32;
const AF_INET = 2;
const SOCK_DGRAM = 2;

const block = (octets: number): Uint8Array => new Uint8Array(new ArrayBuffer(octets));
const name = block(16);
const nameView = new DataView(name.buffer);
nameView.setUint16(0, AF_INET, true);
nameView.setUint16(2, port, false);
nameView.setUint32(4, 0x7f000001, false);
const payload = block(datagrams.reduce((sum, datagram) => sum + datagram.length, 0));
const vectors = block(datagrams.length * 16);
const messages = block(datagrams.length * 64);
let at = 0;
for (const [index, datagram] of datagrams.entries()) {
  payload.set(datagram, at);
  const vector = new DataView(vectors.buffer, index * 16);
  vector.setBigUint64(0, addressOf(payload) + BigInt(at), true);
  vector.setBigUint64(8, BigInt(datagram.length), true);
  const message = new DataView(messages.buffer, index * 64);
  message.setBigUint64(0, addressOf(name), true);
  message.setUint32(8, name.length, true);
  message.setBigUint64(16, addressOf(vectors) + BigInt(index * 16), true);
  message.setBigUint64(24, 1n, true);
  at += datagram.length;
}

const socket = checked('socket', system.socket(AF_INET, SOCK_DGRAM, 0));
const resting = new Int32Array(new SharedArrayBuffer(4));
const start = performance.now();
let sent = 0;
for (let now = start; now < start + seconds * 1000; now = performance.now()) {
  const due = Math.floor(((now - start) / 1000) * perSecond) - sent;
  if (due <= 0) {
    Atomics.wait(resting, 0, 0, 0.5);
    continue;
  }
  const from = sent % datagrams.length;
  const count = Math.min(due, batch, datagrams.length - from);
  sent += checked('sendmmsg', system.sendmmsg(socket, addressOf(messages) + BigInt(from * 64), count, 0));
}
const took = (performance.now() - start) / 1000;
system.close(socket);
parentPort?.postMessage({ sent, seconds: took });
