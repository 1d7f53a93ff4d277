/**
 * Stores what routers report: many reports in one transaction, so that ten thousand routers that acknowledge the same
 * change cost a few commits. Decides nothing about states.
 */
import type pg from 'pg';
import { type Cursor, compareCursors } from './cursor.ts';
import { inTransaction } from './transaction.ts';

export interface HitDelta {
  readonly uuid: string;
  readonly packets: number;
  readonly bytes: number;
  /** RFC 3339. */
  readonly lastHitAt: string;
  readonly sharedBy: number | undefined;
}

export interface StoredReport {
  readonly routerUuid: string;
  /** Hex, of the key that it came with. */
  readonly keyHash: string;
  /** Undefined: nothing is in force there. */
  readonly cursor: Cursor | undefined;
  readonly enforcement: 'kernel' | 'dry';
  readonly enforcementReason: string | undefined;
  /** A dry router's kernel still holds an older table: nothing is removed from it. Absent: no. */
  readonly tableLeft?: boolean | undefined;
  /** What it enforces besides rules. Absent: nothing. */
  readonly capabilities?: readonly string[] | undefined;
  /** Every object that the router refuses at present. */
  readonly failures: readonly { readonly uuid: string; readonly reason: string }[];
  readonly counters: { readonly run: string; readonly number: number; readonly hits: readonly HitDelta[] } | undefined;
  readonly status: Readonly<Record<string, unknown>> | undefined;
}

export interface SavedReports {
  /** The database's clock, when the reports were stored. */
  readonly atMilliseconds: number;
  /** Routers that exist and still have the key their report came with; reports of others were left aside. */
  readonly routerUuids: ReadonlySet<string>;
  /** Routers whose cursor lies beyond the log's end: nothing of their report was stored. */
  readonly ahead: ReadonlySet<string>;
}

/** Rows are locked in the order of their uuid: two replicas that store the same router's reports cannot deadlock. */
const LOCK = `select uuid::text as uuid, encode(key_hash, 'hex') as key_hash, pg_snapshot_xmax(pg_current_snapshot())::text as end, (extract(epoch from clock_timestamp()) * 1000)::float8 as at_ms
  from router where uuid = any($1::uuid[]) order by uuid for no key update`;

const ROUTERS = `update router r set enforcement = n.enforcement, enforcement_reason = n.reason, table_left = n.table_left,
    acked_xid = n.xid::xid8, acked_position = n.position, last_seen_at = to_timestamp($7::float8 / 1000),
    status = coalesce(n.status::json, r.status), capabilities = string_to_array(n.capabilities, ' ')
  from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::int8[], $6::text[], $8::bool[], $9::text[])
    n (uuid, enforcement, reason, xid, position, status, table_left, capabilities)
  where r.uuid = n.uuid`;

/** A router that fell back to an older state takes back what it acknowledged beyond it. */
const RETRACT = `delete from router_ack a using unnest($1::uuid[], $2::text[], $3::int8[]) n (uuid, xid, position)
  where a.router_uuid = n.uuid
    and (a.xid, a.position) > (coalesce(n.xid, '0')::xid8, coalesce(n.position, 0))`;

const ACKNOWLEDGE = `insert into router_ack (router_uuid, xid, position, at)
  select n.uuid, n.xid::xid8, n.position, to_timestamp($4::float8 / 1000)
  from unnest($1::uuid[], $2::text[], $3::int8[]) n (uuid, xid, position) where n.xid is not null
  on conflict do nothing`;

const FAILURES_GONE = `delete from router_failure f where f.router_uuid = any($1::uuid[])
  and not exists (
    select from unnest($2::uuid[], $3::uuid[]) n (router_uuid, object_uuid)
    where n.router_uuid = f.router_uuid and n.object_uuid = f.object_uuid
  )`;

const FAILURES = `insert into router_failure (router_uuid, object_uuid, reason)
  select * from unnest($1::uuid[], $2::uuid[], $3::text[])
  on conflict (router_uuid, object_uuid) do update set reason = excluded.reason, at = excluded.at
    where router_failure.reason <> excluded.reason`;

/** A number that was taken before, by the same run, is a repetition. */
const COUNTED = `update router r set counters_run = n.run, counters_number = n.number
  from unnest($1::uuid[], $2::uuid[], $3::int8[]) n (uuid, run, number)
  where r.uuid = n.uuid and (r.counters_run is distinct from n.run or r.counters_number < n.number)
  returning r.uuid::text as uuid`;

/** Sums stop at 2^53 - 1: what one router miscounts must not overflow, and JSON carries no more. */
const HITS = `insert into rule_hit (rule_uuid, router_uuid, packets, bytes, last_hit_at, shared_by)
  select n.rule, n.router, n.packets, n.bytes, n.last_hit_at, n.shared_by
  from unnest($1::uuid[], $2::uuid[], $3::int8[], $4::int8[], $5::timestamptz[], $6::int4[])
    n (rule, router, packets, bytes, last_hit_at, shared_by)
  join firewall_rule r on r.uuid = n.rule
  order by n.rule, n.router
  on conflict (rule_uuid, router_uuid) do update set
    packets = least(rule_hit.packets + excluded.packets, ${Number.MAX_SAFE_INTEGER}),
    bytes = least(rule_hit.bytes + excluded.bytes, ${Number.MAX_SAFE_INTEGER}), last_hit_at = greatest(rule_hit.last_hit_at, excluded.last_hit_at),
    shared_by = excluded.shared_by`;

