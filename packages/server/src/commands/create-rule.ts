/**
 * Creates firewall rules: one statement finds for each the owner's subnet that covers the destination, stores it,
 * writes the change log, the audit log and, when asked for, how to undo it. One round trip and one commit for any
 * number.
 *
 * The rule's foreign key to the subnet decides a race with a removal of that subnet: a rule outside its owner's
 * addresses cannot be stored. A rule whose owner or provider has a quota is left out and reported, unless the caller
 * says that the quota was asked about in the same transaction: so rules without one cost no lock and no count.
 */
import type { CanonicalRule } from '@levee/core/firewall/wire.ts';
import type { Origin } from './audit.ts';
import type { Caller } from './caller.ts';
import type { Confirmation } from './confirmation.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { notAllowed } from './own-space.ts';
import { withinQuota } from './quota.ts';
import { noHits, ofCustomer, type RuleRow } from './rule-row.ts';

export interface NewRule {
  readonly caller: Caller;
  readonly uuid: string;
  readonly canonical: CanonicalRule;
  readonly expiresAt: Date | undefined;
  readonly confirm: Confirmation | undefined;
  /** For the audit log. */
  readonly origin: Origin;
}

export interface CreatedRule {
  readonly row: RuleRow;
  readonly confirmBy: Date | undefined;
}

/**
 * Arrays, one entry a rule: $1 uuid, $2 owner, $3 dst, $4 whether subnets that users hold are out of bounds, $5 fields,
 * $6 expiry, $7 change, $8 seconds to confirm, $9 key, $10 address that it came from, $11 request id, $12 what the audit
 * log is told instead of the fields. One for all: $13 whether the quota was asked about.
 */
export const createRulesStatement = {
  name: 'rules_create',
  text: `with wanted as (
      select w.*, place.subnet, place.provider_uuid, not $13::bool and exists (
          select from quota q
          where q.kind = 'firewall_rules' and (q.account_uuid = w.owner or q.account_uuid = place.provider_uuid)
        ) as limited
      from unnest($1::uuid[], $2::uuid[], $3::cidr[], $4::bool[], $5::text[], $6::timestamptz[], $7::uuid[], $8::float8[],
          $9::uuid[], $10::inet[], $11::text[], $12::text[])
        w (uuid, owner, dst, is_provider, fields, expires_at, change_uuid, within, key_uuid, source, request_id, told)
      cross join lateral (
        select s.subnet, s.provider_uuid from subnet s
        where s.account_uuid = w.owner and s.subnet >>= w.dst
          and not (w.is_provider and exists (select from subnet u where u.role = 'user' and u.subnet && w.dst))
        limit 1
      ) place
    ), allowed as (
      select *, nextval('change_position') as position from wanted where not limited
    ), rule as (
      insert into firewall_rule (uuid, sequence, owner_uuid, provider_uuid, subnet, dst, fields, created_at,
        updated_at, expires_at, change_position)
      select uuid, position, owner, provider_uuid, subnet, dst, fields::json, date_trunc('milliseconds', now()),
        date_trunc('milliseconds', now()), expires_at, position
      from allowed
      returning uuid, sequence, provider_uuid, change_xid, created_at
    ), logged as (
      insert into change (position, kind, object_uuid) select sequence, 'firewall_rule', uuid from rule
    ), recorded as (
      insert into audit (actor_uuid, actor_role, key_uuid, source, request_id, operation, kind, object_uuid, owner_uuid,
        provider_uuid, after)
      select owner, case when is_provider then 'provider' else 'user' end, key_uuid, source, request_id,
        'createFirewallRule', 'firewall_rule', uuid, owner, provider_uuid, coalesce(told, fields)::json
      from allowed
    ), undo as (
      insert into confirmation (change_uuid, owner_uuid, deadline, undo)
      select change_uuid, owner, now() + make_interval(secs => within),
        json_build_array(json_build_object('uuid', uuid, 'position', position, 'before', null))
      from allowed where within is not null
      returning change_uuid, deadline
    )
    select rule.uuid::text as uuid, false as limited, sequence, rule.provider_uuid::text as provider_uuid,
      change_xid::text::int8 as change_xid, round(date_part('epoch', created_at) * 1000) as created_ms,
      (select undo.deadline from undo join allowed using (change_uuid) where allowed.uuid = rule.uuid) as deadline
    from rule
    union all select uuid::text, true, null, null, null, null, null from wanted where limited`,
};

