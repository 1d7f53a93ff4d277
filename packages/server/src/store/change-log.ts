/**
 * Reads and prunes the change log. Entries are written by the statements of commands, in their own transactions; this
 * file never writes one.
 *
 * Order: (xid, position). An entry is settled when its xid lies below the transaction horizon: then no transaction
 * that could write before it is still under way. A bare sequence cannot promise that: positions are drawn before
 * commit, and a reader that goes by them skips whatever commits late.
 */
import type pg from 'pg';
import type { Cursor } from './cursor.ts';

export interface ChangeEntry extends Cursor {
  readonly kind: string;
  readonly objectUuid: string;
  /** Milliseconds since 1970, by the database's clock. */
  readonly atMilliseconds: number;
}

/** A rule or a filter as it is now, for every router alike. */
export interface PresentObject {
  readonly kind: 'firewall_rule' | 'filter';
  readonly uuid: string;
  readonly sequence: number;
  /** JSON text of the canonical wire fields. */
  readonly fields: string;
}

/** What happened after a cursor, folded to the present state, all of one database snapshot. */
export interface ChangesSince {
  /** The last settled entry's place, or the cursor asked from. */
  readonly cursor: Cursor;
  readonly entries: readonly ChangeEntry[];
  /**
   * Entries that are committed and not settled yet. Their objects' state is in the snapshot too, so that the state is
   * that of one moment, but the cursor stays before them: they are read again.
   */
  readonly unsettled: readonly ChangeEntry[];
  /** Rules and filters that are there. */
  readonly upsert: ReadonlyMap<string, PresentObject>;
  /** Rules and filters that are gone, or marked for deletion. */
  readonly remove: readonly string[];
  /** Tunnels that changed; what each router has of them now `present-tunnels.ts` reads. */
  readonly tunnels: ReadonlySet<string>;
  /** The last row that was read, or where reading began. */
  readonly last: Cursor;
  /** False: there is more; read on from `cursor`, or, when something is unsettled, after `last`. */
  readonly complete: boolean;
  /** The database snapshot that was read, when something in it is unsettled. */
  readonly snapshot: string | undefined;
}

/** Where a reading goes on that met unsettled entries. */
export interface ReadOn {
  /** Everything beyond it counts as unsettled: something before it is. */
  readonly after?: Cursor;
  /** `snapshot` of an earlier reading: unsettled entries that it showed are left out. */
  readonly seen?: string | undefined;
}

interface LogRow {
  readonly xid: string;
  readonly position: number;
  readonly kind: string;
  readonly object_uuid: string;
  readonly at_ms: number;
  readonly settled: boolean;
  readonly snapshot: string | null;
  readonly sequence: number | null;
  readonly fields: string | null;
}

/** What can run a statement: a pool, or a connection of one's own. */
export type Statements = Pick<pg.ClientBase, 'query'> | Pick<pg.Pool, 'query'>;

/**
 * "with ties" on xid: a transaction's entries are never torn apart, however many they are.
 *
 * "offset 0" keeps the look-up of the object one by uuid: planned as a join for the limit's thousands of entries, it reads
 * the whole table for the one entry that there is nearly always (50 ms at 100 000 rules, 0.1 ms this way). Of the two
 * tables only that of the entry's kind is looked into.
 */
const READ = `select c.xid::text as xid, c.position, c.kind, c.object_uuid::text as object_uuid,
    (extract(epoch from c.at) * 1000)::float8 as at_ms,
    c.xid < pg_snapshot_xmin(pg_current_snapshot()) as settled,
    case when c.xid >= pg_snapshot_xmin(pg_current_snapshot()) then pg_current_snapshot()::text end as snapshot,
    o.sequence, o.fields::text as fields
  from (
    select * from change
    where (xid, position) > ($1::xid8, $2::int8)
      and ($4::pg_snapshot is null or xid < pg_snapshot_xmin(pg_current_snapshot())
        or not pg_visible_in_snapshot(xid, $4::pg_snapshot))
    order by xid fetch first $3 rows with ties
  ) c
  left join lateral (
    select sequence, fields from firewall_rule
    where c.kind = 'firewall_rule' and uuid = c.object_uuid and deletion_marked_at is null
    union all
    select sequence, fields from filter
    where c.kind = 'filter' and uuid = c.object_uuid and deletion_marked_at is null
    offset 0
  ) o on true
  order by c.xid, c.position`;

