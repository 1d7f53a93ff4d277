/**
 * Owns when a slot is judged: when every collector that runs has told of it, or a while after the first one did. Slots are
 * judged in order, none twice; what comes later is counted with the next. Never looks into them.
 *
 * Collectors' clocks differ. How long after its end a slot arrives at least, of the last ten to twenty seconds, is taken for the
 * difference, and slots are moved by it, in whole slots: what is late once stays late, what always is has another clock. Where a
 * collector, or we ourselves, stood still, slots come all at once and ever less late: they are of the past, and stay there.
 */
import { SLOT_MILLISECONDS, type SlotReport } from '../bus/port.ts';

/** So long the others are waited for. */
const patienceMilliseconds = 150;
/** A collector that has told nothing for so long does not run. */
const silenceMilliseconds = 2_000;
const generationMilliseconds = 10_000;
/** A difference that is worth to be known to the operator. */
const clocksApartMilliseconds = 2_000;
/** Slots are later than before for so long, and catch up by nothing: the collector's clock was set back. */
const setBackMilliseconds = 1_750;
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
  /** Slots come much later than `least`: since when, and how long after their end. */
  behind: { readonly sinceMs: number; readonly lag: number } | undefined;
  isApart: boolean;
}

export class SlotQueue {
  readonly #collectors = new Map<string, Collector>();
  readonly #waiting = new Map<number, { sinceMs: number; readonly reports: QueuedSlot[] }>();
  /** What came after its slot was judged: counted with the next. */
  readonly #late: QueuedSlot[] = [];
  #judged = Number.NEGATIVE_INFINITY;
  #heardMs = Number.NEGATIVE_INFINITY;
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

  /** The clock here was set by so many slots: all are numbered by it. */
  stepped(slots: number): void {
    const milliseconds = slots * SLOT_MILLISECONDS;
    const moved = (each: QueuedSlot): QueuedSlot => ({ ...each, slot: each.slot + slots });
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const [slot, { sinceMs, reports }] of waiting) {
      this.#waiting.set(slot + slots, { sinceMs: sinceMs + milliseconds, reports: reports.map(moved) });
    }
    this.#late.push(...this.#late.splice(0).map(moved));
    for (const collector of this.#collectors.values()) {
      collector.slot += slots;
      collector.atMs += milliseconds;
      collector.generationMs += milliseconds;
      collector.behind = undefined;
    }
    this.#judged += slots;
    this.#heardMs += milliseconds;
  }

  take(report: SlotReport, nowMs: number): void {
    // Nobody was heard: it is we who did not hear, and what the others told is on its way.
    if (nowMs - this.#heardMs > silenceMilliseconds)
      for (const collector of this.#collectors.values()) collector.atMs = nowMs;
    this.#heardMs = nowMs;
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
    let told = Number.POSITIVE_INFINITY;
    for (const { slot, atMs } of this.#collectors.values()) {
      if (nowMs - atMs <= silenceMilliseconds) told = Math.min(told, slot);
    }
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
        behind: undefined,
        isApart: false,
      };
    }
    // Known as long as there is room: one that was silent for long has the same clock as before.
    this.#collectors.delete(name);
    this.#collectors.set(name, collector);
    if (this.#collectors.size > mostCollectors) {
      this.#collectors.delete(this.#collectors.keys().next().value as string);
    }
    measure(collector, lag, nowMs);
    const least = Math.min(collector.least, collector.leastBefore);
    if (Math.abs(least) < clocksApartMilliseconds) collector.isApart = false;
    else if (!collector.isApart) {
      collector.isApart = true;
      this.#apart(name, least);
    }
    const slot = told + Math.round(least / SLOT_MILLISECONDS);
    collector.atMs = nowMs;
    collector.slot = Math.max(collector.slot, slot);
    return slot;
  }
}

/** `lag`: from the slot's end to its arrival. */
function measure(collector: Collector, lag: number, nowMs: number): void {
  const { behind } = collector;
  if (lag <= Math.min(collector.least, collector.leastBefore) + clocksApartMilliseconds) {
    collector.behind = undefined;
    if (nowMs - collector.generationMs >= generationMilliseconds) {
      collector.leastBefore = collector.least;
      collector.least = lag;
      collector.generationMs = nowMs;
    }
    collector.least = Math.min(collector.least, lag);
  } else if (behind === undefined || lag <= behind.lag - SLOT_MILLISECONDS) {
    collector.behind = { sinceMs: nowMs, lag };
  } else if (nowMs - behind.sinceMs >= setBackMilliseconds) {
    collector.behind = undefined;
    collector.least = lag;
    collector.leastBefore = lag;
  }
}
