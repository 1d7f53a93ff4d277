/**
 * A flood of prepared frames out of one device: a rate or as fast as one core goes, for a bounded time or count.
 * Sends from a worker thread, so that whoever watches keeps its event loop. Must never run without a bound.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

export interface FloodOptions {
  /** Name of the namespace that holds `device`. */
  namespace: string;
  device: string;
  /** Sent in turn, over and over. */
  frames: readonly Uint8Array[];
  /** Absent: as fast as possible. */
  packetsPerSecond?: number;
  /** Ends the flood; at most 10 minutes. */
  seconds: number;
  /** Ends it earlier when so many have been sent. */
  packets?: number;
}

export interface FloodResult {
  readonly packets: number;
  /** First packet to last. */
  readonly seconds: number;
  /** The longest time in between in which nothing was sent: a machine that does other things shows here. */
  readonly longestPauseSeconds: number;
}

/** What the worker gets; the shared cell 0 counts packets sent, cell 1 asks it to stop. */
export interface FloodOrder extends FloodOptions {
  readonly cells: BigInt64Array;
}

export interface Flood {
  /** Packets that the device has taken so far. */
  sent(): number;
  /** Ends the flood early. */
  stop(): Promise<FloodResult>;
  readonly finished: Promise<FloodResult>;
}

const longestSeconds = 600;

export function startFlood(options: FloodOptions): Flood {
  if (!(options.seconds > 0 && options.seconds <= longestSeconds)) {
    throw new RangeError(`seconds: ${options.seconds}; a flood lasts more than 0 and at most ${longestSeconds}`);
  }
  if (options.frames.length === 0) throw new RangeError('a flood needs at least one frame');
  const cells = new BigInt64Array(new SharedArrayBuffer(16));
  const order: FloodOrder = { ...options, cells };
  const worker = new Worker(new URL('./flood-worker.ts', import.meta.url), { workerData: order });
  const finished = (async (): Promise<FloodResult> => {
    const [result] = (await once(worker, 'message')) as [FloodResult];
    await worker.terminate();
    return result;
  })();
  // Whoever only reads `sent` must not be ended by an unhandled rejection; `finished` still rejects for those who ask.
  finished.catch(() => undefined);
  return {
    sent: () => Number(Atomics.load(cells, 0)),
    stop: () => {
      Atomics.store(cells, 1, 1n);
      return finished;
    },
    finished,
  };
}
