/**
 * Splits a rule's body into the fields that core's parser judges and those that are the change's own (`expires_at`,
 * `confirm_within`), and gathers the problems of both. Stores nothing, asks no database.
 */
import type { Problem } from '@levee/contract/errors.ts';
import { rulesPerReplacement } from '@levee/contract/schemas/firewall-rule.ts';
import { confirmWithin } from '@levee/contract/schemas/object.ts';
import Type from 'typebox';
import { judgeExpiresAt } from './expires-at.ts';
import { compileBodyCheck } from './schema-check.ts';

export interface RuleMeta {
  /** Undefined: not given; null: taken away (a change only). */
  readonly expiresAt: Date | null | undefined;
  readonly confirmWithinSeconds: number | undefined;
}

const checkConfirmWithin = compileBodyCheck(Type.Object({ confirm_within: confirmWithin }));

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
  const problems: Problem[] = [];
  const expires = expires_at === null && kind === 'change' ? null : judgeExpiresAt(expires_at, now, problems);
  if (confirm_within !== undefined) problems.push(...checkConfirmWithin({ confirm_within }));
  return {
    fields,
    meta: {
      expiresAt: expires,
      confirmWithinSeconds: typeof confirm_within === 'number' ? confirm_within : undefined,
    },
    problems,
  };
}
