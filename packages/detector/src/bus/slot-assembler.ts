/**
 * Puts together what comes of one slot of one collector in parts, so that it is judged once and whole. Owns how long parts are waited
 * for; knows no connection. Bounded by collectors and by slots of each.
 */

import type { SlotReport } from './port.ts';
import type { SlotEnd, SlotPart } from './slot-codec.ts';

/** Parts come before the end of their slot, unless the way between changed. */
const patienceMilliseconds = 100;
/** Without an end. */
const endlessMilliseconds = 1_000;
const mostSlots = 32_768;

interface Waiting {
  readonly sinceMs: number;
  readonly parts: Map<number, SlotReport[]>;
  end: SlotEnd | undefined;
  endMs: number;
}

export class SlotAssembler {
  readonly #waiting = new Map<string, Waiting>();
  readonly #isOurs: (partition: number) => boolean;
  readonly #deliver: (report: SlotReport) => void;

  constructor(isOurs: (partition: number) => boolean, deliver: (report: SlotReport) => void) {
    this.#isOurs = isOurs;
    this.#deliver = deliver;
  }

  part({ partition, report }: SlotPart, nowMs: number): void {
    const waiting = this.#at(report, nowMs);
    const others = waiting.parts.get(partition);
    if (others === undefined) waiting.parts.set(partition, [report]);
    else others.push(report);
    this.#finishWhole(report, waiting);
  }

  end(end: SlotEnd, nowMs: number): void {
    const waiting = this.#at(end, nowMs);
    waiting.end = end;
    waiting.endMs = nowMs;
    this.#finishWhole(end, waiting);
  }

  /** Hands over what was waited for long enough; returns in how many milliseconds to ask again, undefined: when something comes. */
  run(nowMs: number): number | undefined {
    let next: number | undefined;
    for (const [key, waiting] of this.#waiting) {
      const dueMs =
        waiting.end === undefined ? waiting.sinceMs + endlessMilliseconds : waiting.endMs + patienceMilliseconds;
      if (dueMs <= nowMs) this.#finish(key, waiting);
      else next = Math.min(next ?? Number.POSITIVE_INFINITY, dueMs - nowMs);
    }
    return next;
  }

  #at(of: Pick<SlotReport, 'collector' | 'sequence'>, nowMs: number): Waiting {
    const key = keyOf(of);
    let waiting = this.#waiting.get(key);
    if (waiting === undefined) {
      for (const [oldest, other] of this.#waiting) {
        if (this.#waiting.size < mostSlots) break;
        this.#finish(oldest, other);
      }
      waiting = { sinceMs: nowMs, parts: new Map(), end: undefined, endMs: nowMs };
      this.#waiting.set(key, waiting);
    }
    return waiting;
  }

  #finishWhole(of: Pick<SlotReport, 'collector' | 'sequence'>, waiting: Waiting): void {
    const { end, parts } = waiting;
    const isWhole = end?.partitions.every((partition) => parts.has(partition) || !this.#isOurs(partition));
    if (isWhole === true) this.#finish(keyOf(of), waiting);
  }

  #finish(key: string, { parts, end }: Waiting): void {
    this.#waiting.delete(key);
    const ours = [...parts].flatMap(([partition, reports]) => (this.#isOurs(partition) ? reports : []));
    const [first] = ours;
    if (first !== undefined) this.#deliver(ours.length === 1 ? first : together(first, ours));
    else if (end !== undefined) this.#deliver(emptyOf(end));
  }
}

function keyOf({ collector, sequence }: Pick<SlotReport, 'collector' | 'sequence'>): string {
  return `${sequence} ${collector}`;
}

function emptyOf({ partitions: _, ...head }: SlotEnd): SlotReport {
  return { ...head, ...columnsOf(0), type: 'slot', profiles: [] };
}

function columnsOf(count: number) {
  return {
    count,
    families: new Uint8Array(count),
    addresses: new Uint32Array(count * 4),
    vectors: new Uint8Array(count),
    packets: new Float64Array(count),
    bytes: new Float64Array(count),
    samples: new Float64Array(count),
  };
}

function together(first: SlotReport, reports: readonly SlotReport[]): SlotReport {
  const columns = columnsOf(reports.reduce((sum, { count }) => sum + count, 0));
  let at = 0;
  for (const report of reports) {
    columns.families.set(report.families, at);
    columns.addresses.set(report.addresses, at * 4);
    columns.vectors.set(report.vectors, at);
    columns.packets.set(report.packets, at);
    columns.bytes.set(report.bytes, at);
    columns.samples.set(report.samples, at);
    at += report.count;
  }
  return {
    ...first,
    ...columns,
    profiles: reports.flatMap(({ profiles }) => profiles),
  };
}
