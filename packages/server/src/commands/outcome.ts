/**
 * What a command says: done, or why not, as a value with a code of contract's table. Owns the shape; statuses and
 * sentences for bare codes are http's.
 */
import type { ErrorCode, Problem } from '@levee/contract/errors.ts';

export interface Failure {
  readonly code: ErrorCode;
  /** Everything that is wrong, in the order of the request; may be empty where the code says all. */
  readonly details: readonly Problem[];
}

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: Failure };

export function done<T>(value: T): Outcome<T> {
  return { ok: true, value };
}

export function refuse(code: ErrorCode, ...details: Problem[]): { readonly ok: false; readonly failure: Failure } {
  return { ok: false, failure: { code, details } };
}
