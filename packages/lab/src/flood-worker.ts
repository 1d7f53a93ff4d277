/**
 * The sending side of a flood: a thread that lives in the sender's namespace. Must never be imported; it is the
 * entry of a worker (see flood.ts).
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { FloodOrder, FloodResult } from './flood.ts';
import { enterNamespace } from './namespace.ts';
import { PacketSocket, PreparedFrames } from './packet-socket.ts';

const batch = 64;
const order = workerData as FloodOrder;

enterNamespace(order.namespace);
const socket = new PacketSocket({ device: order.device });
const frames = new PreparedFrames(order.frames);
const sleeping = new Int32Array(new SharedArrayBuffer(4));

const start = performance.now();
const end = start + order.seconds * 1000;
const most = order.packets ?? Number.POSITIVE_INFINITY;
let sent = 0;
let position = 0;
let last = start;
let longestPause = 0;
while (sent < most && Atomics.load(order.cells, 1) === 0n) {
  const now = performance.now();
  if (now >= end) break;
  let due = most - sent;
  if (order.packetsPerSecond !== undefined) {
    due = Math.min(due, Math.floor(((now - start) / 1000) * order.packetsPerSecond) + 1 - sent);
    if (due <= 0) {
      Atomics.wait(sleeping, 0, 0, Math.min(1, 1000 / order.packetsPerSecond));
      continue;
    }
  }
  const count = Math.min(due, batch, frames.count - position);
  const taken = socket.send(frames, position, count);
  if (taken === 0) {
    Atomics.wait(sleeping, 0, 0, 0.1);
    continue;
  }
  longestPause = Math.max(longestPause, now - last);
  last = now;
  position = (position + taken) % frames.count;
  sent += taken;
  Atomics.store(order.cells, 0, BigInt(sent));
}
socket.close();
const result: FloodResult = { packets: sent, seconds: (last - start) / 1000, longestPauseSeconds: longestPause / 1000 };
parentPort?.postMessage(result);
