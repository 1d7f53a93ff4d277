/**
 * Tells the change log of this database from every other that a router may have followed under the same address: of a
 * database that was made anew, restored from a backup, or lost its last commits when a standby took over. In each, the
 * same transaction numbers come again and mean something else.
 */
import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { Statements } from './change-log.ts';

/** The cluster, its history (a new timeline begins at each recovery or promotion), the database in it. */
const IDENTITY = `select (select system_identifier from pg_control_system())::text as cluster,
  left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline,
  (select oid from pg_database where datname = current_database())::text as database`;

/** Ten characters of [0-9a-f]. Throws what the driver throws. */
export async function readLogIdentity(db: Statements): Promise<string> {
  const { rows } = await (db as pg.ClientBase).query<{ cluster: string; timeline: string; database: string }>(IDENTITY);
  const [row] = rows;
  if (row === undefined) throw new Error('the database does not say which it is');
  const text = `${row.cluster} ${row.timeline} ${row.database}`;
  return createHash('sha256').update(text).digest('hex').slice(0, 10);
}
