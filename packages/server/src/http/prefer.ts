/** `Prefer: wait=N` (RFC 7240, 4.3), how long a change may be held until it is in force, and what is said of it. */
import type { WaitOutcome } from '../agents/applied-view.ts';

const waitMaximumSeconds = 30;

/** Seconds, at most 30; undefined when not asked for or not understood (a preference is never an error). */
export function waitSecondsOf(header: string | readonly string[] | undefined): number | undefined {
  if (header === undefined) return undefined;
  const text = typeof header === 'string' ? header : header.join(',');
  for (const part of text.split(',')) {
    const match = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(;.*)?$/i.exec(part);
    if (match?.[1] !== undefined) return Math.min(Number(match[1]), waitMaximumSeconds);
  }
  return undefined;
}

/**
 * The value of `Preference-Applied`. Its grammar (RFC 7240, 3) knows no parameters, only a list of words with or
 * without a value: the outcome is a second word of that list.
 */
export function preferenceApplied(seconds: number, outcome: WaitOutcome): string {
  return `wait=${seconds}, outcome=${outcome}`;
}
