/**
 * Creates firewall rules: one statement finds for each the owner's subnet that covers the destination, stores it,
 * writes the change log and, when asked for, how to undo it. One round trip and one commit for any number.
 *
 * The rule's foreign key to the subnet decides a race with a removal of that subnet: a rule outside its owner's
 * addresses cannot be stored.
 */
import type { CanonicalRule } from '@levee/core/firewall/wire.ts';
import type { Caller } from './caller.ts';
import type { Confirmation } from './confirmation.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { notAllowed } from './own-space.ts';
import { noHits, type RuleRow } from './rule-row.ts';

export interface NewRule {
  readonly caller: Caller;
  readonly uuid: string;
  readonly canonical: CanonicalRule;
  readonly expiresAt: Date | undefined;
  readonly confirm: Confirmation | undefined;
}

export interface CreatedRule {
  readonly row: RuleRow;
  readonly confirmBy: Date | undefined;
}

/**
 * Arrays, one entry a rule: $1 uuid, $2 owner, $3 dst, $4 whether subnets that users hold are out of bounds, $5 fields,
 * $6 expiry, $7 change, $8 seconds to confirm.
 */
export const createRulesStatement = {
  name: 'rules_create',
  text: `with wanted as (
      select w.*, place.subnet, place.provider_uuid, nextval('change_position') as position
      from unnest($1::uuid[], $2::uuid[], $3::cidr[], $4::bool[], $5::text[], $6::timestamptz[], $7::uuid[], $8::float8[])
        w (uuid, owner, dst, is_provider, fields, expires_at, change_uuid, within)
      cross join lateral (
        select s.subnet, s.provider_uuid from subnet s
        where s.account_uuid = w.owner and s.subnet >>= w.dst
          and not (w.is_provider and exists (select from subnet u where u.role = 'user' and u.subnet && w.dst))
        limit 1
      ) place
    ), rule as (
      insert into firewall_rule (uuid, sequence, owner_uuid, provider_uuid, subnet, dst, fields, created_at,
        updated_at, expires_at, change_position)
      select uuid, position, owner, provider_uuid, subnet, dst, fields::json, date_trunc('milliseconds', now()),
        date_trunc('milliseconds', now()), expires_at, position
      from wanted
      returning uuid, sequence, provider_uuid, change_xid, created_at
    ), logged as (
      insert into change (position, kind, object_uuid) select sequence, 'firewall_rule', uuid from rule
    ), undo as (
      insert into confirmation (change_uuid, owner_uuid, deadline, undo)
      select change_uuid, owner, now() + make_interval(secs => within),
        json_build_array(json_build_object('uuid', uuid, 'position', position, 'before', null))
      from wanted where within is not null
      returning change_uuid, deadline
    )
    select rule.uuid::text as uuid, sequence, rule.provider_uuid::text as provider_uuid,
      change_xid::text::int8 as change_xid, round(date_part('epoch', created_at) * 1000) as created_ms,
      (select undo.deadline from undo join wanted using (change_uuid) where wanted.uuid = rule.uuid) as deadline
    from rule`,
};

interface CreatedRow {
  readonly uuid: string;
  readonly sequence: number;
  readonly provider_uuid: string;
  readonly change_xid: number;
  readonly created_ms: number;
  readonly deadline: Date | null;
}

/** An outcome for each, in the order given. Throws what the driver throws: then none of them is stored. */
export async function createRules(executor: Executor, rules: readonly NewRule[]): Promise<Outcome<CreatedRule>[]> {
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
  ]);
  const byUuid = new Map(created.map((row) => [row.uuid, row]));
  return rules.map((rule, index) => outcomeOf(rule, texts[index] ?? '', byUuid.get(rule.uuid)));
}

function outcomeOf(rule: NewRule, fields: string, created: CreatedRow | undefined): Outcome<CreatedRule> {
  const { canonical, caller } = rule;
  if (created === undefined) return refuse('ip_not_allowed', notAllowed('/dst', canonical.dst, caller));
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
    ...noHits,
  };
  return done({ row, confirmBy: created.deadline ?? undefined });
}
