/**
 * Leads that one replica has at a time: session locks of PostgreSQL on one connection, which go when the connection does.
 * PostgreSQL keeps the session of a process that stands still for ever, so whoever holds a lock shows life on its
 * connection, and whoever waits ends the session of one that shows none. Knows nothing of what is led.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';

export interface LeadLocks {
  /** Those of the names that this connection has now, and had not before. Throws what the driver throws. */
  take(names: readonly string[]): Promise<readonly string[]>;
  letGo(names: readonly string[]): Promise<void>;
  /**
   * Resolves when nobody else can have had the locks up to now; to be awaited right before what goes elsewhere than over
   * the connection. Throws what the driver throws, and when the answer came too late to say anything.
   */
  prove(): Promise<void>;
}

export interface LeadLockOptions {
  readonly log: (message: string) => void;
  readonly silentMilliseconds?: number;
}

/** However busy its holder's own loop is for up to five seconds, it keeps its locks. */
const SILENT_MILLISECONDS = 6_000;
const LIFE_MILLISECONDS = 500;
/** From asking on: before the time that another waits. */
const PROOF_MILLISECONDS = 5_000;
/** PostgreSQL ends a session soon after it was told to. */
const ENDED_MILLISECONDS = 200;

const TAKE = `select n as name from unnest($1::text[]) n where pg_try_advisory_lock(hashtextextended(n, 0))`;
const LET_GO = `select pg_advisory_unlock(hashtextextended(n, 0)) from unnest($1::text[]) n`;
/** What a session does while it works is not silence; that its client takes no answer is. */
const HOLDERS = `select distinct l.pid, a.application_name as name, a.backend_start::text || ' ' || a.state_change::text as life,
    a.state = 'active' and a.wait_event_type is distinct from 'Client' as works,
    extract(epoch from statement_timestamp())::float8 * 1000 as now
  from pg_locks l join pg_stat_activity a on a.pid = l.pid
  where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
    and l.database = (select oid from pg_database where datname = current_database())
    and (l.classid::int8 << 32) | l.objid::int8 = any(select hashtextextended(n, 0) from unnest($1::text[]) n)`;
/** Not when it has shown life since it was looked at, and none but our own. */
const END = `select pg_terminate_backend(pid) from pg_stat_activity
  where pid = $1 and usename = current_user and backend_start::text || ' ' || state_change::text = $2`;

export interface HolderSeen {
  readonly pid: number;
  /** Differs whenever the session has done something; null when that cannot be seen. */
  readonly life: string | null;
  readonly works: boolean;
  /** By the database's clock, in milliseconds. */
  readonly now: number;
}

/**
 * How long others have shown no life, as far as that was watched. Of the time between two looks no more counts than looks
 * are apart: while the database or the one who looks was away, nobody could show anything.
 */
export class SilenceWatch {
  readonly #mostMilliseconds = 1_500;
  #watched = new Map<number, { readonly life: string; readonly now: number; readonly silent: number }>();

  /** Milliseconds of each, in their order. Who is not among them is forgotten. */
  look(seen: readonly HolderSeen[]): readonly number[] {
    const before = this.#watched;
    this.#watched = new Map();
    return seen.map(({ pid, life, works, now }) => {
      if (life === null || works) return 0;
      const last = before.get(pid);
      const passed = last === undefined ? 0 : Math.max(0, Math.min(now - last.now, this.#mostMilliseconds));
      const silent = last?.life === life ? last.silent + passed : 0;
      this.#watched.set(pid, { life, now, silent });
      return silent;
    });
  }
}

/** Of a connection that is open; ends with it. `take` is to be called about once a second for what is not had. */
export function leadLocksOn(client: pg.Client, options: LeadLockOptions): LeadLocks {
  const { log, silentMilliseconds = SILENT_MILLISECONDS } = options;
  const watch = new SilenceWatch();
  const held = new Set<string>();
  let asking: Promise<void> | undefined;

  /** One at a time: all who ask meanwhile are answered by it. */
  function prove(): Promise<void> {
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    return asking;
  }

  async function ask(): Promise<void> {
    const askedAt = performance.now();
    await client.query('select');
    // This process stood still meanwhile: the answer is of before.
    if (performance.now() - askedAt > PROOF_MILLISECONDS) throw new Error('the database answered too late');
  }

  const life = setInterval(() => {
    // Who leads learns of a failure by what it does itself.
    if (held.size > 0) prove().catch(() => {});
  }, LIFE_MILLISECONDS);
  life.unref();
  client.once('end', () => clearInterval(life));

  async function tryAll(names: readonly string[]): Promise<readonly string[]> {
    const { rows } = await client.query<{ name: string }>(TAKE, [names]);
    for (const { name } of rows) held.add(name);
    return rows.map(({ name }) => name);
  }

  /** Whether a session was ended: locks may be free now. */
  async function endSilent(names: readonly string[]): Promise<boolean> {
    const { rows } = await client.query<HolderSeen & { name: string; life: string | null }>(HOLDERS, [names]);
    const silences = watch.look(rows);
    let ended = false;
    for (const [at, { pid, name, life }] of rows.entries()) {
      if ((silences[at] ?? 0) < silentMilliseconds) continue;
      log(
        `the replica that leads (${name}) has shown no life for ${silentMilliseconds / 1000} s: its session is ended`,
      );
      const { rowCount } = await client.query(END, [pid, life]);
      ended ||= rowCount === 1;
    }
    return ended;
  }

  return {
    async take(names) {
      const wanted = names.filter((name) => !held.has(name));
      if (wanted.length === 0) return [];
      const got = await tryAll(wanted);
      const missing = wanted.filter((name) => !held.has(name));
      if (missing.length === 0 || !(await endSilent(missing))) return got;
      await delay(ENDED_MILLISECONDS);
      return [...got, ...(await tryAll(missing))];
    },
    async letGo(names) {
      await client.query(LET_GO, [names]);
      for (const name of names) held.delete(name);
    },
    prove,
  };
}
