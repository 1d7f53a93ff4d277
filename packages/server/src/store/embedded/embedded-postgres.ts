/**
 * A real PostgreSQL as our child: found, initialised, started, watched, restarted when it dies, stopped with us. It
 * listens on a unix socket only and never survives us; what a killed Levee left is cleaned first.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { DatabaseAddress } from '../database.ts';
import { connectionSettings } from '../database.ts';
import { findBinaries, majorOfData, type SearchOptions } from './binaries.ts';
import { layoutOf, makeFolders, openFolders, ownerOf } from './directory.ts';
import { chooseIdentity } from './identity.ts';
import { claim, clearLocks, release, stopLeftovers } from './ownership.ts';
import {
  canGuardChildren,
  initialise,
  logTail,
  type ServerPlace,
  type ServerProcess,
  SUPERUSER,
  startServer,
} from './server-process.ts';

export interface EmbeddedOptions {
  /** LEVEE_DATA_DIR; the database lives in its folder `postgres`. Made when missing. */
  readonly dataDirectory: string;
  /** False only where nothing must survive a power cut (tests). Default true. */
  readonly durable?: boolean;
  /** Settings of postgresql.conf over ours. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly search?: SearchOptions;
  /** Told in words what happens: started, died, restarted. */
  readonly log?: (message: string) => void;
}

export interface EmbeddedPostgres {
  /** The database `levee`. Valid in this process only, and until stop. */
  readonly address: DatabaseAddress & { socketDirectory: string };
  /** Pid of the postmaster at present. */
  readonly pid: number;
  /** How often it was started again after dying. */
  readonly restarts: number;
  /** Fast shutdown: sessions are ended, everything committed is on disk. */
  stop(): Promise<void>;
}

export type EmbeddedResult =
  | { readonly ok: true; readonly postgres: EmbeddedPostgres }
  | { readonly ok: false; readonly message: string };

const DATABASE = 'levee';
/** Recovery after a crash replays at most max_wal_size; on a slow disk that takes minutes. */
const START_DEADLINE_MILLISECONDS = 300_000;
const STOP_STEP_MILLISECONDS = 30_000;
/** Against power cuts only: what was committed still survives the death of every process. */
const NOT_DURABLE = { fsync: 'off', full_page_writes: 'off' };

/** What makes it impossible here comes back as a message for the person who starts it; only bugs throw. */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedResult> {
  if (!(await canGuardChildren()))
    return {
      ok: false,
      message: 'setpriv (package util-linux) is needed to run the embedded database, or set DATABASE_URL',
    };
  const layout = layoutOf(options.dataDirectory);
  const chosen = chooseIdentity(ownerOf(layout));
  if (!chosen.ok) return chosen;
  const claimed = claim(layout.ownerRecord);
  if (!claimed.ok) return claimed;
  let folders: ReturnType<typeof openFolders> | undefined;
  try {
    makeFolders(layout, chosen.identity);
    const dataMajor = majorOfData(layout.data);
    const found = findBinaries(dataMajor, options.search);
    if (!found.ok) {
      release(layout.ownerRecord);
      return found;
    }
    const leftovers = await stopLeftovers(layout.data);
    if (leftovers > 0) options.log?.(`ended ${leftovers} PostgreSQL processes that a killed Levee had left`);
    clearLocks(layout);
    folders = openFolders(layout);
    const place: ServerPlace = { binaries: found.binaries, layout, folders, identity: chosen.identity };
    if (dataMajor === undefined) await initialise(place, options.durable !== false);
    return { ok: true, postgres: await supervise(place, options) };
  } catch (error) {
    folders?.close();
    release(layout.ownerRecord);
    return { ok: false, message: `the embedded database does not start: ${(error as Error).message}` };
  }
}

async function supervise(place: ServerPlace, options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const settings = { ...(options.durable === false ? NOT_DURABLE : {}), ...options.settings };
  const socketDirectory = place.folders.socketDirectory;
  let server = startServer(place, settings);
  let stopping = false;
  let restarts = 0;
  try {
    await ready(socketDirectory, server);
    await ensureDatabase(socketDirectory);
  } catch (error) {
    server.kill('SIGQUIT');
    await server.exited;
    const tail = logTail(place.layout);
    throw new Error(`${(error as Error).message}${tail === '' ? '' : `\n${tail}`}`);
  }

  async function watch(): Promise<void> {
    let backoff = 50;
    for (;;) {
      const startedAt = Date.now();
      const { code, signal } = await server.exited;
      if (stopping) return;
      options.log?.(`PostgreSQL ended (${signal ?? `exit code ${code}`}), starting it again`);
      backoff = Date.now() - startedAt > 10_000 ? 50 : Math.min(backoff * 2, 5_000);
      await delay(backoff);
      try {
        // Its children notice the postmaster's death by themselves; the shared memory must be free before the next one.
        await stopLeftovers(place.layout.data, 5_000);
        if (stopping) return;
        clearLocks(place.layout);
        server = startServer(place, settings);
        restarts++;
      } catch (error) {
        // A full disk, a process that cannot be ended: the old one's end is still there, the next round tries again.
        options.log?.(`PostgreSQL cannot be started: ${(error as Error).message}`);
      }
    }
  }
  const watching = watch();
  let stopped: Promise<void> | undefined;
  async function stop(): Promise<void> {
    stopping = true;
    await end(server);
    await watching;
    place.folders.close();
    release(place.layout.ownerRecord);
  }

  return {
    address: { socketDirectory, user: SUPERUSER, database: DATABASE },
    get pid() {
      return server.pid;
    },
    get restarts() {
      return restarts;
    },
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

async function end(server: ServerProcess): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    server.kill(signal);
    const timer = new AbortController();
    const gone = await Promise.race([
      server.exited.then(() => true),
      delay(STOP_STEP_MILLISECONDS, false, { signal: timer.signal }).catch(() => false),
    ]);
    timer.abort();
    if (gone) return;
  }
}

/** Waits until the server takes a session; gives up when its process is gone or the deadline has passed. */
async function ready(socketDirectory: string, server: ServerProcess): Promise<void> {
  const deadline = Date.now() + START_DEADLINE_MILLISECONDS;
  let gone = false;
  void server.exited.then(() => {
    gone = true;
  });
  for (;;) {
    const problem = await tryStatement(socketDirectory, 'select 1');
    if (problem === undefined) return;
    if (gone) throw new Error('PostgreSQL ended while starting');
    if (Date.now() > deadline) throw new Error(`PostgreSQL does not answer: ${problem.message}`);
    await delay(10);
  }
}

async function tryStatement(socketDirectory: string, text: string): Promise<(Error & { code?: string }) | undefined> {
  const client = new pg.Client(connectionSettings({ socketDirectory, user: SUPERUSER, database: 'postgres' }));
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query(text);
    return undefined;
  } catch (error) {
    return error as Error;
  } finally {
    await client.end().catch(() => {});
  }
}

async function ensureDatabase(socketDirectory: string): Promise<void> {
  const problem = await tryStatement(socketDirectory, `create database ${DATABASE}`);
  const DUPLICATE_DATABASE = '42P04';
  if (problem !== undefined && problem.code !== DUPLICATE_DATABASE) throw problem;
}
