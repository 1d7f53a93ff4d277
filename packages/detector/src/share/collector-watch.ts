/**
 * Owns which collectors there are by their words, and whether one of them is away: what it alone saw is not known to be over
 * then. One that says farewell is not waited for; one that does not is, for as long as attacks outlive that nobody is heard.
 */
import type { CollectorStatus } from '../bus/port.ts';

/** They speak once a second. */
const silenceMilliseconds = 2_500;
const waitedForMilliseconds = 15 * 60_000;
const mostCollectors = 1_024;

export class CollectorWatch {
  readonly #collectors = new Map<string, { readonly status: CollectorStatus; readonly heardMs: number }>();

  heard(status: CollectorStatus, nowMs: number): void {
    this.#collectors.delete(status.collector);
    this.#collectors.set(status.collector, { status, heardMs: nowMs });
    if (this.#collectors.size > mostCollectors) this.#forgetOldest();
  }

  left(collector: string): void {
    this.#collectors.delete(collector);
  }

  isAnyAway(nowMs: number): boolean {
    for (const [name, { heardMs }] of this.#collectors) {
      if (nowMs - heardMs > waitedForMilliseconds) this.#collectors.delete(name);
      else if (nowMs - heardMs > silenceMilliseconds) return true;
    }
    return false;
  }

  /** Last words of those that are not away for longer than `milliseconds`. */
  statuses(nowMs: number, milliseconds: number): CollectorStatus[] {
    return [...this.#collectors.values()]
      .filter(({ heardMs }) => nowMs - heardMs <= milliseconds)
      .map(({ status }) => status);
  }

  #forgetOldest(): void {
    this.#collectors.delete(this.#collectors.keys().next().value as string);
  }
}
