/**
 * Brings transaction numbers that were stored under another log into the present one. A restored dump, or a standby
 * that took over without the last commits, holds numbers that this cluster has not reached: changes would never
 * settle, acknowledgements would cover what no router has seen. Never touches what an object says.
 */
import type pg from 'pg';
import { changingTables, logPlaces } from './change-places.ts';
import type { Database } from './database.ts';
import { readLogIdentity } from './log-identity.ts';
import { inTransactionOn } from './transaction.ts';

/** Everyone who follows this log has heard of it afterwards. `rebased`: stored numbers were another log's. */
export interface FollowedLog {
  readonly identity: string;
  readonly rebased: boolean;
}

/** One at a time; the next one finds it done. */
const TURN = `select pg_advisory_xact_lock(hashtextextended('levee log history', 0))`;

/** The first number that was never given out here. */
const END = 'pg_snapshot_xmax(pg_current_snapshot())';

const AHEAD = `select ${logPlaces
  .map(({ table, column, written }) => `exists (select from ${table} where ${column} ${written ? '>=' : '>'} ${END})`)
  .join(' or ')} as ahead`;

/** Of the entries that nobody has told events of, what they are about is looked at again. */
const CARRY = `with forgotten as (delete from change returning xid, position, kind, object_uuid)
  insert into change (kind, object_uuid)
  select kind, object_uuid from forgotten f
  where exists (select from event_log)
    and not exists (
      select from event_log e join log_history h on h.identity = e.log where (f.xid, f.position) <= (e.xid, e.position)
    )
  group by kind, object_uuid order by max(position)`;

const moveText = (kind: string, table: string) => `with moved as (
    update ${table} set change_xid = pg_current_xact_id() where change_xid >= ${END} returning uuid
  )
  insert into change (kind, object_uuid) select '${kind}', uuid from moved`;

/**
 * A change's place is set to this transaction where it lies ahead, with an entry, as for every other write; places behind
 * are covered by any acknowledgement to come, which is right: each follows a snapshot. The floor is where such a snapshot
 * can begin, not this transaction: an older one may be open. How far events were followed their leader knows to be
 * another log's.
 */
const REBASE = [
  CARRY,
  ...Object.entries(changingTables).map(([kind, table]) => moveText(kind, table)),
  // In the order of their sequence from now on, behind all that is not ahead.
  `update audit set xid = pg_current_xact_id() where xid >= ${END}`,
  'delete from router_ack',
  'update router set acked_xid = null, acked_position = null where acked_xid is not null',
  'update change_floor set xid = pg_snapshot_xmin(pg_current_snapshot()), position = 0',
];

/**
 * To be called before anything follows the log of this server. A log of unknown history (a database that an older
 * Levee wrote) is only rebased when a number lies ahead: other replicas may be following it. Throws what the driver
 * throws; no time limit, a rebase rewrites objects.
 */
export async function followLog(database: Pick<Database, 'connect'>): Promise<FollowedLog> {
  const client = await database.connect('levee log history');
  try {
    return await inTransactionOn(client, async () => {
      await client.query(TURN);
      const identity = await readLogIdentity(client);
      const { rows } = await client.query<{ identity: string }>('select identity from log_history');
      const known = rows[0]?.identity;
      if (known === identity) return { identity, rebased: false };
      const rebased = known !== undefined || (await isAhead(client));
      if (rebased) for (const statement of REBASE) await client.query(statement);
      await client.query(
        `insert into log_history (identity) values ($1)
          on conflict (singleton) do update set identity = excluded.identity, since = excluded.since`,
        [identity],
      );
      return { identity, rebased };
    });
  } finally {
    await client.end().catch(() => {});
  }
}

async function isAhead(client: pg.Client): Promise<boolean> {
  return (await client.query<{ ahead: boolean }>(AHEAD)).rows[0]?.ahead === true;
}
