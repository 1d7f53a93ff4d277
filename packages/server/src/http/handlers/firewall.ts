/** From requests about firewall rules to commands, and from rows to answers. Decides nothing itself. */
import { parsePacket } from '@levee/core/firewall/explain.ts';
import { parseRule } from '@levee/core/firewall/parse.ts';
import { formatPrefix, parsePrefix } from '@levee/core/net/prefix-text.ts';
import { type Problem, quote } from '@levee/core/problem.ts';
import type pg from 'pg';
import { changeRule } from '../../commands/change-rule.ts';
import { type Confirmation, confirmChange } from '../../commands/confirmation.ts';
import { type CreatedRule, createRules } from '../../commands/create-rule.ts';
import { deleteRule } from '../../commands/delete-rule.ts';
import { explainPacket } from '../../commands/explain-packet.ts';
import { type Outcome, refuse } from '../../commands/outcome.ts';
import { mayRead, type RuleReader } from '../../commands/read-rules.ts';
import { replaceRules, type WantedSet } from '../../commands/replace-rules.ts';
import type { RuleCreator } from '../../commands/rule-creator.ts';
import type { ChangePlace } from '../../commands/rule-row.ts';
import type { Cursor } from '../../store/cursor.ts';
import { newUuid } from '../../store/new-uuid.ts';
import type { Answered, Call, Handler, Wrote } from '../call.ts';
import { type AppliedStates, confirmationText, renderRule } from '../rule-answer.ts';
import { checkReplaceFrame, type ReplaceFrame, type RuleMeta, splitRuleBody } from '../rule-body.ts';
import { answerRuleList } from '../rule-list.ts';
import { isUuid } from '../uuid-text.ts';

export interface FirewallServices {
  readonly pool: pg.Pool;
  readonly reader: RuleReader;
  readonly creator: RuleCreator;
  readonly states: AppliedStates;
  readonly now: () => number;
}

/** A rule that is not stored yet has no place in the order. */
const unplaced = 0;

export function firewallHandlers(services: FirewallServices): Record<string, Handler> {
  const { states } = services;
  const changed = (outcome: Outcome<CreatedRule>, confirm: Confirmation | undefined): Wrote => {
    if (!outcome.ok) return outcome;
    const { row, confirmBy } = outcome.value;
    const extra = confirmationText(confirm?.changeUuid, confirmBy);
    return { ok: true, value: { change: cursorOf(row), render: () => renderRule(row, states, extra).text } };
  };
  return {
    createFirewallRule: {
      write: {
        alone: true,
        async run(call, executor) {
          const { fields, meta, problems } = splitRuleBody(call.body ?? {}, services.now());
          const uuid = newUuid();
          const parsed = parseRule(fields, { uuid, sequence: unplaced });
          if (!parsed.ok) return refuse('validation_failed', ...parsed.problems, ...problems);
          if (problems.length > 0) return refuse('validation_failed', ...problems);
          if (meta.expiresAt === null) return refuse('validation_failed', notNull);
          const { canonical } = parsed;
          const confirm = confirmationOf(meta);
          const rule = { caller: call.caller, uuid, canonical, expiresAt: meta.expiresAt, confirm };
          if (!executor.inTransaction) return changed(await services.creator.create(rule), confirm);
          const [outcome] = await createRules(executor, [rule]);
          if (outcome === undefined) throw new Error('a rule without an outcome');
          return changed(outcome, confirm);
        },
      },
    },
    changeFirewallRule: {
      write: {
        async run(call, executor) {
          const uuid = call.params.uuid ?? '';
          if (!isUuid(uuid)) return refuse('not_found');
          const { fields, meta, problems } = splitRuleBody(call.body ?? {}, services.now());
          const nothing = typeof call.body !== 'object' || call.body === null || Object.keys(call.body).length === 0;
          if (nothing) return refuse('validation_failed', emptyChange);
          if (problems.length > 0) return refuse('validation_failed', ...problems);
          const confirm = confirmationOf(meta);
          const change = { uuid: uuid.toLowerCase(), fields, expiresAt: meta.expiresAt, confirm };
          return changed(await changeRule(executor, call.caller, change), confirm);
        },
      },
    },
    readFirewallRule: { read: (call) => readRule(services, call) },
    deleteFirewallRule: {
      write: {
        alone: true,
        async run(call, executor) {
          const uuid = call.params.uuid ?? '';
          if (!isUuid(uuid)) return refuse('not_found');
          const outcome = await deleteRule(executor, call.caller, uuid);
          if (!outcome.ok) return outcome;
          const body = JSON.stringify({
            uuid: uuid.toLowerCase(),
            state: 'marked_for_deletion',
            message: 'The firewall rule is marked for deletion.',
          });
          return { ok: true, value: { change: cursorOf(outcome.value), render: () => body } };
        },
      },
    },
    listFirewallRules: { read: (call) => answerRuleList(services, call, { ownerUuid: call.caller.accountUuid }) },
    listProviderFirewallRules: {
      read: (call) => answerRuleList(services, call, { providerUuid: call.caller.accountUuid }),
    },
    replaceFirewallRules: { write: { run: (call, executor) => replace(services, call, executor) } },
    explainPacket: {
      write: {
        alone: true,
        async run(call, executor) {
          const parsed = parsePacket(call.body ?? {});
          if (!parsed.ok) return refuse('validation_failed', ...parsed.problems);
          const outcome = await explainPacket(executor, call.caller, parsed.packet);
          if (!outcome.ok) return outcome;
          const body = JSON.stringify(outcome.value);
          return { ok: true, value: { render: () => body } };
        },
      },
    },
    confirmChange: {
      write: {
        alone: true,
        async run(call, executor) {
          const uuid = call.params.change_uuid ?? '';
          if (!isUuid(uuid)) return refuse('not_found');
          const outcome = await confirmChange(executor, call.caller, uuid);
          if (!outcome.ok) return outcome;
          const body = JSON.stringify({
            change_uuid: uuid.toLowerCase(),
            confirmed_at: outcome.value.toISOString(),
            message: 'The change is confirmed and stays.',
          });
          return { ok: true, value: { render: () => body } };
        },
      },
    },
  };
}

