/**
 * Sees to it that one replica at a time keeps a zone's server: session locks of PostgreSQL on a connection of its own. They
 * go when the connection does, so that another replica takes over from one that died.
 */
import type pg from 'pg';
import type { Database } from '../../store/database.ts';

export interface ZoneLocks {
  /** Those of the zones that this replica has now, of these alone: others it had are let go of. Throws what the driver throws. */
  hold(uuids: readonly string[]): Promise<ReadonlySet<string>>;
  stop(): Promise<void>;
}

const answerMilliseconds = 10_000;

/** `onLost`: everything that was held may be another's now. */
export function createZoneLocks(database: Pick<Database, 'connect'>, onLost: () => void): ZoneLocks {
  let client: pg.Client | undefined;
  let held = new Set<string>();

  async function connected(): Promise<pg.Client> {
    if (client !== undefined) return client;
    const opened = await database.connect('levee rdns', answerMilliseconds);
    opened.on('end', () => {
      if (client === opened) lose();
    });
    client = opened;
    return opened;
  }

  function lose(): void {
    const lost = client;
    client = undefined;
    void lost?.end().catch(() => {});
    if (held.size === 0) return;
    held = new Set();
    onLost();
  }

  return {
    async hold(uuids) {
      const wanted = new Set(uuids);
      const missing = uuids.filter((uuid) => !held.has(uuid));
      const spare = [...held].filter((uuid) => !wanted.has(uuid));
      if (missing.length === 0 && spare.length === 0) return held;
      try {
        const open = await connected();
        if (spare.length > 0) {
          await open.query(
            `select pg_advisory_unlock(hashtextextended('rdns_zone ' || u, 0)) from unnest($1::text[]) u`,
            [spare],
          );
          for (const uuid of spare) held.delete(uuid);
        }
        const { rows } = await open.query<{ uuid: string }>(
          `select u as uuid from (select u, pg_try_advisory_lock(hashtextextended('rdns_zone ' || u, 0)) as got
            from unnest($1::text[]) u) tried where got`,
          [missing],
        );
        for (const { uuid } of rows) held.add(uuid);
        return held;
      } catch (error) {
        lose();
        throw error;
      }
    },
    async stop() {
      const open = client;
      client = undefined;
      held = new Set();
      await open?.end().catch(() => {});
    },
  };
}
