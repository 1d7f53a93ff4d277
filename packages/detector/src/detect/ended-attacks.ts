/**
 * Owns what is remembered of attacks that have ended: for the hold of what comes back, so as not to take them over again, and to
 * tell their end again where it was lost. Bounded.
 */
import { type EndedAttack, holdFor } from '@levee/core/detection/hold.ts';
import type { Attack } from './attack.ts';

const most = 4_096;
/** Settings that are older than the answer to a report are so for less. */
const toldAgainMilliseconds = 30_000;

interface Told {
  readonly endedMs: number;
  toldMs: number;
}

export class EndedAttacks {
  readonly #byDestination = new Map<string, EndedAttack>();
  readonly #byId = new Map<string, Told>();

  add({ id, dst, holdMilliseconds }: Attack, endedMs: number, nowMs: number): void {
    this.#byDestination.delete(dst);
    this.#byDestination.set(dst, { endedMs, holdMilliseconds });
    this.#byId.set(id, { endedMs, toldMs: nowMs });
    for (const kept of [this.#byDestination, this.#byId]) {
      if (kept.size > most) kept.delete(kept.keys().next().value as string);
    }
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** When it ended, of one whose end is to be told again: it was long ago, and it goes on elsewhere. */
  toTellAgain(id: string, nowMs: number): number | undefined {
    const told = this.#byId.get(id);
    if (told === undefined || nowMs - told.toldMs < toldAgainMilliseconds) return undefined;
    told.toldMs = nowMs;
    return told.endedMs;
  }

  /** Of what starts on this destination. */
  holdOf(dst: string, policyMilliseconds: number, startedMs: number): number {
    return holdFor(policyMilliseconds, this.#byDestination.get(dst), startedMs);
  }
}
