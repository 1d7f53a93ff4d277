/** When a delivery that failed is tried again. Pure but for the random number that it is given. */

/** Seconds between an attempt that failed and the next one; the last one again and again. */
const PAUSES = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400] as const;
export const TRY_FOR_SECONDS = 24 * 3600;
/** Of the pause, either way: what failed together shall not come back together. */
const JITTER = 0.2;
/** A receiver may ask for more patience, within reason. */
const LONGEST_ASKED_SECONDS = 4 * 3600;

export interface Failed {
  /** Including the one that has just failed. */
  readonly attempts: number;
  readonly secondsSinceFirst: number;
  readonly askedSeconds?: number | undefined;
}

export type RetryAfter = (failed: Failed, random: number) => number | undefined;

/** Seconds until the next attempt; undefined: it is given up. `random`: from 0 to 1. */
export const retryAfterSeconds: RetryAfter = ({ attempts, secondsSinceFirst, askedSeconds }, random) => {
  const usual = PAUSES[Math.min(attempts, PAUSES.length) - 1] ?? PAUSES[0];
  const pause = Math.max(usual * (1 + JITTER * (2 * random - 1)), Math.min(askedSeconds ?? 0, LONGEST_ASKED_SECONDS));
  return secondsSinceFirst + pause > TRY_FOR_SECONDS ? undefined : pause;
};
