/**
 * Reads the whole desired state of one router as of one moment, in chunks: memory stays that of a chunk, however many
 * rules there are. Holds one connection and one read-only transaction while it is iterated; the consumer must not dawdle.
 */
import type pg from 'pg';
import type { PresentObject } from './change-log.ts';
import type { Cursor } from './cursor.ts';
import { type PresentTunnel, presentTunnelColumns, presentTunnelSource } from './present-tunnels.ts';

/** Objects of one kind, in order of creation; never empty. */
export type SnapshotChunk =
  | { readonly kind: PresentObject['kind']; readonly objects: readonly PresentObject[] }
  | { readonly kind: 'tunnel'; readonly objects: readonly PresentTunnel[] };

export interface Snapshot {
  /** Changes from here on are not promised to be in the chunks; those before are. */
  readonly cursor: Cursor;
  /** What is not marked for deletion: all rules, then all filters, then the router's tunnels. Undefined at the end. */
  next(): Promise<SnapshotChunk | undefined>;
  /** Gives the connection back. To be called in any case; idempotent, never throws. */
  close(): Promise<void>;
}

const kinds = ['firewall_rule', 'filter', 'tunnel'] as const;

/**
 * Repeatable read: all chunks see the transactions that were committed at the first statement, which also gives the
 * cursor (its xmin, 0). Transactions from xmin on may be in the chunks as well; reading on from the cursor repeats
 * them, which is harmless because changes carry the present state.
 */
export async function openSnapshot(pool: pg.Pool, chunkObjects: number, routerUuid: string): Promise<Snapshot> {
  const client = await pool.connect();
  try {
    await client.query('begin transaction isolation level repeatable read read only');
    const { rows } = await client.query<{ xid: string }>('select pg_snapshot_xmin(pg_current_snapshot())::text as xid');
    for (const kind of ['firewall_rule', 'filter'] as const) {
      await client.query(
        `declare ${kind}_desired no scroll cursor for
          select '${kind}' as kind, uuid::text as uuid, sequence, fields::text as fields from ${kind}
          where deletion_marked_at is null order by sequence`,
      );
    }
    // Such a statement takes no parameters.
    await client.query(
      `declare tunnel_desired no scroll cursor for select ${presentTunnelColumns} from ${presentTunnelSource}
        where e.router_uuid = ${client.escapeLiteral(routerUuid)} order by t.sequence`,
    );
    return new OpenSnapshot(client, chunkObjects, { xid: Number(rows[0]?.xid), position: 0 });
  } catch (error) {
    client.release(error as Error);
    throw error;
  }
}

class OpenSnapshot implements Snapshot {
  readonly cursor: Cursor;
  readonly #client: pg.PoolClient;
  readonly #chunkObjects: number;
  readonly #left: (typeof kinds)[number][] = [...kinds];
  #closed = false;

  constructor(client: pg.PoolClient, chunkObjects: number, cursor: Cursor) {
    this.#client = client;
    this.#chunkObjects = chunkObjects;
    this.cursor = cursor;
  }

  async next(): Promise<SnapshotChunk | undefined> {
    for (let kind = this.#left[0]; kind !== undefined; kind = this.#left[0]) {
      const { rows } = await this.#client.query(`fetch ${this.#chunkObjects} from ${kind}_desired`);
      if (rows.length > 0) return { kind, objects: rows };
      this.#left.shift();
    }
    return undefined;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // Ends the cursors too. A connection that cannot even roll back is thrown away.
    const failed = await this.#client.query('rollback').then(
      () => undefined,
      (error: Error) => error,
    );
    this.#client.release(failed);
  }
}
