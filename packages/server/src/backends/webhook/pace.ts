/**
 * How many attempts a webhook may have under way, and when: a target that fails again and again is tried by one delivery
 * at a time, and less and less often, whatever waits for it. In memory of the one replica that sends.
 */

/** Of one webhook. */
export const ATTEMPTS_AT_ONCE = 4;
/** After so many failures without a delivery in between the target is thought to be away. */
const AWAY_AFTER = 5;
const FIRST_PAUSE_MILLISECONDS = 5_000;
const LONGEST_PAUSE_MILLISECONDS = 600_000;

interface Standing {
  underWay: number;
  failures: number;
  notBefore: number;
}

export class Pace {
  readonly #standings = new Map<string, Standing>();

  /** It was failing when it was last tried. */
  distrust(webhook: string): void {
    this.#of(webhook).failures = AWAY_AFTER;
  }

  /** It leads elsewhere now, or was enabled: what failed says nothing any more. */
  trust(webhook: string): void {
    const standing = this.#standings.get(webhook);
    if (standing === undefined) return;
    standing.failures = 0;
    standing.notBefore = 0;
  }

  /** Its owner wants to see what becomes of an attempt: one may be made at once, and nothing is forgiven. */
  probe(webhook: string): void {
    const standing = this.#standings.get(webhook);
    if (standing !== undefined) standing.notBefore = 0;
  }

  /** Not its own fault. `until`: milliseconds since 1970. */
  hold(webhook: string, until: number): void {
    const standing = this.#of(webhook);
    standing.notBefore = Math.max(standing.notBefore, until);
  }

  /** Those of which failures are kept and nothing is under way; of others without anything under way nothing is kept. */
  failed(): readonly string[] {
    const failed: string[] = [];
    for (const [webhook, { underWay, failures }] of this.#standings) {
      if (underWay > 0) continue;
      if (failures > 0) failed.push(webhook);
      else this.#standings.delete(webhook);
    }
    return failed;
  }

  /** It is gone, or gets nothing. */
  forget(webhook: string): void {
    this.#standings.delete(webhook);
  }

  slots(webhook: string): number {
    const { underWay, failures } = this.#standings.get(webhook) ?? none;
    return Math.max(0, (failures >= AWAY_AFTER ? 1 : ATTEMPTS_AT_ONCE) - underWay);
  }

  /** Milliseconds since 1970. */
  notBefore(webhook: string): number {
    return this.#standings.get(webhook)?.notBefore ?? 0;
  }

  began(webhook: string): void {
    this.#of(webhook).underWay++;
  }

  /** `delivered` undefined: nothing was tried. `random`: from 0 to 1. */
  ended(webhook: string, delivered: boolean | undefined, now: number, random: number): void {
    const standing = this.#of(webhook);
    standing.underWay--;
    if (delivered === undefined) return;
    if (delivered) {
      standing.failures = 0;
      standing.notBefore = 0;
      if (standing.underWay === 0) this.#standings.delete(webhook);
      return;
    }
    standing.failures++;
    if (standing.failures < AWAY_AFTER) return;
    const doubled = FIRST_PAUSE_MILLISECONDS * 2 ** Math.min(standing.failures - AWAY_AFTER, 16);
    standing.notBefore = now + Math.min(doubled, LONGEST_PAUSE_MILLISECONDS) * (0.8 + 0.4 * random);
  }

  #of(webhook: string): Standing {
    const standing = this.#standings.get(webhook) ?? { ...none };
    this.#standings.set(webhook, standing);
    return standing;
  }
}

const none: Readonly<Standing> = { underWay: 0, failures: 0, notBefore: 0 };
