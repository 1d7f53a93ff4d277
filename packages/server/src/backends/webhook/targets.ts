/**
 * How much is sent to one target at once and in a second, by all webhooks together: whoever lets many webhooks lead to
 * one server must not make this service hit it. A target is a host as addresses name it, or an address that hosts resolve
 * to. An account has a share of it, so that one whose requests hang does not take all of a server that others use too. In
 * memory of the one replica that sends.
 */

export const OF_A_TARGET = 32;
export const OF_A_TARGET_AND_ACCOUNT = 8;
/** Also how many may be made at once after a while without any. */
export const PER_SECOND = 100;
const STEP_MILLISECONDS = 1_000 / PER_SECOND;

interface Target {
  underWay: number;
  readonly ofAccounts: Map<string, number>;
  /** Generic cell rate algorithm, as core's account/request-rate.ts: when all could be made again. */
  fullAt: number;
}

export class Targets {
  readonly #targets = new Map<string, Target>();

  get size(): number {
    return this.#targets.size;
  }

  /** How many more attempts of the account may begin now. `now`: milliseconds since 1970, here and below. */
  room(name: string, account: string, now: number): number {
    const target = this.#targets.get(name);
    if (target === undefined) return OF_A_TARGET_AND_ACCOUNT;
    const ofAccount = OF_A_TARGET_AND_ACCOUNT - (target.ofAccounts.get(account) ?? 0);
    const ofRate = Math.floor(PER_SECOND - Math.max(0, target.fullAt - now) / STEP_MILLISECONDS);
    return Math.max(0, Math.min(ofAccount, OF_A_TARGET - target.underWay, ofRate));
  }

  /** When the rate allows another one, whatever is under way. */
  notBefore(name: string): number {
    const target = this.#targets.get(name);
    return target === undefined ? 0 : target.fullAt - (PER_SECOND - 1) * STEP_MILLISECONDS;
  }

  /** What it gives is called when the attempt is over. Undefined: one of them has no room, and none is entered. */
  enter(names: readonly string[], account: string, now: number): (() => void) | undefined {
    if (names.some((name) => this.room(name, account, now) === 0)) return undefined;
    for (const name of names) {
      const target = this.#targets.get(name) ?? { underWay: 0, ofAccounts: new Map(), fullAt: 0 };
      this.#targets.set(name, target);
      target.underWay++;
      target.ofAccounts.set(account, (target.ofAccounts.get(account) ?? 0) + 1);
      target.fullAt = Math.max(target.fullAt, now) + STEP_MILLISECONDS;
    }
    return () => {
      for (const name of names) this.#leave(name, account);
    };
  }

  /** Those that nothing is known of any more. */
  forget(now: number): void {
    for (const [name, { underWay, fullAt }] of this.#targets) {
      if (underWay === 0 && fullAt <= now) this.#targets.delete(name);
    }
  }

  #leave(name: string, account: string): void {
    const target = this.#targets.get(name);
    if (target === undefined) return;
    target.underWay--;
    const left = (target.ofAccounts.get(account) ?? 1) - 1;
    if (left > 0) target.ofAccounts.set(account, left);
    else target.ofAccounts.delete(account);
  }
}
