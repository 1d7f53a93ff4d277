/**
 * Replaces all of the caller's rules with exactly one destination by a given set, in one transaction and with one
 * place in the change log's order, so that routers go from the old set to the new one in one step. A rule in both
 * sets stays as it is, and so do measures against attacks, which are of no customer's set.
 */
import type { CanonicalRule } from '@levee/core/firewall/wire.ts';
import { markingText } from '../store/stored-kinds.ts';
import type { Caller } from './caller.ts';
import { type Confirmation, saveConfirmation } from './confirmation.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { findPlace, notAllowed } from './own-space.ts';
import { withinQuota } from './quota.ts';
import { decideReplacement } from './rule-replacement.ts';
import { hitColumns, hitsJoin, type RuleRow, ruleColumns } from './rule-row.ts';
import type { ChangePlace } from './stored-row.ts';

export interface WantedSet {
  readonly dst: string;
  readonly rules: readonly {
    readonly uuid: string;
    readonly canonical: CanonicalRule;
    readonly expiresAt: Date | undefined;
  }[];
  readonly confirm: Confirmation | undefined;
}

export interface ReplacedSet {
  /** In the order wanted. */
  readonly rows: readonly RuleRow[];
  readonly created: readonly RuleRow[];
  /** As they were before. */
  readonly removed: readonly RuleRow[];
  readonly confirmBy: Date | undefined;
  /** Undefined: nothing changed. */
  readonly change: ChangePlace | undefined;
}

/** Two replacements of one destination at once come one after the other. */
const turnStatement = {
  name: 'replace_turn',
  text: `select pg_advisory_xact_lock(hashtextextended($1 || ' ' || $2, 0))`,
};

const storedStatement = {
  name: 'replace_stored',
  text: `select ${ruleColumns}, ${hitColumns} from firewall_rule r ${hitsJoin}
    where r.owner_uuid = $1 and r.dst = $2::cidr and r.origin = 'customer' and r.deletion_marked_at is null
    order by r.sequence for update of r`,
};

const markStatement = {
  name: 'replace_mark',
  text: `with ${markingText('firewall_rule', 'r.uuid = any($1::uuid[])')}
    select uuid::text, change_position, pg_current_xact_id()::text::int8 as change_xid from marked`,
};

/** Positions are drawn in the order wanted: it is the order of evaluation among equal priorities. */
const createStatement = {
  name: 'replace_create',
  text: `with drawn as (
      select ordered.*, nextval('change_position') as position from (
        select * from unnest($5::uuid[], $6::text[], $7::timestamptz[]) with ordinality
          given (uuid, fields, expires_at, place) order by place
      ) ordered
    ), created as (
      insert into firewall_rule (uuid, sequence, owner_uuid, provider_uuid, subnet, dst, fields, created_at,
        updated_at, expires_at, change_position)
      select uuid, position, $1, $2, $3, $4, fields::json, date_trunc('milliseconds', now()),
        date_trunc('milliseconds', now()), expires_at, position
      from drawn returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'firewall_rule', uuid from created
    )
    select ${ruleColumns}, null::int8 as packets, null::int8 as bytes, null::float8 as last_hit_ms,
      null::int4 as shared_by
    from created r order by r.sequence`,
};

export async function replaceRules(executor: Executor, caller: Caller, set: WantedSet): Promise<Outcome<ReplacedSet>> {
  await executor.rows(turnStatement, [caller.accountUuid, set.dst]);
  const place = await findPlace(executor, caller, set.dst);
  // An empty set only removes: what was created while the caller held the address may always go.
  if (place === undefined && set.rules.length > 0) return refuse('ip_not_allowed', notAllowed('?dst', set.dst, caller));
  const stored = await executor.rows<RuleRow>(storedStatement, [caller.accountUuid, set.dst]);
  if (place === undefined && stored.length === 0) return refuse('ip_not_allowed', notAllowed('?dst', set.dst, caller));

  const { kept, removed } = decideReplacement(
    stored.map((row) => {
      const fields = JSON.parse(row.fields) as CanonicalRule;
      return { uuid: row.uuid, priority: fields.priority, identity: `${row.expires_ms} ${JSON.stringify(fields)}` };
    }),
    set.rules.map(({ canonical, expiresAt }) => ({
      priority: canonical.priority,
      identity: `${expiresAt?.getTime() ?? null} ${JSON.stringify(canonical)}`,
    })),
  );
  const fresh = set.rules.filter((_, index) => kept[index] === undefined);
  // A set that does not grow is never too large: a quota below what is held takes nothing away.
  const growth = fresh.length - removed.length;
  if (growth > 0) {
    const within = await withinQuota(executor, caller, 'firewall_rules', growth);
    if (!within.ok) return within;
  }
  const marked =
    removed.length === 0 ? [] : await executor.rows<ChangePlace & { uuid: string }>(markStatement, [removed]);
  const created =
    fresh.length === 0 || place === undefined
      ? []
      : await executor.rows<RuleRow>(createStatement, [
          caller.accountUuid,
          place.provider_uuid,
          place.subnet,
          set.dst,
          fresh.map((rule) => rule.uuid),
          fresh.map((rule) => JSON.stringify(rule.canonical)),
          fresh.map((rule) => rule.expiresAt ?? null),
        ]);

  const rowOf = new Map([...stored, ...created].map((row) => [row.uuid, row]));
  const positionOf = new Map(marked.map((row) => [row.uuid, row.change_position]));
  const confirmBy = await saveConfirmation(
    executor,
    caller,
    set.confirm,
    [
      ...created.map((row) => ({ uuid: row.uuid, position: row.change_position, before: null })),
      ...removed.map((uuid) => ({
        uuid,
        position: positionOf.get(uuid) ?? 0,
        before: rowOf.get(uuid) ?? null,
      })),
    ],
    set.dst,
  );
  const rows = set.rules.flatMap((rule, index) => rowOf.get(kept[index] ?? rule.uuid) ?? []);
  const change = created.at(-1) ?? marked.toSorted((a, b) => a.change_position - b.change_position).at(-1);
  const gone = removed.flatMap((uuid) => rowOf.get(uuid) ?? []);
  return done({ rows, created, removed: gone, confirmBy, change });
}
