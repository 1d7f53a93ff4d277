/**
 * What a command says: done, or why not, as a value with a code of contract's table. Owns the shape; statuses and
 * sentences for bare codes are http's.
 */
import type { ErrorCode, Problem } from '@levee/contract/errors.ts';

export interface Failure {
  readonly code: ErrorCode;
  /** Everything that is wrong, in the order of the request; may be empty where the code says all. */
  readonly details: readonly Problem[];
  /** For Retry-After, where trying again is of use. */
  readonly retrySeconds?: number;
}

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: Failure };

export function done<T>(value: T): Outcome<T> {
  return { ok: true, value };
}

export function refuse(code: ErrorCode, ...details: Problem[]): { readonly ok: false; readonly failure: Failure } {
  return { ok: false, failure: { code, details } };
}

/**
 * Of everything that is wrong, the first kind that there is gives the code; the details hold all of them, in that order.
 * Undefined: nothing is wrong.
 */
export function refuseFirst(
  ...kinds: readonly (readonly [ErrorCode, readonly Problem[]])[]
): { readonly ok: false; readonly failure: Failure } | undefined {
  const first = kinds.find(([, problems]) => problems.length > 0);
  return first && refuse(first[0], ...kinds.flatMap(([, problems]) => problems));
}
