/** From requests about firewall rules to commands, and from rows to answers. Decides nothing itself. */
import { changeFieldNames } from '@levee/contract/schemas/firewall-rule.ts';
import { parsePacket } from '@levee/core/firewall/explain.ts';
import type { Packet } from '@levee/core/firewall/packet.ts';
import { parseRule } from '@levee/core/firewall/parse.ts';
import type { Rule } from '@levee/core/firewall/rule.ts';
import type { CanonicalRule } from '@levee/core/firewall/wire.ts';
import type pg from 'pg';
import { type AuditEntry, objectEntry } from '../../commands/audit.ts';
import type { Caller } from '../../commands/caller.ts';
import { changeRule } from '../../commands/change-rule.ts';
import { type Confirmation, confirmChange } from '../../commands/confirmation.ts';
import { type CreatedRule, createRuleWithinQuota } from '../../commands/create-rule.ts';
import { type Executor, executorOf } from '../../commands/executor.ts';
import { explainPacket } from '../../commands/explain-packet.ts';
import { ruleChunks } from '../../commands/list-rules.ts';
import { markObject } from '../../commands/mark-object.ts';
import { done, type Outcome, refuse } from '../../commands/outcome.ts';
import { previewRule } from '../../commands/preview-rule.ts';
import { mayRead, type RuleReader } from '../../commands/read-rules.ts';
import { replaceRules } from '../../commands/replace-rules.ts';
import type { RuleCreator } from '../../commands/rule-creator.ts';
import type { RuleRow } from '../../commands/rule-row.ts';
import type { ChangePlace } from '../../commands/stored-row.ts';
import { waiveMeasure } from '../../commands/write-measures.ts';
import type { Cursor } from '../../store/cursor.ts';
import { newUuid } from '../../store/new-uuid.ts';
import { answerInTime } from '../answer-deadline.ts';
import { type Answered, type Call, type Handler, judgedBy, membersOf, type Wrote } from '../call.ts';
import { answerList, judgeList, type ListFilter, type Listing } from '../list-answer.ts';
import type { AppliedStates } from '../object-answer.ts';
import { renderPreview } from '../preview-answer.ts';
import { confirmationText, renderRule } from '../rule-answer.ts';
import { type RuleMeta, splitRuleBody } from '../rule-body.ts';
import { type JudgedSet, judgeReplacement } from '../rule-set.ts';
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
/** The order of a draft: as of the rule that is created next. */
const behindAll = Number.MAX_SAFE_INTEGER;

