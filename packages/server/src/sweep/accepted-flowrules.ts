/**
 * Holds flowrules in whose way a customer's accept rule has come, and lets go of those in whose way none is any more. Whatever
 * command or undoing changed the rule is heard of here, by the transactions that rules and judgements bear. The judgement
 * itself is core's (mitigation/held-by-accept.ts).
 *
 * Between the rule's commit and the flowrule's lies the sweep's sleep, a second at most (decision 0143).
 */
import { parseFlowrule } from '@levee/core/flowspec/parse-flowrule.ts';
import { heldByAccept } from '@levee/core/mitigation/held-by-accept.ts';
import type pg from 'pg';
import { readAcceptingRules } from '../store/accepting-rules.ts';
import { inTransaction } from '../store/transaction.ts';

/** Rows a transaction: one of ours stays short. */
const BATCH = 100;

/** A rule that has gone for good is seen by its absence. */
const DUE = `select r.uuid::text as uuid, r.dst::text as dst, r.fields, r.held, r.held_rule::text as held_rule,
    r.fields->>'action' = 'blackhole' as is_blackhole
  from flowrule r
  where r.origin in ('attack', 'operator') and r.deletion_marked_at is null and (r.held_by is null or r.held_by = 'accept')
    and not r.overrides_accept and (
      exists (select from firewall_rule f where f.dst && r.dst and f.origin = 'customer' and f.change_xid >= r.judged_xid)
      or (r.held_by = 'accept' and not exists (
        select from firewall_rule f where f.uuid = r.held_rule and f.deletion_marked_at is null))
    )
  order by r.sequence limit ${BATCH} for update skip locked`;

const BUDGET = `with turn as materialized (select pg_advisory_xact_lock(hashtextextended('flowspec budget', 0)))
  select count(*)::int as used from turn left join flowrule on deletion_marked_at is null and held is null
    and fields->>'action' <> 'blackhole'
  where flowrule.uuid is not null`;

const JUDGED = 'update flowrule set judged_xid = $2::xid8 where uuid = $1';

const CHANGE = `with changed as (
    update flowrule r set held = $2, held_by = $3, held_rule = $4, judged_xid = $5::xid8, failure = null,
      updated_at = greatest(r.updated_at, date_trunc('milliseconds', now())),
      change_xid = pg_current_xact_id(), change_position = nextval('change_position')
    where r.uuid = $1 returning r.*
  ), logged as (
    insert into change (position, kind, object_uuid) select change_position, 'flowrule', uuid from changed
  )
  insert into audit (operation, kind, object_uuid, owner_uuid, provider_uuid, before, after)
  select 'mitigate', 'flowrule', c.uuid, c.owner_uuid, c.provider_uuid, json_build_object('held', b.held),
    json_build_object('held', c.held)
  from changed c join flowrule b on b.uuid = c.uuid`;

interface DueRow {
  readonly uuid: string;
  readonly dst: string;
  readonly fields: unknown;
  readonly held: string | null;
  readonly held_rule: string | null;
  readonly is_blackhole: boolean;
}

const overBudget = { by: 'budget', reason: 'The budget of FlowSpec routes is used up.', ruleUuid: undefined } as const;

/** Returns how many are held otherwise than before. */
export async function judgeFlowrules(pool: pg.Pool, flowspecBudget: number): Promise<number> {
  for (let total = 0; ; ) {
    const { due, changed } = await inTransaction(pool, (client) => judgeNext(client, flowspecBudget));
    total += changed;
    if (due < BATCH) return total;
  }
}

async function judgeNext(
  client: pg.PoolClient,
  flowspecBudget: number,
): Promise<{ readonly due: number; readonly changed: number }> {
  const { rows } = await client.query<DueRow>({ name: 'sweep_accepted_due', text: DUE });
  if (rows.length === 0) return { due: 0, changed: 0 };
  const { rules, judgedXid } = await readAcceptingRules(
    client,
    rows.map(({ dst }) => dst),
  );
  let used: number | undefined;
  let changed = 0;
  for (const row of rows) {
    const parsed = parseFlowrule(row.fields);
    if (!parsed.ok) throw new Error(`flowrule ${row.uuid} is stored with fields that do not parse`);
    const accepted = heldByAccept(parsed.flowrule, rules);
    const isReleased = accepted === undefined && row.held !== null && !row.is_blackhole;
    if (isReleased) used ??= await countRoutes(client);
    const held = isReleased && (used ?? 0) >= flowspecBudget ? overBudget : accepted;
    if (held === undefined && isReleased) used = (used ?? 0) + 1;
    if ((held?.reason ?? null) === row.held) {
      await client.query({ name: 'sweep_accepted_judged', text: JUDGED, values: [row.uuid, judgedXid] });
      continue;
    }
    const values = [row.uuid, held?.reason ?? null, held?.by ?? null, held?.ruleUuid ?? null, judgedXid];
    await client.query({ name: 'sweep_accepted_change', text: CHANGE, values });
    changed++;
  }
  return { due: rows.length, changed };
}

async function countRoutes(client: pg.PoolClient): Promise<number> {
  const { rows } = await client.query<{ used: number }>({ name: 'sweep_accepted_budget', text: BUDGET });
  return rows[0]?.used ?? 0;
}