const notNull = { field: '/expires_at', code: 'wrong_type', message: 'expires_at: must be a string, received null' };
const emptyChange = {
  field: '',
  code: 'too_few',
  message: 'The body must be an object that names at least one field.',
};

function cursorOf(row: ChangePlace): Cursor {
  return { xid: row.change_xid, position: row.change_position };
}

function confirmationOf(meta: RuleMeta): Confirmation | undefined {
  const withinSeconds = meta.confirmWithinSeconds;
  return withinSeconds === undefined ? undefined : { changeUuid: newUuid(), withinSeconds };
}

async function readRule(services: FirewallServices, call: Call): Promise<Answered> {
  const uuid = call.params.uuid ?? '';
  if (!isUuid(uuid)) return refuse('not_found');
  const row = await services.reader.read(uuid);
  if (row === undefined || !mayRead(call.caller, row)) return refuse('not_found');
  return { ok: true, answer: { body: `[${renderRule(row, services.states).text}]` } };
}

type Executor = Parameters<typeof replaceRules>[0];

async function replace(services: FirewallServices, call: Call, executor: Executor): Promise<Wrote> {
  const given = String(call.query.dst);
  const prefix = parsePrefix(given);
  if (!prefix.ok) {
    return refuse('validation_failed', { field: '?dst', code: prefix.code, message: `dst: ${prefix.sentence}` });
  }
  const dst = formatPrefix(prefix.prefix);
  const frame = checkReplaceFrame(call.body ?? {});
  if (frame.length > 0) return refuse('validation_failed', ...frame);
  const { rules: wanted, confirm_within: withinSeconds } = call.body as ReplaceFrame;
  const problems: Problem[] = [];
  const rules: WantedSet['rules'][number][] = [];
  for (const [index, each] of wanted.entries()) {
    if (problems.length >= enoughProblems) {
      // In the place of the last one that an answer lists.
      problems.splice(enoughProblems - 1, problems.length, notLookedAt(index, wanted.length));
      break;
    }
    const read = readWanted(each, dst, services.now());
    if (read.ok) rules.push(read.rule);
    else for (const problem of read.problems) problems.push(within(`/rules/${index}`, problem));
  }
  if (problems.length > 0) return refuse('validation_failed', ...problems);
  const confirm = withinSeconds === undefined ? undefined : { changeUuid: newUuid(), withinSeconds };
  const outcome = await replaceRules(executor, call.caller, { dst, rules, confirm });
  if (!outcome.ok) return outcome;
  const { rows, created, removed, change, confirmBy } = outcome.value;
  const counts = `"created":${created},"kept":${rows.length - created},"removed":${removed}`;
  const extra = confirmationText(confirm?.changeUuid, confirmBy);
  const render = () =>
    `{"dst":"${dst}","rules":[${rows.map((row) => renderRule(row, services.states).text).join(',')}],${counts}${extra}}`;
  return { ok: true, value: { change: change === undefined ? undefined : cursorOf(change), render } };
}

/** More than an answer lists: the rest of a set with so many faults is not looked at. */
const enoughProblems = 100;

function notLookedAt(index: number, total: number): Problem {
  const message = `rules: the ${total - index} rules from rules.${index} on were not looked at; mend those before first`;
  return { field: '/rules', code: 'not_checked', message };
}

type WantedRule =
  | { readonly ok: true; readonly rule: WantedSet['rules'][number] }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** One rule of a set: its destination is the set's, and a confirmation is of the whole set. */
function readWanted(wire: unknown, dst: string, now: number): WantedRule {
  const uuid = newUuid();
  const isObject = typeof wire === 'object' && wire !== null && !Array.isArray(wire);
  if (isObject && 'confirm_within' in wire) return { ok: false, problems: [ofWholeSet] };
  const { fields, meta, problems } = splitRuleBody(isObject ? { dst, ...wire } : wire, now);
  const parsed = parseRule(fields, { uuid, sequence: unplaced });
  if (!parsed.ok) return { ok: false, problems: [...parsed.problems, ...problems] };
  const { canonical } = parsed;
  const all = canonical.dst === dst ? problems : [...problems, otherDestination(canonical.dst, dst)];
  if (all.length > 0) return { ok: false, problems: all };
  return { ok: true, rule: { uuid, canonical, expiresAt: meta.expiresAt ?? undefined } };
}

const ofWholeSet: Problem = {
  field: '/confirm_within',
  code: 'unknown_field',
  message: 'confirm_within: belongs beside rules: the set is confirmed as a whole',
};

function otherDestination(received: string, dst: string): Problem {
  const message = `dst: must be the one of the query, ${dst}, received ${quote(received)}`;
  return { field: '/dst', code: 'not_allowed', message };
}

function within(at: string, { field, code, message }: Problem): Problem {
  return { field: at + field, code, message: `${at.slice(1).replaceAll('/', '.')}.${message}` };
}
