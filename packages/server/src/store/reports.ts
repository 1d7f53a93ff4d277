/**
 * Stores what routers report: many reports in one transaction, so that ten thousand routers that acknowledge the same
 * change cost a few commits. Decides nothing about states.
 */
import type pg from 'pg';
import { type Cursor, compareCursors } from './cursor.ts';
import { addHits, type ReportedCounters } from './report-hits.ts';
import { type ReportedProbe, saveProbes } from './report-probes.ts';
import { inTransaction } from './transaction.ts';

export interface StoredReport {
  readonly routerUuid: string;
  /** Hex, of the key that it came with. */
  readonly keyHash: string;
  /** Undefined: nothing is in force there, but for what `resumes` tells. */
  readonly cursor: Cursor | undefined;
  /** Without a cursor: what the router acknowledged before, while enforcing, stands up to here, and so do its failures. */
  readonly resumes?: Cursor | undefined;
  /** What it holds was told by another log: it begins anew, and when it acknowledged what is forgotten. Absent: no. */
  readonly foreign?: boolean | undefined;
  /** Tunnels alone hold its cursor back. Absent: no. */
  readonly waitsForTunnels?: boolean | undefined;
  readonly enforcement: 'kernel' | 'dry';
  readonly enforcementReason: string | undefined;
  /** A dry router's kernel still holds an older table: nothing is removed from it. Absent: no. */
  readonly tableLeft?: boolean | undefined;
  /** What it enforces besides rules. Absent: nothing. */
  readonly capabilities?: readonly string[] | undefined;
  /** Every object that the router refuses at present. */
  readonly failures: readonly { readonly uuid: string; readonly reason: string }[];
  readonly counters: ReportedCounters | undefined;
  /** Absent: none was made since the last report. */
  readonly probes?: readonly ReportedProbe[] | undefined;
  readonly status: Readonly<Record<string, unknown>> | undefined;
}

export interface SavedReports {
  /** The database's clock, when the reports were stored. */
  readonly atMilliseconds: number;
  /** Routers that exist and still have the key their report came with; reports of others were left aside. */
  readonly routerUuids: ReadonlySet<string>;
  /** Routers whose cursor lies beyond the log's end: nothing of their report was stored. */
  readonly ahead: ReadonlySet<string>;
  /** Of each router whose report was stored: up to where everything is in force there now. */
  readonly acked: ReadonlyMap<string, Cursor | undefined>;
}

/** Runs a named statement in the transaction that stores the reports. */
export type ReportStatement = <R extends pg.QueryResultRow>(
  name: string,
  text: string,
  values: unknown[],
) => Promise<pg.QueryResult<R>>;

/** Rows are locked in the order of their uuid: two replicas that store the same router's reports cannot deadlock. */
const LOCK = `select uuid::text as uuid, encode(key_hash, 'hex') as key_hash, enforcement,
    acked_xid::text as acked_xid, acked_position, pg_snapshot_xmax(pg_current_snapshot())::text as end,
    (extract(epoch from clock_timestamp()) * 1000)::float8 as at_ms
  from router where uuid = any($1::uuid[]) order by uuid for no key update`;

const ROUTERS = `update router r set enforcement = n.enforcement, enforcement_reason = n.reason, table_left = n.table_left,
    acked_xid = n.xid::xid8, acked_position = n.position, last_seen_at = to_timestamp($7::float8 / 1000),
    status = coalesce(n.status::json, r.status), capabilities = string_to_array(n.capabilities, ' '),
    waits_for_tunnels = n.waits_for_tunnels
  from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::int8[], $6::text[], $8::bool[], $9::text[], $10::bool[])
    n (uuid, enforcement, reason, xid, position, status, table_left, capabilities, waits_for_tunnels)
  where r.uuid = n.uuid`;

/**
 * A router that fell back to an older state takes back what it acknowledged beyond it; one that has none of this log, all.
 * Of one that cannot tell nothing is taken back: when it has put something in force stays true.
 */
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

