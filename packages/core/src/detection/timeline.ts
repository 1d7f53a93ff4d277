/**
 * Owns the course of an attack: its rates by the second for the first ten minutes, then by the minute. Bounded: what
 * nobody takes is thinned from the oldest. Pure.
 */
import type { TimelineEntry } from '@levee/contract/detector.ts';
import { bounded, MOST_RATE } from './bounds.ts';

const finePartMilliseconds = 600_000;
const mostWaiting = 240;

interface Open {
  readonly at: number;
  readonly seconds: 1 | 60;
  packets: number;
  bytes: number;
  readonly vectors: Map<string, { packets: number; bytes: number }>;
}

export class Timeline {
  readonly #startedMs: number;
  #open: Open | undefined;
  #waiting: TimelineEntry[] = [];

  constructor(startedMs: number) {
    this.#startedMs = startedMs;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Traffic of one slot, in the order of time. `inAll`: whether it is part of the whole (`total` is not beside others). */
  add(atMs: number, vector: string, packets: number, bytes: number, inAll: boolean): void {
    const open = this.#at(atMs);
    if (inAll) {
      open.packets += packets;
      open.bytes += bytes;
    }
    const of = open.vectors.get(vector);
    if (of === undefined) open.vectors.set(vector, { packets, bytes });
    else {
      of.packets += packets;
      of.bytes += bytes;
    }
  }

  /** Entries that are complete and were not taken yet; with `all` also the one that is not. */
  take(all: boolean): TimelineEntry[] {
    const taken = this.#waiting;
    this.#waiting = [];
    if (all && this.#open !== undefined) taken.push(entryOf(this.#open));
    return taken;
  }

  #at(atMs: number): Open {
    const seconds = atMs - this.#startedMs < finePartMilliseconds ? 1 : 60;
    const at = Math.floor(atMs / (seconds * 1000)) * seconds * 1000;
    const open = this.#open;
    if (open !== undefined && (atMs < open.at + open.seconds * 1000 || at < open.at)) return open;
    if (open !== undefined) this.#waiting.push(entryOf(open));
    if (this.#waiting.length > mostWaiting) this.#waiting.shift();
    this.#open = { at, seconds, packets: 0, bytes: 0, vectors: new Map() };
    return this.#open;
  }
}

function entryOf({ at, seconds, packets, bytes, vectors }: Open): TimelineEntry {
  const rates = (amount: { packets: number; bytes: number }) => ({
    pps: Math.round(bounded(amount.packets / seconds, MOST_RATE)),
    bps: Math.round(bounded((amount.bytes * 8) / seconds, MOST_RATE)),
  });
  return {
    at_ms: at,
    seconds,
    ...rates({ packets, bytes }),
    vectors: Object.fromEntries([...vectors].map(([vector, amount]) => [vector, rates(amount)])),
  };
}
