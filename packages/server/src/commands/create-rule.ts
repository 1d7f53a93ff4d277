/**
 * Creates a firewall rule: one statement finds the caller's subnet that covers the destination, stores the rule,
 * writes the change log and, when asked for, how to undo it. One round trip and one commit.
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
 * $1 uuid, $2 owner, $3 dst, $4 whether subnets that users hold are out of bounds, $5 fields, $6 expiry, $7 change,
 * $8 seconds to confirm.
 */
const createStatement = {
  name: 'rule_create',
  text: `with place as (
      select s.subnet, s.provider_uuid from subnet s
      where s.account_uuid = $2 and s.subnet >>= $3::cidr
        and not ($4 and exists (select from subnet u where u.role = 'user' and u.subnet && $3::cidr))
      limit 1
    ), rule as (
      insert into firewall_rule (uuid, sequence, owner_uuid, provider_uuid, subnet, dst, fields, created_at,
        updated_at, expires_at, change_position)
      select $1, drawn.position, $2, place.provider_uuid, place.subnet, $3, $5, date_trunc('milliseconds', now()),
        date_trunc('milliseconds', now()), $6, drawn.position
      from place, lateral (select nextval('change_position') as position, place.subnet) drawn
      returning sequence, provider_uuid, change_xid, created_at
    ), logged as (
      insert into change (position, kind, object_uuid) select sequence, 'firewall_rule', $1 from rule
    ), undo as (
      insert into confirmation (change_uuid, owner_uuid, deadline, undo)
      select $7, $2, now() + make_interval(secs => $8),
        json_build_array(json_build_object('uuid', $1::uuid, 'position', sequence, 'before', null))
      from rule where $8::float8 is not null
      returning deadline
    )
    select sequence, provider_uuid::text, change_xid::text, (extract(epoch from created_at) * 1000)::float8 as created_ms,
      (select deadline from undo) as deadline
    from rule`,
};

interface CreatedRow {
  readonly sequence: number;
  readonly provider_uuid: string;
  readonly change_xid: string;
  readonly created_ms: number;
  readonly deadline: Date | null;
}

export async function createRule(executor: Executor, caller: Caller, rule: NewRule): Promise<Outcome<CreatedRule>> {
  const { canonical } = rule;
  const fields = JSON.stringify(canonical);
  const [created] = await executor.rows<CreatedRow>(createStatement, [
    rule.uuid,
    caller.accountUuid,
    canonical.dst,
    caller.role === 'provider',
    fields,
    rule.expiresAt ?? null,
    rule.confirm?.changeUuid ?? null,
    rule.confirm?.withinSeconds ?? null,
  ]);
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
    disabled: canonical.disabled,
    ...noHits,
  };
  return done({ row, confirmBy: created.deadline ?? undefined });
}