/** At most one report a router. All of them, or none. Throws what the driver throws. */
export function saveReports(pool: pg.Pool, reports: readonly StoredReport[]): Promise<SavedReports> {
  return inTransaction(pool, (client) => save(client, reports));
}

async function save(client: pg.PoolClient, reports: readonly StoredReport[]): Promise<SavedReports> {
  const statement: ReportStatement = (name, text, values) => client.query({ name, text, values });
  const locked = await statement<LockedRouter>('reports_lock', LOCK, [reports.map((report) => report.routerUuid)]);
  const routers = new Map(locked.rows.map((row) => [row.uuid, row]));
  const routerUuids = new Set(
    reports.flatMap(({ routerUuid, keyHash }) => (routers.get(routerUuid)?.key_hash === keyHash ? [routerUuid] : [])),
  );
  const end = { xid: Number(locked.rows[0]?.end ?? 0), position: 0 };
  const ahead = new Set(
    reports.flatMap(({ routerUuid, cursor, resumes }) => {
      const told = cursor ?? resumes;
      return told !== undefined && compareCursors(told, end) > 0 ? [routerUuid] : [];
    }),
  );
  const known = reports.filter(({ routerUuid }) => routerUuids.has(routerUuid) && !ahead.has(routerUuid));
  const atMilliseconds = Math.floor(locked.rows[0]?.at_ms ?? Date.now());
  const acked = new Map(known.map((report) => [report.routerUuid, ackedOf(report, routers.get(report.routerUuid))]));
  if (known.length === 0) return { atMilliseconds, routerUuids, ahead, acked };

  const uuids = known.map((report) => report.routerUuid);
  const placesOf = (some: readonly StoredReport[]): [uuids: string[], xids: unknown[], positions: unknown[]] => {
    const places = some.map((report) => acked.get(report.routerUuid));
    return [
      some.map((report) => report.routerUuid),
      places.map((place) => (place === undefined ? null : String(place.xid))),
      places.map((place) => place?.position ?? null),
    ];
  };
  const [, xids, positions] = placesOf(known);
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
    known.map((report) => report.waitsForTunnels ?? false),
  ]);
  const placed = known.filter((report) => acked.get(report.routerUuid) !== undefined || report.foreign);
  await statement('reports_retract', RETRACT, placesOf(placed));
  const acknowledging = known.filter((report) => report.cursor !== undefined);
  await statement('reports_acknowledge', ACKNOWLEDGE, [...placesOf(acknowledging), atMilliseconds]);

  const failures = known.flatMap((report) =>
    [...new Map(report.failures.map((failure) => [failure.uuid, failure.reason]))].map(([uuid, reason]) => ({
      router: report.routerUuid,
      uuid,
      reason,
    })),
  );
  const failing = [failures.map((failure) => failure.router), failures.map((failure) => failure.uuid)];
  const whole = known.filter((report) => report.resumes === undefined).map((report) => report.routerUuid);
  await statement('reports_failures_gone', FAILURES_GONE, [whole, ...failing]);
  if (failures.length > 0) {
    await statement('reports_failures', FAILURES, [...failing, failures.map((failure) => failure.reason)]);
  }
  await addHits(statement, known);
  await saveProbes(statement, known, atMilliseconds);
  return { atMilliseconds, routerUuids, ahead, acked };
}

interface LockedRouter {
  readonly uuid: string;
  readonly key_hash: string | null;
  readonly enforcement: 'kernel' | 'dry' | null;
  readonly acked_xid: string | null;
  readonly acked_position: number | null;
  readonly end: string;
  readonly at_ms: number;
}

/** What a dry router acknowledged is in no kernel, and does not stand when it enforces. */
function ackedOf({ cursor, resumes }: StoredReport, before: LockedRouter | undefined): Cursor | undefined {
  if (resumes === undefined || before?.enforcement !== 'kernel' || before.acked_xid === null) return cursor;
  const acked = { xid: Number(before.acked_xid), position: before.acked_position ?? 0 };
  return compareCursors(acked, resumes) < 0 ? acked : resumes;
}