/** Throws what the driver throws. `limit` entries, and the rest of the last one's transaction. */
export async function changesSince(
  db: Statements,
  cursor: Cursor,
  limit: number,
  { after, seen }: ReadOn = {},
): Promise<ChangesSince> {
  const from = after ?? cursor;
  const { rows } = await (db as pg.ClientBase).query<LogRow>({
    name: 'changes_since',
    text: READ,
    values: [String(from.xid), from.position, limit, seen ?? null],
  });
  const entries: ChangeEntry[] = [];
  const unsettled: ChangeEntry[] = [];
  const upsert = new Map<string, PresentObject>();
  const remove = new Set<string>();
  const tunnels = new Set<string>();
  for (const row of rows) {
    const entry: ChangeEntry = {
      xid: Number(row.xid),
      position: row.position,
      kind: row.kind,
      objectUuid: row.object_uuid,
      atMilliseconds: row.at_ms,
    };
    (row.settled && after === undefined ? entries : unsettled).push(entry);
    const { kind, object_uuid: uuid, sequence, fields } = row;
    if (kind === 'tunnel') tunnels.add(uuid);
    if (kind !== 'firewall_rule' && kind !== 'filter') continue;
    if (fields === null || sequence === null) remove.add(uuid);
    else upsert.set(uuid, { kind, uuid, sequence, fields });
  }
  const settled = entries.at(-1);
  const last = unsettled.at(-1) ?? settled;
  return {
    cursor: settled === undefined ? cursor : { xid: settled.xid, position: settled.position },
    entries,
    unsettled,
    upsert,
    remove: [...remove],
    tunnels,
    last: last === undefined ? from : { xid: last.xid, position: last.position },
    complete: rows.length < limit,
    snapshot: rows.find((row) => row.snapshot !== null)?.snapshot ?? undefined,
  };
}

export interface Horizon {
  /** Everything of transactions before this one is settled: as a cursor, its place is (xid, 0). */
  readonly next: Cursor;
  /** A cursor before it has lost entries to pruning. */
  readonly floor: Cursor;
}

export async function readHorizon(db: Statements): Promise<Horizon> {
  const { rows } = await (db as pg.ClientBase).query<{ xid: string; floor_xid: string; floor_position: number }>({
    name: 'change_horizon',
    text: `select pg_snapshot_xmin(pg_current_snapshot())::text as xid, xid::text as floor_xid,
      position as floor_position from change_floor`,
  });
  const row = rows[0];
  if (row === undefined) throw new Error('the table change_floor has lost its row');
  return {
    next: { xid: Number(row.xid), position: 0 },
    floor: { xid: Number(row.floor_xid), position: row.floor_position },
  };
}

/**
 * Forgets settled entries older than `keepSeconds` and raises the floor to the last of them, in one transaction.
 * Replicas that prune at once take turns on the floor's row. Returns how many entries went.
 */
export async function pruneChanges(pool: pg.Pool, keepSeconds: number): Promise<number> {
  const { rows } = await pool.query<{ pruned: number }>(
    `with last as (
        select xid, position from change
        where at < now() - make_interval(secs => $1) and xid < pg_snapshot_xmin(pg_current_snapshot())
        order by xid desc, position desc limit 1
      ), raised as (
        update change_floor f set xid = last.xid, position = last.position from last
        where (f.xid, f.position) < (last.xid, last.position)
        returning f.xid, f.position
      ), gone as (
        delete from change c using raised where (c.xid, c.position) <= (raised.xid, raised.position) returning 1
      )
      select count(*) as pruned from gone`,
    [keepSeconds],
  );
  return rows[0]?.pruned ?? 0;
}
