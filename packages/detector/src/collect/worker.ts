/**
 * The thread that receives: its sockets, its clock, its messages. Must never be imported; it is the entry of a worker (`collector.ts`).
 *
 * With recvmmsg it never goes back to Node's event loop: it takes what has come, looks at the clock and for messages, and then rests for
 * some milliseconds, so that the next call takes many at once, or until something comes.
 */
import { receiveMessageOnPort, workerData } from 'node:worker_threads';
import { sendFromWorker } from '../bus/local.ts';
import { SLOT_MILLISECONDS } from '../bus/port.ts';
import { ClockSteps } from '../clock-steps.ts';
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
const clock = new ClockSteps({ now: Date.now, steady: () => performance.now() });

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
  collecting.datagram(octets, length, family, a, b, c, d, clock.steadyMs);

/** Tries what is not listened on yet. */
function* attempts(): Generator<[number, ListenAddress]> {
  for (const [index, address] of listen.entries()) if (opened[index] === undefined) yield [index, address];
}

function tell(receive: 'recvmmsg' | 'dgram', isBySource: boolean): void {
  const open = opened.map((socket) => {
    if (socket === undefined) return undefined;
    const { address, receiveBufferOctets, inode, descriptor } = socket;
    return { address, receiveBufferOctets, inode, descriptor };
  });
  send({ type: 'listening', receive, isBySource, open, refused });
}

type Batches = import('./batch-sockets.ts').BatchSockets;

async function openBatches(): Promise<Batches | undefined> {
  if (order.receive === 'dgram') return undefined;
  try {
    const { BatchSockets } = await import('./batch-sockets.ts');
    return new BatchSockets(undefined, order.sharing);
  } catch (error) {
    send({
      type: 'warning',
      fields: { err: String(error) },
      message: 'receives through node:dgram, as the FFI does not work',
    });
    return undefined;
  }
}

/** Reads the clocks; answers for how long the thread, or all of us, stood still. */
function lookAtClock(): number {
  const { steadyMs } = clock;
  const step = clock.look();
  if (step !== 0) {
    collecting.stepped(step);
    send({ type: 'warning', fields: { milliseconds: Math.round(step) }, message: 'the clock of this machine was set' });
  }
  return clock.steadyMs - steadyMs;
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
    if (isNews) tell('recvmmsg', sockets.isBySource);
  };
  listenOnAll();
  collecting.tick(clock.nowMs);
  let retryAt = performance.now() + retryMilliseconds;
  let heardAt = 0;
  const resting = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    const stoodMilliseconds = lookAtClock();
    const { nowMs, steadyMs } = clock;
    // The kernel says when each datagram came, but throws away what its buffers do not hold.
    if (stoodMilliseconds > SLOT_MILLISECONDS) collecting.stood(nowMs);
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
    const count = receiveSlots(sockets, nowMs);
    if (count === 0) sockets.wait(Math.min(longestWaitMilliseconds, Math.max(1, collecting.slotEndMs - Date.now())));
    else if (count < manyAtOnce) Atomics.wait(resting, 0, 0, restMilliseconds);
  }
}

/** Slot by slot: what waited falls into those in which it came. Answers how many datagrams there were. */
function receiveSlots(sockets: Batches, nowMs: number): number {
  let count = 0;
  // Set back by less than is taken for a step.
  if (nowMs < collecting.slotEndMs - SLOT_MILLISECONDS) collecting.tick(nowMs);
  for (;;) {
    const endMs = collecting.slotEndMs;
    count += sockets.receive(take, endMs, nowMs);
    const readToMs = Math.max(sockets.readTo(nowMs), endMs - SLOT_MILLISECONDS);
    collecting.tick(readToMs);
    if (readToMs < endMs) return count;
  }
}

/**
 * Node tells of no datagram when it came. After the thread stood still, those that waited are read but not counted: until Node has handed
 * over fewer in one round of its loop than it takes at once.
 */
const mostInRound = 32;
/** What is handed over so long after it stood still did not wait. */
const drainMilliseconds = 2_000;

async function receiveEvents(): Promise<void> {
  let inRound = 0;
  let drainingSince: number | undefined;
  const endRound = (): void => {
    const { nowMs, steadyMs } = clock;
    if (drainingSince !== undefined) collecting.stood(nowMs);
    if (inRound < mostInRound || (drainingSince ?? 0) + drainMilliseconds < steadyMs) {
      drainingSince = undefined;
      collecting.countsNothing = false;
    }
    inRound = 0;
    if (drainingSince !== undefined) setImmediate(endRound);
  };
  const tick = (): void => {
    if (lookAtClock() > SLOT_MILLISECONDS) {
      collecting.countsNothing = true;
      collecting.stood(clock.nowMs);
      if (drainingSince === undefined) setImmediate(endRound);
      drainingSince = clock.steadyMs;
      inRound = 0;
    }
    collecting.tick(clock.nowMs);
  };
  const sockets = new EventSockets((octets, length, family, a, b, c, d) => {
    tick();
    inRound++;
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
    tell('dgram', false);
  };
  await listenOnAll();
  const timers = [
    setInterval(tick, longestWaitMilliseconds),
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
