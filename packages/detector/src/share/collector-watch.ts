/**
 * Owns which collectors there are by their words, and whether one of them is away: what it alone saw is not known to be over
 * then. One that says farewell is not waited for; one that does not is, for as long as attacks outlive that nobody is heard.
 */
import type { CollectorStatus } from '../bus/port.ts';

/** They speak once a second. */
const silenceMilliseconds = 2_500;
const waitedForMilliseconds = 15 * 60_000;
const mostCollectors = 1_024;
/** Of two by one name each is heard once a second: this long after that they are told of. */
const doubledMilliseconds = 10_000;

interface Heard {
  readonly status: CollectorStatus;
  readonly heardMs: number;
  readonly formerRun: string | undefined;
  readonly doubledMs: number | undefined;
}

export class CollectorWatch {
  readonly #collectors = new Map<string, Heard>();

  heard(status: CollectorStatus, nowMs: number): void {
    const { collector, run } = status;
    const before = this.#collectors.get(collector);
    this.#collectors.delete(collector);
    const isOtherRun = before !== undefined && before.status.run !== run;
    const formerRun = isOtherRun ? before.status.run : before?.formerRun;
    // One that began again is heard no more by the run that it had.
    const isBack = isOtherRun && run !== undefined && run === before.formerRun;
    const doubledMs = isBack ? nowMs : before?.doubledMs;
    this.#collectors.set(collector, { status, heardMs: nowMs, formerRun, doubledMs });
    if (this.#collectors.size > mostCollectors) this.#forgetOldest();
  }

  /** Names by which two speak. */
  doubled(nowMs: number): string[] {
    return [...this.#collectors].flatMap(([name, { doubledMs }]) =>
      doubledMs !== undefined && nowMs - doubledMs <= doubledMilliseconds ? [name] : [],
    );
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
