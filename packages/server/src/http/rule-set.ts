/**
 * Judges the body and the query of a replacement: the destination and every rule of the set, all problems at once.
 * Asks no database; what stays and what goes is the command's.
 */
import type { Problem } from '@levee/contract/errors.ts';
import { rulesPerReplacement } from '@levee/contract/schemas/firewall-rule.ts';
import { parseRule } from '@levee/core/firewall/parse.ts';
import { formatPrefix, parsePrefix } from '@levee/core/net/prefix-text.ts';
import { quote } from '@levee/core/problem.ts';
import type { WantedSet } from '../commands/replace-rules.ts';
import { newUuid } from '../store/new-uuid.ts';
import { type Call, isSound, type Judged, judgedBy, membersOf } from './call.ts';
import { judgeDestination } from './list-answer.ts';
import { checkReplaceFrame, splitRuleBody } from './rule-body.ts';

export interface JudgedSet {
  readonly dst: string;
  readonly rules: WantedSet['rules'];
  readonly withinSeconds: number | undefined;
}

/** A rule that is not stored yet has no place in the order. */
const unplaced = 0;
/** More than an answer lists: the rest of a set with so many faults is not looked at. */
const enoughProblems = 100;

export function judgeReplacement(call: Call, found: readonly Problem[], now: number): Judged {
  const problems: Problem[] = [];
  const given = call.query.dst;
  const dst = typeof given === 'string' && isSound(found, '?dst') ? judgeDestination(given, problems) : undefined;
  problems.push(...checkReplaceFrame(call.body === undefined ? {} : call.body));
  const { rules: wanted, confirm_within } = membersOf(call.body);
  const list = Array.isArray(wanted) ? wanted.slice(0, rulesPerReplacement) : [];
  const rules: WantedSet['rules'][number][] = [];
  for (const [index, each] of list.entries()) {
    if (problems.length >= enoughProblems) {
      // In the place of the last one that an answer lists.
      problems.splice(enoughProblems - 1, problems.length, notLookedAt(index, list.length));
      break;
    }
    const judged = judgeOne(each, dst, now);
    if ('rule' in judged) rules.push(judged.rule);
    else for (const problem of judged.problems) problems.push(within(`/rules/${index}`, problem));
  }
  const withinSeconds = typeof confirm_within === 'number' ? confirm_within : undefined;
  return judgedBy(problems, { dst, rules, withinSeconds });
}

type JudgedOne = { readonly rule: WantedSet['rules'][number] } | { readonly problems: readonly Problem[] };

/** One rule of a set: its destination is the set's (undefined: that one is wrong), a confirmation is of the whole set. */
function judgeOne(wire: unknown, dst: string | undefined, now: number): JudgedOne {
  const uuid = newUuid();
  const isObject = typeof wire === 'object' && wire !== null && !Array.isArray(wire);
  const { confirm_within, ...own } = membersOf(wire);
  const complete = dst === undefined ? own : { dst, ...own };
  const { fields, meta, problems } = splitRuleBody(isObject ? complete : wire, now);
  const parsed = parseRule(fields, { uuid, sequence: unplaced }, ['expires_at']);
  const all = parsed.ok ? [...problems] : [...parsed.problems, ...problems];
  if (confirm_within !== undefined) all.push(ofWholeSet);
  const other = dst === undefined ? undefined : otherDestination(own.dst, dst);
  if (other !== undefined) all.push(other);
  // What the query failed to give is not this rule's fault.
  const told = dst === undefined && own.dst === undefined ? all.filter(({ field }) => field !== '/dst') : all;
  if (told.length > 0 || !parsed.ok) return { problems: told };
  return { rule: { uuid, canonical: parsed.canonical, expiresAt: meta.expiresAt ?? undefined } };
}

const ofWholeSet: Problem = {
  field: '/confirm_within',
  code: 'unknown_field',
  message: 'confirm_within: belongs beside rules: the set is confirmed as a whole',
};

/** Undefined when the rule names none, the same, or none at all (which the parser tells). */
function otherDestination(received: unknown, dst: string): Problem | undefined {
  if (typeof received !== 'string') return undefined;
  const parsed = parsePrefix(received);
  if (!parsed.ok || formatPrefix(parsed.prefix) === dst) return undefined;
  const message = `dst: must be the one of the query, ${dst}, received ${quote(received)}`;
  return { field: '/dst', code: 'not_allowed', message };
}

function notLookedAt(index: number, total: number): Problem {
  const message = `rules: the ${total - index} rules from rules.${index} on were not looked at; mend those before first`;
  return { field: '/rules', code: 'not_checked', message };
}

function within(at: string, { field, code, message }: Problem): Problem {
  const name = at.slice(1).replaceAll('/', '.');
  return { field: at + field, code, message: field === '' ? `${name}: ${message}` : `${name}.${message}` };
}
