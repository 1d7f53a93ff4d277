/**
 * Reads the whole desired state as of one moment, in chunks: memory stays that of a chunk, however many rules there
 * are. Holds one connection and one read-only transaction while it is iterated; the consumer must not dawdle.
 */
import type pg from 'pg';
import type { PresentRule } from './change-log.ts';
import type { Cursor } from './cursor.ts';

export interface Snapshot {
  /** Changes from here on are not promised to be in the chunks; those before are. */
  readonly cursor: Cursor;
  /** The next rules in order of creation, none that is marked for deletion; empty at the end. */
  next(): Promise<readonly PresentRule[]>;
  /** Gives the connection back. To be called in any case; idempotent, never throws. */
  close(): Promise<void>;
}

/**
 * Repeatable read: all chunks see the transactions that were committed at the first statement, which also gives the
 * cursor (its xmin, 0). Transactions from xmin on may be in the chunks as well; reading on from the cursor repeats
 * them, which is harmless because changes carry the present state.
 */
export async function openSnapshot(pool: pg.Pool, chunkRules: number): Promise<Snapshot> {
  const client = await pool.connect();
  try {
    await client.query('begin transaction isolation level repeatable read read only');
    const { rows } = await client.query<{ xid: string }>('select pg_snapshot_xmin(pg_current_snapshot())::text as xid');
    await client.query(
      `declare desired no scroll cursor for
        select uuid::text as uuid, sequence, fields::text as fields from firewall_rule
        where deletion_marked_at is null order by sequence`,
    );
    return new OpenSnapshot(client, chunkRules, { xid: Number(rows[0]?.xid), position: 0 });
  } catch (error) {
    client.release(error as Error);
    throw error;
  }
}

class OpenSnapshot implements Snapshot {
  readonly cursor: Cursor;
  readonly #client: pg.PoolClient;
  readonly #fetch: string;
  #closed = false;

  constructor(client: pg.PoolClient, chunkRules: number, cursor: Cursor) {
    this.#client = client;
    this.#fetch = `fetch ${chunkRules} from desired`;
    this.cursor = cursor;
  }

  async next(): Promise<readonly PresentRule[]> {
    return (await this.#client.query<{ uuid: string; sequence: number; fields: string }>(this.#fetch)).rows;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // Ends the cursor too. A connection that cannot even roll back is thrown away.
    const failed = await this.#client.query('rollback').then(
      () => undefined,
      (error: Error) => error,
    );
    this.#client.release(failed);
  }
}