type CreatedRow =
  | {
      readonly uuid: string;
      readonly limited: false;
      readonly sequence: number;
      readonly provider_uuid: string;
      readonly change_xid: number;
      readonly created_ms: number;
      readonly deadline: Date | null;
    }
  | { readonly uuid: string; readonly limited: true };

/** `limited`: nothing was stored, because a quota binds the rule; see `createRuleWithinQuota`. */
export type RuleOutcome = Outcome<CreatedRule> | 'limited';

/**
 * An outcome for each, in the order given. Throws what the driver throws: then none of them is stored.
 * `quotaAsked`: `withinQuota` allowed them in this very transaction.
 */
export async function createRules(
  executor: Executor,
  rules: readonly NewRule[],
  quotaAsked = false,
): Promise<RuleOutcome[]> {
  const texts = rules.map((rule) => JSON.stringify(rule.canonical));
  const created = await executor.rows<CreatedRow>(createRulesStatement, [
    rules.map((rule) => rule.uuid),
    rules.map((rule) => rule.caller.accountUuid),
    rules.map((rule) => rule.canonical.dst),
    rules.map((rule) => rule.caller.role === 'provider'),
    texts,
    rules.map((rule) => rule.expiresAt ?? null),
    rules.map((rule) => rule.confirm?.changeUuid ?? null),
    rules.map((rule) => rule.confirm?.withinSeconds ?? null),
    rules.map((rule) => rule.caller.keyUuid),
    rules.map((rule) => rule.origin.address ?? null),
    rules.map((rule) => rule.origin.requestId),
    rules.map(toldText),
    quotaAsked,
  ]);
  const byUuid = new Map(created.map((row) => [row.uuid, row]));
  return rules.map((rule, index) => outcomeOf(rule, texts[index] ?? '', byUuid.get(rule.uuid)));
}

/** One rule in a transaction, with the quotas of its owner and provider. */
export async function createRuleWithinQuota(executor: Executor, rule: NewRule): Promise<Outcome<CreatedRule>> {
  const within = await withinQuota(executor, rule.caller, 'firewall_rules', 1);
  const [outcome] = await createRules(executor, [rule], true);
  if (outcome === undefined || outcome === 'limited') throw new Error('a rule without an outcome');
  return outcome.ok && !within.ok ? within : outcome;
}

/** What the audit log is told, where it is more than the fields. */
function toldText({ canonical, expiresAt, confirm }: NewRule): string | null {
  if (expiresAt === undefined && confirm === undefined) return null;
  return JSON.stringify({ ...canonical, expires_at: expiresAt?.toISOString(), change_uuid: confirm?.changeUuid });
}

function outcomeOf(rule: NewRule, fields: string, created: CreatedRow | undefined): RuleOutcome {
  const { canonical, caller } = rule;
  if (created === undefined) return refuse('ip_not_allowed', notAllowed('/dst', canonical.dst, caller));
  if (created.limited) return 'limited';
  const row: RuleRow = {
    uuid: rule.uuid,
    sequence: created.sequence,
    owner_uuid: caller.accountUuid,
    provider_uuid: created.provider_uuid,
    fields,
    created_ms: created.created_ms,
    updated_ms: created.created_ms,
    expires_ms: rule.expiresAt?.getTime() ?? null,
    change_xid: created.change_xid,
    change_position: created.sequence,
    deleted: false,
    ...ofCustomer,
    ...noHits,
  };
  return done({ row, confirmBy: created.deadline ?? undefined });
}
