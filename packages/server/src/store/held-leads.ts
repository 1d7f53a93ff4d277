/**
 * The leads that this replica has of those it wants, on a connection of its own that is opened anew when it was lost.
 * How they are taken, kept and taken from one that stands still is lead-locks.ts.
 */
import type pg from 'pg';
import type { Database } from './database.ts';
import { type LeadLocks, leadLocksOn } from './lead-locks.ts';

export interface HeldLeads {
  /** Those that this replica has now, of these alone: others it had are let go of. Throws what the driver throws. */
  hold(names: readonly string[]): Promise<ReadonlySet<string>>;
  /** To be awaited right before anything is told to those outside: throws when what was held may be another's. */
  prove(): Promise<void>;
  stop(): Promise<void>;
}

export interface HeldLeadsOptions {
  /** Shown in pg_stat_activity. */
  readonly name: string;
  /** Everything that was held may be another's now. */
  readonly onLost: () => void;
  readonly log: (message: string) => void;
}

const answerMilliseconds = 10_000;

export function createHeldLeads(database: Pick<Database, 'connect'>, options: HeldLeadsOptions): HeldLeads {
  let open: { readonly client: pg.Client; readonly locks: LeadLocks } | undefined;
  let held = new Set<string>();

  async function connected(): Promise<LeadLocks> {
    if (open !== undefined) return open.locks;
    const client = await database.connect(options.name, answerMilliseconds);
    client.on('end', () => {
      if (open?.client === client) lose();
    });
    open = { client, locks: leadLocksOn(client, options) };
    return open.locks;
  }

  function lose(): void {
    const lost = open?.client;
    open = undefined;
    void lost?.end().catch(() => {});
    if (held.size === 0) return;
    held = new Set();
    options.onLost();
  }

  async function prove(): Promise<void> {
    const of = open;
    if (of === undefined) throw new Error('the lead is lost');
    try {
      await of.locks.prove();
    } catch (error) {
      if (open === of) lose();
      throw error;
    }
  }

  return {
    async hold(names) {
      if (held.size > 0) await prove();
      const wanted = new Set(names);
      const missing = names.filter((name) => !held.has(name));
      const spare = [...held].filter((name) => !wanted.has(name));
      if (missing.length === 0 && spare.length === 0) return held;
      try {
        const locks = await connected();
        if (spare.length > 0) await locks.letGo(spare);
        for (const name of spare) held.delete(name);
        for (const name of await locks.take(missing)) held.add(name);
        return held;
      } catch (error) {
        lose();
        throw error;
      }
    },
    prove,
    async stop() {
      const last = open?.client;
      open = undefined;
      held = new Set();
      await last?.end().catch(() => {});
    },
  };
}
