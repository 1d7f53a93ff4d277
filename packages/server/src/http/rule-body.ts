/**
 * Splits a rule's body into the fields that core's parser judges and those that are the change's own (`expires_at`,
 * `confirm_within`), and gathers the problems of both. Stores nothing, asks no database.
 */
import type { Problem } from '@levee/contract/errors.ts';
import { rulesPerReplacement } from '@levee/contract/schemas/firewall-rule.ts';
import { confirmWithin, expiresAt } from '@levee/contract/schemas/object.ts';
import Type from 'typebox';
import { compileBodyCheck } from './schema-check.ts';

export interface RuleMeta {
  /** Undefined: not given; null: taken away (a change only). */
  readonly expiresAt: Date | null | undefined;
  readonly confirmWithinSeconds: number | undefined;
}

const checkMeta = compileBodyCheck(
  Type.Object({ expires_at: Type.Optional(expiresAt), confirm_within: Type.Optional(confirmWithin) }),
);

/** The frame of a replacement; its rules are judged one by one. */
const replaceFrame = Type.Object(
  {
    rules: Type.Array(Type.Unknown(), { maxItems: rulesPerReplacement }),
    confirm_within: Type.Optional(confirmWithin),
  },
  { additionalProperties: false },
);
export const checkReplaceFrame = compileBodyCheck(replaceFrame);

const nothing: RuleMeta = { expiresAt: undefined, confirmWithinSeconds: undefined };

/** In a change null takes the moment away; a new rule has nothing to take away. */
export type RuleBodyKind = 'new' | 'change';

/**
 * `fields` is the body itself when it has no field of the change's own; what is no object is passed on as it is, for
 * the parser to refuse.
 */
export function splitRuleBody(
  body: unknown,
  now: number,
  kind: RuleBodyKind = 'new',
): { readonly fields: unknown; readonly meta: RuleMeta; readonly problems: readonly Problem[] } {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return { fields: body, meta: nothing, problems: [] };
  }
  if (!('expires_at' in body || 'confirm_within' in body)) return { fields: body, meta: nothing, problems: [] };
  const { expires_at, confirm_within, ...fields } = body as Record<string, unknown>;
  const takenAway = expires_at === null && kind === 'change';
  const given: Record<string, unknown> = {};
  if (expires_at !== undefined && !takenAway) given.expires_at = expires_at;
  if (confirm_within !== undefined) given.confirm_within = confirm_within;
  const problems = [...checkMeta(given)];
  const expires = typeof expires_at === 'string' ? new Date(expires_at) : undefined;
  const broken = problems.some((problem) => problem.field === '/expires_at');
  if (expires !== undefined && !broken && !(expires.getTime() > now)) problems.push(inThePast(String(expires_at)));
  return {
    fields,
    meta: {
      expiresAt: takenAway ? null : expires,
      confirmWithinSeconds: typeof confirm_within === 'number' ? confirm_within : undefined,
    },
    problems,
  };
}

export function inThePast(received: string): Problem {
  const message = `expires_at: must be in the future, received ${received}`;
  return { field: '/expires_at', code: 'in_the_past', message };
}