export function firewallHandlers(services: FirewallServices): Record<string, Handler> {
  const { states } = services;
  const listing: Listing<RuleRow> = {
    chunks: (scope) => ruleChunks(services.pool, scope),
    render: (row) => renderRule(row, states),
  };
  const written = (
    { row, confirmBy }: CreatedRule,
    confirm: Confirmation | undefined,
    audit: readonly AuditEntry[] | 'kept',
  ): Wrote => {
    const extra = confirmationText(confirm?.changeUuid, confirmBy);
    const render = () => renderRule(row, states, extra).text;
    return { ok: true, value: { change: cursorOf(row), uuids: [row.uuid], render, audit } };
  };
  return {
    createFirewallRule: {
      write: {
        alone: true,
        judge(call) {
          const { fields, meta, problems } = splitRuleBody(call.body === undefined ? {} : call.body, services.now());
          const uuid = newUuid();
          const parsed = parseRule(fields, { uuid, sequence: unplaced }, changeFieldNames);
          if (!parsed.ok) return { ok: false, problems: [...parsed.problems, ...problems] };
          return judgedBy(problems, { uuid, canonical: parsed.canonical, meta } satisfies JudgedRule);
        },
        async run(call, executor, { uuid, canonical, meta }: JudgedRule) {
          const confirm = confirmationOf(meta);
          const expiresAt = meta.expiresAt ?? undefined;
          const rule = { caller: call.caller, uuid, canonical, expiresAt, confirm, origin: call.origin };
          const outcome = await (executor.inTransaction
            ? createRuleWithinQuota(executor, rule)
            : services.creator.create(rule));
          return outcome.ok ? written(outcome.value, confirm, 'kept') : outcome;
        },
      },
    },
    changeFirewallRule: {
      write: {
        judge: (call) => judgedBy(Object.keys(membersOf(call.body)).length === 0 ? [emptyChange] : []),
        async run(call, executor) {
          const uuid = call.params.uuid ?? '';
          if (!isUuid(uuid)) return refuse('not_found');
          // The rule's own fields are judged together with the stored ones, and these problems are told with theirs.
          const { fields, meta, problems } = splitRuleBody(call.body, services.now(), 'change');
          const confirm = confirmationOf(meta);
          const change = { uuid: uuid.toLowerCase(), fields, expiresAt: meta.expiresAt, confirm, problems };
          const outcome = await changeRule(executor, call.caller, change);
          if (!outcome.ok) return outcome;
          const { before, row } = outcome.value;
          const entry = objectEntry('firewall_rule', before, row, confirm?.changeUuid);
          return written(outcome.value, confirm, [entry]);
        },
      },
    },
    readFirewallRule: { read: (call: Call) => readRule(services, call) },
    deleteFirewallRule: {
      write: {
        async run(call, executor) {
          const uuid = call.params.uuid ?? '';
          if (!isUuid(uuid)) return refuse('not_found');
          const outcome = await markObject(executor, call.caller, 'firewall_rule', uuid);
          if (!outcome.ok) return outcome;
          const { before, change, fresh } = outcome.value;
          if (fresh) await waiveMeasure(executor, 'firewall_rule', uuid);
          const body = JSON.stringify({
            uuid: uuid.toLowerCase(),
            state: 'marked_for_deletion',
            message: 'The firewall rule is marked for deletion.',
          });
          const audit = fresh ? [objectEntry('firewall_rule', before, undefined)] : [];
          return { ok: true, value: { change: cursorOf(change), render: () => body, audit } };
        },
      },
    },
    listFirewallRules: {
      judge: judgeList,
      read: (call: Call, filter: ListFilter) =>
        answerList(listing, call, { ownerUuid: call.caller.accountUuid }, filter),
    },
    listProviderFirewallRules: {
      judge: judgeList,
      read: (call: Call, filter: ListFilter) =>
        answerList(listing, call, { providerUuid: call.caller.accountUuid }, filter),
    },
    replaceFirewallRules: {
      write: {
        judge: (call, found) => judgeReplacement(call, found, services.now()),
        run: (call: Call, executor: Executor, wanted: JudgedSet) => replace(services, call, executor, wanted),
      },
    },
    explainPacket: {
      write: {
        alone: true,
        judge(call) {
          const parsed = parsePacket(call.body === undefined ? {} : call.body);
          return parsed.ok ? { ok: true, value: parsed.packet } : parsed;
        },
        async run(call, executor, packet: Packet) {
          const outcome = await explainPacket(executor, call.caller, packet);
          if (!outcome.ok) return outcome;
          const body = JSON.stringify(outcome.value);
          return { ok: true, value: { render: () => body, audit: [] } };
        },
      },
    },
    previewFirewallRule: {
      write: {
        alone: true,
        judge(call) {
          const { fields, problems } = splitRuleBody(call.body === undefined ? {} : call.body, services.now());
          const parsed = parseRule(fields, { uuid: newUuid(), sequence: behindAll }, changeFieldNames);
          if (!parsed.ok) return { ok: false, problems: [...parsed.problems, ...problems] };
          const { rule, canonical } = parsed;
          return judgedBy(problems, { caller: call.caller, draft: rule, dst: canonical.dst } satisfies JudgedDraft);
        },
        // Before any transaction: in one, no detector would hear of what is asked.
        prepare: (judged) => {
          const { caller, draft, dst } = judged as JudgedDraft;
          return answerInTime(previewRule(executorOf(services.pool), caller, draft, dst)).then((outcome) =>
            outcome.ok ? done(renderPreview(dst, outcome.value)) : outcome,
          );
        },
        async run(_call, _executor, outcome: Outcome<string>) {
          return outcome.ok ? { ok: true, value: { render: () => outcome.value, audit: [] } } : outcome;
        },
      },
    },
    confirmChange: {
      write: {
        async run(call, executor) {
          const uuid = (call.params.change_uuid ?? '').toLowerCase();
          if (!isUuid(uuid)) return refuse('not_found');
          const outcome = await confirmChange(executor, call.caller, uuid);
          if (!outcome.ok) return outcome;
          const { confirmedAt, fresh, ruleUuids } = outcome.value;
          const confirmed = { change_uuid: uuid, confirmed_at: confirmedAt.toISOString() };
          const body = JSON.stringify({ ...confirmed, message: 'The change is confirmed and stays.' });
          const { accountUuid: ownerUuid, providerUuid } = call.caller;
          const after = { confirmed_at: confirmed.confirmed_at, firewall_rules: ruleUuids };
          const audit = fresh ? [{ kind: 'change', uuid, ownerUuid, providerUuid, after } as const] : [];
          return { ok: true, value: { render: () => body, audit } };
        },
      },
    },
  };
}

interface JudgedRule {
  readonly uuid: string;
  readonly canonical: CanonicalRule;
  readonly meta: RuleMeta;
}

interface JudgedDraft {
  readonly caller: Caller;
  readonly draft: Rule;
  readonly dst: string;
}

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

async function replace(
  services: FirewallServices,
  call: Call,
  executor: Executor,
  { dst, rules, withinSeconds }: JudgedSet,
): Promise<Wrote> {
  const confirm = withinSeconds === undefined ? undefined : { changeUuid: newUuid(), withinSeconds };
  const outcome = await replaceRules(executor, call.caller, { dst, rules, confirm });
  if (!outcome.ok) return outcome;
  const { rows, created, removed, change, confirmBy } = outcome.value;
  const counts = `"created":${created.length},"kept":${rows.length - created.length},"removed":${removed.length}`;
  const extra = confirmationText(confirm?.changeUuid, confirmBy);
  const render = () =>
    `{"dst":"${dst}","rules":[${rows.map((row) => renderRule(row, services.states).text).join(',')}],${counts}${extra}}`;
  const uuids = rows.map((row) => row.uuid);
  const audit = [
    ...removed.map((row) => objectEntry('firewall_rule', row, undefined)),
    ...created.map((row) => objectEntry('firewall_rule', undefined, row, confirm?.changeUuid)),
  ];
  return { ok: true, value: { change: change === undefined ? undefined : cursorOf(change), uuids, render, audit } };
}
