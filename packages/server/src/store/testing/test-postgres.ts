/**
 * A real PostgreSQL for one test file: its own server in its own folder, gone with the process. Each test gets a
 * fresh, migrated database, copied from a template. Not durable: tests about durability start their own.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Database, type DatabaseAddress, type DatabaseOptions, openDatabase } from '../database.ts';
import { type EmbeddedPostgres, startEmbedded } from '../embedded/embedded-postgres.ts';
import { migrate } from '../migrate.ts';

export interface TestPostgres {
  readonly server: EmbeddedPostgres;
  /** A fresh database with every migration; closed by stop at the latest. */
  createDatabase(options?: DatabaseOptions): Promise<Database>;
  /** A fresh database without any migration. */
  createEmptyDatabase(): Promise<Database>;
  /** Another pool on the same database: a second replica. */
  openAgain(database: Database, options?: DatabaseOptions): Database;
  /** Idempotent. Call it in `after`. */
  stop(): Promise<void>;
}

export async function startTestPostgres(settings: Readonly<Record<string, string>> = {}): Promise<TestPostgres> {
  const folder = mkdtempSync(join(tmpdir(), `levee-test-${process.pid}-`));
  const started = await startEmbedded({ dataDirectory: folder, durable: false, settings });
  if (!started.ok) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(started.message);
  }
  const server = started.postgres;
  const opened = new Set<Database>();
  let made = 0;

  function open(name: string, options?: DatabaseOptions): Database {
    const address: DatabaseAddress = { ...server.address, database: name };
    const database = openDatabase(address, { maxConnections: 8, ...options });
    opened.add(database);
    return database;
  }
  const administration = open('postgres', { maxConnections: 1 });
  try {
    const template = open('template1', { maxConnections: 1 });
    const migrated = await migrate(template);
    if (!migrated.ok) throw new Error(migrated.message);
    await template.close();
    opened.delete(template);
  } catch (error) {
    await stop();
    throw error;
  }

  async function create(from: string, options?: DatabaseOptions): Promise<Database> {
    const name = `test_${++made}`;
    await administration.pool.query(`create database ${name} template ${from}`);
    return open(name, options);
  }
  let stopped: Promise<void> | undefined;
  async function stop(): Promise<void> {
    // Not awaited first: a test that failed may have left a connection checked out, which only the server's end ends.
    const closed = [...opened].map((database) => database.close());
    await Promise.race([Promise.allSettled(closed), delay(500)]);
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  return {
    server,
    createDatabase: (options) => create('template1', options),
    createEmptyDatabase: () => create('template0'),
    openAgain(database, options) {
      if (!('socketDirectory' in database.address)) throw new Error('not one of this server');
      return open(database.address.database, options);
    },
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}
