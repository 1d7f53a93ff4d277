/** Owns how long to wait before a process that ended is started again. Pure. */

export interface Backoff {
  readonly firstMilliseconds: number;
  readonly longestMilliseconds: number;
  /** A process that lived this long has recovered: the next wait is the first one again. */
  readonly recoveredMilliseconds: number;
}

export const defaultBackoff: Backoff = {
  firstMilliseconds: 100,
  longestMilliseconds: 10_000,
  recoveredMilliseconds: 15_000,
};

/** @param failures how many times in a row it ended before it had recovered; 1 for the first. */
export function waitMilliseconds(backoff: Backoff, failures: number): number {
  const doubled = backoff.firstMilliseconds * 2 ** Math.min(failures - 1, 30);
  return Math.min(doubled, backoff.longestMilliseconds);
}
