/**
 * Sees to it that one replica at a time leads the BGP speaker: a session lock of PostgreSQL on a connection of its own,
 * which goes when the connection does, so that another takes over from one that died.
 */
import type pg from 'pg';
import type { Database } from '../../store/database.ts';

export interface SpeakerLock {
  /** Whether this replica has it now. Throws what the driver throws. */
  hold(): Promise<boolean>;
  stop(): Promise<void>;
}

const answerMilliseconds = 10_000;

/** `onLost`: it may be another's now. */
export function createSpeakerLock(database: Pick<Database, 'connect'>, onLost: () => void): SpeakerLock {
  let client: pg.Client | undefined;
  let held = false;

  function lose(): void {
    const lost = client;
    client = undefined;
    void lost?.end().catch(() => {});
    if (!held) return;
    held = false;
    onLost();
  }

  return {
    async hold() {
      if (held) return true;
      try {
        if (client === undefined) {
          const opened = await database.connect('levee bgp', answerMilliseconds);
          client = opened;
          opened.on('end', () => {
            if (client === opened) lose();
          });
        }
        const { rows } = await client.query<{ got: boolean }>(
          `select pg_try_advisory_lock(hashtextextended('bgp_speaker', 0)) as got`,
        );
        held = rows[0]?.got === true;
        return held;
      } catch (error) {
        lose();
        throw error;
      }
    },
    async stop() {
      const open = client;
      client = undefined;
      held = false;
      await open?.end().catch(() => {});
    },
  };
}
