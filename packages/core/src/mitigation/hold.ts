/** How long measures stay when an attack has ended. Pure. */

export const defaultMitigationHoldSeconds = 300;
export const LONGEST_HOLD_SECONDS = 24 * 3600;
/** Attacks that ended longer ago are forgotten. */
export const REMEMBERED_SECONDS = 24 * 3600;

/** Doubles with each earlier attack on the destination: who comes back finds the measures still there. */
export function mitigationHoldSeconds(baseSeconds: number, earlierAttacks: number): number {
  return Math.min(LONGEST_HOLD_SECONDS, baseSeconds * 2 ** Math.min(20, earlierAttacks));
}
