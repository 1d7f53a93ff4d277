/**
 * How many requests a minute may be made: a token bucket, kept as one number (GCRA, ITU-T I.371: the theoretical arrival
 * time). It holds a minute's requests and fills evenly, so that a client that stays below its rate is never refused and
 * one that was away may catch up at once. Pure: time is an argument, in milliseconds of any clock that runs forward.
 */

export const windowSeconds = 60;
const windowMilliseconds = windowSeconds * 1000;

export interface Rated {
  readonly allowed: boolean;
  /** What to keep; undefined: nothing was kept yet. After this moment the bucket is full, and need not be kept. */
  readonly fullAt: number;
  /** Requests that could be made at once after this one. */
  readonly remaining: number;
  /** Whole seconds until all of them could be; 0: now. */
  readonly resetSeconds: number;
  /** Whole seconds until one more is allowed, at least 1; 0 when one is. */
  readonly retrySeconds: number;
}

/** `perMinute` ≥ 1. `fullAt`: what the last one of the same client gave. */
export function rateRequest(fullAt: number | undefined, at: number, perMinute: number): Rated {
  const step = windowMilliseconds / perMinute;
  const begin = fullAt !== undefined && fullAt > at ? fullAt : at;
  const after = begin + step;
  // Sums of fractions: a millionth of a request is none.
  const room = (windowMilliseconds - (after - at)) / step + 1e-6;
  const allowed = room >= 0;
  const kept = allowed ? after : begin;
  return {
    allowed,
    fullAt: kept,
    remaining: allowed ? Math.floor(room) : 0,
    resetSeconds: Math.ceil((kept - at) / 1000),
    retrySeconds: allowed && room >= 1 ? 0 : Math.max(1, Math.ceil((kept + step - at - windowMilliseconds) / 1000)),
  };
}
