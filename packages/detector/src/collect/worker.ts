/**
 * The thread that receives: its sockets, its clock, its messages. Must never be imported; it is the entry of a worker (`collector.ts`).
 *
 * With recvmmsg it never goes back to Node's event loop: it takes what has come, looks at the clock and for messages, and then rests for
 * some milliseconds, so that the next call takes many at once, or until something comes.
 */
import { receiveMessageOnPort, workerData } from 'node:worker_threads';
import { sendFromWorker } from '../bus/local.ts';
import { Collecting } from './collecting.ts';
import { EventSockets } from './event-sockets.ts';
import { readKernelDrops } from './kernel-drops.ts';
import {
  type ListenAddress,
  type OpenSocket,
  RECEIVE_BUFFER_OCTETS,
  type RefusedAddress,
  type TakeDatagram,
} from './receive-port.ts';
import type { FromWorker, ToWorker, WorkerOrder } from './worker-messages.ts';

const order = workerData as WorkerOrder;
const { port, listen } = order;
/** A message is heard after so long at the latest. */
const longestWaitMilliseconds = 20;
const restMilliseconds = 4;
/** So many at once are followed by the next without a rest: a full buffer is not far. */
const manyAtOnce = 512;
const retryMilliseconds = 1_000;

/** By place in `listen`. */
const opened: (OpenSocket | undefined)[] = listen.map(() => undefined);
let refused: RefusedAddress[] = [];
let steadyMs = performance.now();

const send = (message: FromWorker): void => sendFromWorker(port, message);
const collecting = new Collecting({
  collector: order.collector,
  sampleOctets: order.sampleOctets,
  send,
  sockets: () => {
    const open = opened.filter((socket) => socket !== undefined);
    const bytes = Math.min(...open.map((socket) => socket.receiveBufferOctets));
    return {
      receiveBuffer: { bytes: open.length === 0 ? 0 : bytes, wanted: RECEIVE_BUFFER_OCTETS },
      kernelDrops: readKernelDrops(open.map((socket) => socket.inode)),
    };
  },
  unreadable: (sources) =>
    send({ type: 'warning', fields: { sources }, message: 'exporters whose source is no address' }),
});
const take: TakeDatagram = (octets, length, family, a, b, c, d) =>
  collecting.datagram(octets, length, family, a, b, c, d, steadyMs);

/** Tries what is not listened on yet. */
function* attempts(): Generator<[number, ListenAddress]> {
  for (const [index, address] of listen.entries()) if (opened[index] === undefined) yield [index, address];
}

function tell(receive: 'recvmmsg' | 'dgram'): void {
  const open = opened.map((socket) => {
    if (socket === undefined) return undefined;
    const { address, receiveBufferOctets, inode, descriptor } = socket;
    return { address, receiveBufferOctets, inode, descriptor };
  });
  send({ type: 'listening', receive, open, refused });
}

type Batches = import('./batch-sockets.ts').BatchSockets;

async function openBatches(): Promise<Batches | undefined> {
  if (order.receive === 'dgram') return undefined;
  try {
    const { BatchSockets } = await import('./batch-sockets.ts');
    return new BatchSockets();
  } catch (error) {
    send({
      type: 'warning',
      fields: { err: String(error) },
      message: 'receives through node:dgram, as the FFI does not work',
    });
    return undefined;
  }
}

function receiveBatches(sockets: Batches): void {
  let isFirst = true;
  const listenOnAll = (): void => {
    const before = opened.filter((socket) => socket !== undefined).length;
    const failed: RefusedAddress[] = [];
    for (const [index, address] of attempts()) {
      const problem = sockets.listen(address);
      if (problem === undefined) opened[index] = sockets.open.at(-1);
      else failed.push(problem);
    }
    const isNews =
      isFirst || failed.length !== refused.length || opened.filter((socket) => socket !== undefined).length !== before;
    isFirst = false;
    refused = failed;
    if (isNews) tell('recvmmsg');
  };
  listenOnAll();
  let retryAt = performance.now() + retryMilliseconds;
  let heardAt = 0;
  const resting = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    const nowMs = Date.now();
    steadyMs = performance.now();
    if (steadyMs - heardAt >= longestWaitMilliseconds / 2) {
      heardAt = steadyMs;
      for (let heard = receiveMessageOnPort(port); heard !== undefined; heard = receiveMessageOnPort(port)) {
        const message = heard.message as ToWorker;
        if (message.type === 'stop') return;
        collecting.hear(message);
      }
      if (refused.length > 0 && steadyMs >= retryAt) {
        listenOnAll();
        retryAt = steadyMs + retryMilliseconds;
      }
    }
    collecting.tick(nowMs);
    const count = sockets.receive(take);
    if (count === 0) sockets.wait(Math.min(longestWaitMilliseconds, Math.max(1, collecting.slotEndMs - Date.now())));
    else if (count < manyAtOnce) Atomics.wait(resting, 0, 0, restMilliseconds);
  }
}

async function receiveEvents(): Promise<void> {
  const sockets = new EventSockets((octets, length, family, a, b, c, d) => {
    steadyMs = performance.now();
    collecting.tick(Date.now());
    take(octets, length, family, a, b, c, d);
  });
  const listenOnAll = async (): Promise<void> => {
    const failed: RefusedAddress[] = [];
    for (const [index, address] of attempts()) {
      const problem = await sockets.listen(address);
      if (problem === undefined) opened[index] = sockets.open.at(-1);
      else failed.push(problem);
    }
    refused = failed;
    tell('dgram');
  };
  await listenOnAll();
  const timers = [
    setInterval(() => collecting.tick(Date.now()), longestWaitMilliseconds),
    setInterval(() => {
      if (refused.length > 0) void listenOnAll();
    }, retryMilliseconds),
  ];
  port.on('message', (message: ToWorker) => {
    if (message.type !== 'stop') {
      collecting.hear(message);
      return;
    }
    for (const timer of timers) clearInterval(timer);
    sockets.close();
    port.close();
  });
}

const batches = await openBatches();
if (batches === undefined) await receiveEvents();
else {
  receiveBatches(batches);
  port.close();
}