/** At most one report a router. All of them, or none. Throws what the driver throws. */
export function saveReports(pool: pg.Pool, reports: readonly StoredReport[]): Promise<SavedReports> {
  return inTransaction(pool, (client) => save(client, reports));
}

async function save(client: pg.PoolClient, reports: readonly StoredReport[]): Promise<SavedReports> {
  const statement = <R extends pg.QueryResultRow>(name: string, text: string, values: unknown[]) =>
    client.query<R>({ name, text, values });
  const locked = await statement<{ uuid: string; key_hash: string | null; end: string; at_ms: number }>(
    'reports_lock',
    LOCK,
    [reports.map((report) => report.routerUuid)],
  );
  const keys = new Map(locked.rows.map((row) => [row.uuid, row.key_hash]));
  const routerUuids = new Set(
    reports.flatMap(({ routerUuid, keyHash }) => (keys.get(routerUuid) === keyHash ? [routerUuid] : [])),
  );
  const end = { xid: Number(locked.rows[0]?.end ?? 0), position: 0 };
  const ahead = new Set(
    reports.flatMap(({ routerUuid, cursor }) =>
      cursor !== undefined && compareCursors(cursor, end) > 0 ? [routerUuid] : [],
    ),
  );
  const known = reports.filter(({ routerUuid }) => routerUuids.has(routerUuid) && !ahead.has(routerUuid));
  const atMilliseconds = Math.floor(locked.rows[0]?.at_ms ?? Date.now());
  if (known.length === 0) return { atMilliseconds, routerUuids, ahead };

  const uuids = known.map((report) => report.routerUuid);
  const xids = known.map((report) => (report.cursor === undefined ? null : String(report.cursor.xid)));
  const positions = known.map((report) => report.cursor?.position ?? null);
  await statement('reports_routers', ROUTERS, [
    uuids,
    known.map((report) => report.enforcement),
    known.map((report) => report.enforcementReason ?? null),
    xids,
    positions,
    known.map((report) => (report.status === undefined ? null : JSON.stringify(report.status))),
    atMilliseconds,
    known.map((report) => report.tableLeft ?? false),
    known.map((report) => (report.capabilities ?? []).join(' ')),
  ]);
  await statement('reports_retract', RETRACT, [uuids, xids, positions]);
  await statement('reports_acknowledge', ACKNOWLEDGE, [uuids, xids, positions, atMilliseconds]);

  const failures = known.flatMap((report) =>
    [...new Map(report.failures.map((failure) => [failure.uuid, failure.reason]))].map(([uuid, reason]) => ({
      router: report.routerUuid,
      uuid,
      reason,
    })),
  );
  const failing = [failures.map((failure) => failure.router), failures.map((failure) => failure.uuid)];
  await statement('reports_failures_gone', FAILURES_GONE, [uuids, ...failing]);
  if (failures.length > 0) {
    await statement('reports_failures', FAILURES, [...failing, failures.map((failure) => failure.reason)]);
  }
  await addHits(statement, known);
  return { atMilliseconds, routerUuids, ahead };
}

async function addHits(
  statement: <R extends pg.QueryResultRow>(name: string, text: string, values: unknown[]) => Promise<pg.QueryResult<R>>,
  reports: readonly StoredReport[],
): Promise<void> {
  const counted = reports.flatMap(({ routerUuid, counters }) =>
    counters === undefined ? [] : [{ routerUuid, ...counters }],
  );
  if (counted.length === 0) return;
  const { rows } = await statement<{ uuid: string }>('reports_counted', COUNTED, [
    counted.map((each) => each.routerUuid),
    counted.map((each) => each.run),
    counted.map((each) => each.number),
  ]);
  const fresh = new Set(rows.map((row) => row.uuid));
  const hits = counted
    .filter((each) => fresh.has(each.routerUuid))
    .flatMap(({ routerUuid, hits: list }) =>
      [...mergeHits(list).values()].map((hit) => ({ router: routerUuid, ...hit })),
    );
  if (hits.length === 0) return;
  await statement('reports_hits', HITS, [
    hits.map((hit) => hit.uuid),
    hits.map((hit) => hit.router),
    hits.map((hit) => hit.packets),
    hits.map((hit) => hit.bytes),
    hits.map((hit) => hit.lastHitAt),
    hits.map((hit) => hit.sharedBy ?? null),
  ]);
}

/** One row cannot be updated twice by one statement. */
function mergeHits(hits: readonly HitDelta[]): Map<string, HitDelta> {
  const merged = new Map<string, HitDelta>();
  for (const hit of hits) {
    const before = merged.get(hit.uuid);
    if (before === undefined) merged.set(hit.uuid, hit);
    else {
      const lastHitAt = Date.parse(hit.lastHitAt) > Date.parse(before.lastHitAt) ? hit.lastHitAt : before.lastHitAt;
      merged.set(hit.uuid, {
        ...hit,
        lastHitAt,
        packets: Math.min(before.packets + hit.packets, Number.MAX_SAFE_INTEGER),
        bytes: Math.min(before.bytes + hit.bytes, Number.MAX_SAFE_INTEGER),
      });
    }
  }
  return merged;
}
