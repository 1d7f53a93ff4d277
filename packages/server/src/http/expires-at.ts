/**
 * Judges when an object shall expire, for bodies of any kind whose other fields are core's to check. Owns the one check
 * that needs a clock; stores nothing.
 */
import type { Problem } from '@levee/contract/errors.ts';
import { expiresAt } from '@levee/contract/schemas/object.ts';
import Type from 'typebox';
import { compileBodyCheck } from './schema-check.ts';

const check = compileBodyCheck(Type.Object({ expires_at: expiresAt }));

/** Undefined when none is given, or after a problem was added. `now`: milliseconds since 1970. */
export function judgeExpiresAt(given: unknown, now: number, problems: Problem[]): Date | undefined {
  if (given === undefined) return undefined;
  const found = check({ expires_at: given });
  problems.push(...found);
  if (found.length > 0) return undefined;
  const moment = new Date(String(given));
  if (moment.getTime() > now) return moment;
  problems.push(inThePast(String(given)));
  return undefined;
}

/**
 * The body of a new object without its `expires_at`; what is no object is passed on as it is, for its parser to refuse.
 */
export function takeExpiresAt(
  body: unknown,
  now: number,
): { readonly fields: unknown; readonly expiresAt: Date | undefined; readonly problems: readonly Problem[] } {
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  if (!isObject || !Object.hasOwn(body, 'expires_at')) return { fields: body, expiresAt: undefined, problems: [] };
  const { expires_at, ...fields } = body as Record<string, unknown>;
  const problems: Problem[] = [];
  return { fields, expiresAt: judgeExpiresAt(expires_at, now, problems), problems };
}

export function inThePast(received: string): Problem {
  const message = `expires_at: must be in the future, received ${received}`;
  return { field: '/expires_at', code: 'in_the_past', message };
}
