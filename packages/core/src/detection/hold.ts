/**
 * Owns how long an attack must be quiet before it has ended, and what makes that longer. Pure.
 *
 * An attack that has ended stays so, and what comes back is another one, with a name of its own; but the hold of one that comes
 * back soon is twice that of the one before, so that pulses become one attack after a few of them (decision 0133).
 */

/** Of the hold that the policy says. */
const mostTimes = 16;
const longestMilliseconds = 3_600_000;
/** An attack that comes back within so many of its holds, at least so long, has come back soon. */
const soonTimes = 10;
const soonMilliseconds = 300_000;

/** Traffic that stays between half the threshold and the threshold so many holds long is what is usual by now. */
export const LINGERING_TIMES = 20;

export interface EndedAttack {
  readonly endedMs: number;
  readonly holdMilliseconds: number;
}

/** `before`: the last attack on the destination. */
export function holdFor(policyMilliseconds: number, before: EndedAttack | undefined, startedMs: number): number {
  if (before === undefined || !isSoon(before, startedMs)) return policyMilliseconds;
  const longest = Math.max(policyMilliseconds, Math.min(mostTimes * policyMilliseconds, longestMilliseconds));
  return Math.min(Math.max(2 * before.holdMilliseconds, policyMilliseconds), longest);
}

/** Whether what starts then makes the hold of the next attack longer. */
export function isSoon(before: EndedAttack, startedMs: number): boolean {
  return startedMs - before.endedMs <= Math.max(soonMilliseconds, soonTimes * before.holdMilliseconds);
}

/**
 * When it ended, or undefined while it goes on. `aboveHalfMs`, `aboveMs`: the last moments at which a vector of it was above half
 * of what it had exceeded, and above all of it.
 */
export function endOf(
  attack: { readonly aboveHalfMs: number; readonly aboveMs: number; readonly holdMilliseconds: number },
  nowMs: number,
): number | undefined {
  const { aboveHalfMs, aboveMs, holdMilliseconds } = attack;
  if (nowMs - aboveHalfMs >= holdMilliseconds) return aboveHalfMs;
  return nowMs - aboveMs >= LINGERING_TIMES * holdMilliseconds ? aboveMs : undefined;
}
