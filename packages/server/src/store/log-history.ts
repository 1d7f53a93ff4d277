/**
 * Brings transaction numbers that were stored under another log into the present one. A restored dump, or a standby
 * that took over without the last commits, holds numbers that this cluster has not reached: changes would never
 * settle, acknowledgements would cover what no router has seen. Never touches what a rule says.
 */
import type pg from 'pg';
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

/** Numbers from here on were never given out here. */
const AHEAD = `select exists (select from firewall_rule where change_xid >= pg_snapshot_xmax(pg_current_snapshot()))
    or exists (select from change where xid >= pg_snapshot_xmax(pg_current_snapshot()))
    or exists (select from router where acked_xid > pg_snapshot_xmax(pg_current_snapshot()))
    or exists (select from change_floor where xid > pg_snapshot_xmax(pg_current_snapshot())) as ahead`;

/**
 * A change's place is set to this transaction where it lies ahead; places behind are covered by any acknowledgement to
 * come, which is right: each follows a snapshot. The floor is where such a snapshot can begin, not this transaction:
 * an older one may be open.
 */
const REBASE = [
  `update firewall_rule set change_xid = pg_current_xact_id()
    where change_xid >= pg_snapshot_xmax(pg_current_snapshot())`,
  'delete from change',
  'delete from router_ack',
  'update router set acked_xid = null, acked_position = null where acked_xid is not null',
  'update change_floor set xid = pg_snapshot_xmin(pg_current_snapshot()), position = 0',
];

/**
 * To be called before anything follows the log of this server. A log of unknown history (a database that an older
 * Levee wrote) is only rebased when a number lies ahead: other replicas may be following it. Throws what the driver
 * throws; no time limit, a rebase rewrites rules.
 */
export async function followLog(database: Pick<Database, 'connect'>): Promise<FollowedLog> {
  const client = await database.connect('levee log history');
  try {
    return await inTransactionOn(client, async () => {
      await client.query(TURN);
      const identity = await readLogIdentity(client);
      const { rows } = await client.query<{ identity: string }>('select identity from log_history');
      const rebased = rows[0]?.identity !== identity && (rows[0] !== undefined || (await isAhead(client)));
      if (rebased) for (const statement of REBASE) await client.query(statement);
      if (rows[0]?.identity !== identity) {
        await client.query(
          `insert into log_history (identity) values ($1)
            on conflict (singleton) do update set identity = excluded.identity, since = excluded.since`,
          [identity],
        );
      }
      return { identity, rebased };
    });
  } finally {
    await client.end().catch(() => {});
  }
}

async function isAhead(client: pg.Client): Promise<boolean> {
  return (await client.query<{ ahead: boolean }>(AHEAD)).rows[0]?.ahead === true;
}
