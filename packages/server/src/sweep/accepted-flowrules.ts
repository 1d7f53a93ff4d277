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
import { budgetTurn } from '../store/budget-turn.ts';
import { inTransaction } from '../store/transaction.ts';

/** Rows a transaction: one of ours stays short. */
const BATCH = 100;

/** A rule that has gone for good is seen by its absence. */
const due = `r.origin in ('attack', 'operator') and r.deletion_marked_at is null
    and (r.held_by is null or r.held_by = 'accept') and not r.overrides_accept and (
      exists (select from firewall_rule f where f.dst && r.dst and f.origin = 'customer' and f.change_xid >= r.judged_xid)
      or (r.held_by = 'accept' and not exists (
        select from firewall_rule f where f.uuid = r.held_rule and f.deletion_marked_at is null))
    )`;

/** Nearly always there is none: then nobody's turn is taken. */
const ANY = `select exists (select from flowrule r where ${due}) as any`;

/** Where a transaction stays open for long, what was just judged is due again: one pass goes by the sequence. */
const DUE = `select r.uuid::text as uuid, r.sequence, r.dst::text as dst, r.fields, r.held,
    r.fields->>'action' = 'blackhole' as is_blackhole
  from flowrule r where r.sequence > $1 and ${due}
  order by r.sequence limit ${BATCH} for update skip locked`;

const BUDGET = `select count(*)::int as used from flowrule
  where deletion_marked_at is null and held is null and fields->>'action' <> 'blackhole'`;

const JUDGED = 'update flowrule set judged_xid = $2::xid8 where uuid = $1 and judged_xid is distinct from $2::xid8';

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
  readonly sequence: number;
  readonly dst: string;
  readonly fields: unknown;
  readonly held: string | null;
  readonly is_blackhole: boolean;
}

const overBudget = { by: 'budget', reason: 'The budget of FlowSpec routes is used up.', ruleUuid: undefined } as const;

/** Returns how many are held otherwise than before. */
export async function judgeFlowrules(pool: pg.Pool, flowspecBudget: number): Promise<number> {
  const { rows } = await pool.query<{ any: boolean }>({ name: 'sweep_accepted_any', text: ANY });
  if (rows[0]?.any !== true) return 0;
  let total = 0;
  for (let after: number | undefined = 0; after !== undefined; ) {
    const from: number = after;
    const { last, changed } = await inTransaction(pool, (client) => judgeNext(client, from, flowspecBudget));
    total += changed;
    after = last;
  }
  return total;
}

/** `last`: undefined: there are no more. */
async function judgeNext(
  client: pg.PoolClient,
  after: number,
  flowspecBudget: number,
): Promise<{ readonly last: number | undefined; readonly changed: number }> {
  await client.query(budgetTurn);
  const { rows } = await client.query<DueRow>({ name: 'sweep_accepted_due', text: DUE, values: [after] });
  if (rows.length === 0) return { last: undefined, changed: 0 };
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
  return { last: rows.length < BATCH ? undefined : rows.at(-1)?.sequence, changed };
}

async function countRoutes(client: pg.PoolClient): Promise<number> {
  const { rows } = await client.query<{ used: number }>({ name: 'sweep_accepted_budget', text: BUDGET });
  return rows[0]?.used ?? 0;
}
