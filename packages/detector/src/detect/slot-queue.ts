/**
 * Owns when a slot is judged: when every collector that runs has told of it, or a while after the first one did. Slots are
 * judged in order, none twice; what comes later is counted with the next. Never looks into them.
 *
 * Collectors' clocks differ. How long after its end a slot arrives at least, of the last ten to twenty seconds, is taken for the
 * difference, and slots are moved by it, in whole slots: what is late once stays late, what always is has another clock.
 */
import { SLOT_MILLISECONDS, type SlotReport } from '../bus/port.ts';

/** So long the others are waited for. */
const patienceMilliseconds = 150;
/** A collector that has told nothing for so long does not run. */
const silenceMilliseconds = 2_000;
const generationMilliseconds = 10_000;
/** A difference that is worth to be known to the operator. */
const clocksApartMilliseconds = 2_000;
/** Slots in a row that are later than any difference of clocks explains: the collector's clock was set back. */
const slotsBack = 2_000 / SLOT_MILLISECONDS;
/** A slot so much older than the last one judged: the clock here was set back. */
const slotsSetBack = 10_000 / SLOT_MILLISECONDS;
const mostCollectors = 1_024;

export interface QueuedSlot {
  readonly slot: number;
  readonly report: SlotReport;
}

interface Collector {
  slot: number;
  atMs: number;
  /** The least milliseconds from the end of a slot to its arrival, in this generation and in the one before. */
  least: number;
  leastBefore: number;
  generationMs: number;
  /** Slots in a row that came much later than `least`. */
  behind: number;
  isApart: boolean;
}

export class SlotQueue {
  readonly #collectors = new Map<string, Collector>();
  readonly #waiting = new Map<number, { sinceMs: number; readonly reports: QueuedSlot[] }>();
  /** What came after its slot was judged: counted with the next. */
  readonly #late: QueuedSlot[] = [];
  #ahead = 0;
  #judged = Number.NEGATIVE_INFINITY;
  readonly #judge: (slot: number, reports: readonly QueuedSlot[]) => void;
  readonly #apart: (collector: string, milliseconds: number) => void;

  /** `judge` is called with the slot's number since 1970. `apart` is told once of a collector whose clock is wrong. */
  constructor(
    judge: (slot: number, reports: readonly QueuedSlot[]) => void,
    apart: (collector: string, milliseconds: number) => void,
  ) {
    this.#judge = judge;
    this.#apart = apart;
  }

  take(report: SlotReport, nowMs: number): void {
    const slot = this.#slotOf(report, nowMs);
    if (slot <= this.#judged) {
      // It makes no slot due: each would be judged a little too early, and the next be late again.
      this.#late.push({ slot, report });
      return;
    }
    const waiting = this.#waiting.get(slot);
    if (waiting === undefined) this.#waiting.set(slot, { sinceMs: nowMs, reports: [{ slot, report }] });
    else waiting.reports.push({ slot, report });
  }

  /** Judges what is due; returns in how many milliseconds to ask again, undefined: when something arrives. */
  run(nowMs: number): number | undefined {
    for (const [name, { atMs }] of this.#collectors) {
      if (nowMs - atMs > silenceMilliseconds) this.#collectors.delete(name);
    }
    let told = Number.POSITIVE_INFINITY;
    for (const { slot } of this.#collectors.values()) told = Math.min(told, slot);
    const slots = [...this.#waiting.keys()].sort((a, b) => a - b);
    // A slot that is due has those before it judged as well.
    const last = slots.findLastIndex(
      (slot) => slot <= told || nowMs - (this.#waiting.get(slot)?.sinceMs ?? nowMs) >= patienceMilliseconds,
    );
    for (const slot of slots.slice(0, last + 1)) {
      const { reports } = this.#waiting.get(slot) as { reports: QueuedSlot[] };
      this.#waiting.delete(slot);
      this.#judged = slot;
      this.#judge(slot, [...this.#late.splice(0), ...reports]);
    }
    const next = slots.slice(last + 1).map((slot) => this.#waiting.get(slot)?.sinceMs ?? nowMs);
    return next.length === 0 ? undefined : Math.max(1, Math.min(...next) + patienceMilliseconds - nowMs);
  }

  /** Its number by the clock here. */
  #slotOf({ collector: name, slotMs }: SlotReport, nowMs: number): number {
    const told = Math.floor(slotMs / SLOT_MILLISECONDS);
    const lag = nowMs - slotMs - SLOT_MILLISECONDS;
    let collector = this.#collectors.get(name);
    if (collector === undefined) {
      collector = {
        slot: told,
        atMs: nowMs,
        least: lag,
        leastBefore: lag,
        generationMs: nowMs,
        behind: 0,
        isApart: false,
      };
      if (this.#collectors.size < mostCollectors) this.#collectors.set(name, collector);
    }
    if (nowMs - collector.generationMs >= generationMilliseconds) {
      collector.leastBefore = collector.least;
      collector.least = lag;
      collector.generationMs = nowMs;
    }
    const isBehind = lag > Math.min(collector.least, collector.leastBefore) + clocksApartMilliseconds;
    collector.behind = isBehind ? collector.behind + 1 : 0;
    if (collector.behind >= slotsBack) {
      collector.least = lag;
      collector.leastBefore = lag;
    }
    collector.least = Math.min(collector.least, lag);
    const least = Math.min(collector.least, collector.leastBefore);
    if (Math.abs(least) < clocksApartMilliseconds) collector.isApart = false;
    else if (!collector.isApart) {
      collector.isApart = true;
      this.#apart(name, least);
    }
    const byClock = told + Math.round(least / SLOT_MILLISECONDS);
    // Slots are numbered on where the clock was set back: nothing may wait until it is as late again.
    if (byClock + this.#ahead < this.#judged - slotsSetBack) this.#ahead = this.#judged + 1 - byClock;
    const slot = byClock + this.#ahead;
    collector.atMs = nowMs;
    collector.slot = Math.max(collector.slot, slot);
    return slot;
  }
}
