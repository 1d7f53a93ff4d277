/**
 * Owns which destinations collectors are to look at closely: attacked ones, and those that came near an attack in the last
 * ten seconds. Tells them when the set is another, at most once a slot.
 */
import { SLOT_MILLISECONDS } from '../bus/port.ts';

/** What collectors take of all detectors together. */
export const MOST_HOT = 4_096;
const lingeringSlots = 10_000 / SLOT_MILLISECONDS;

export class HotDestinations {
  /** Destination → the slot up to which it stays. */
  readonly #until = new Map<string, number>();
  #told = '';
  readonly #send: (destinations: readonly string[]) => void;

  constructor(send: (destinations: readonly string[]) => void) {
    this.#send = send;
  }

  /** `attacked` come first where not all fit. */
  judge(slot: number, attacked: Iterable<string>, warm: Iterable<string>): void {
    for (const [dst, until] of this.#until) if (until <= slot) this.#until.delete(dst);
    for (const dst of warm) {
      if (this.#until.size < MOST_HOT || this.#until.has(dst)) this.#until.set(dst, slot + lingeringSlots);
    }
    const hot = new Set(attacked);
    for (const dst of this.#until.keys()) {
      if (hot.size >= MOST_HOT) break;
      hot.add(dst);
    }
    const destinations = [...hot].slice(0, MOST_HOT).sort();
    const text = destinations.join();
    if (text === this.#told) return;
    this.#told = text;
    this.#send(destinations);
  }

  /** A collector that begins knows of none. */
  repeat(): void {
    this.#told = '\n';
  }
}
