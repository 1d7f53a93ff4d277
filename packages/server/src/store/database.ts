/**
 * Owns the pool of connections to PostgreSQL and how its types arrive. Never creates or migrates anything
 * (migrate.ts), never knows where the server came from (embedded/ or DATABASE_URL).
 */
import pg from 'pg';

/** Where the server is: a URL (DATABASE_URL), or the directory of its unix socket. */
export type DatabaseAddress =
  | { readonly url: string }
  | { readonly socketDirectory: string; readonly user: string; readonly database: string };

export interface DatabaseOptions {
  /** Default 20. */
  readonly maxConnections?: number;
  /** Shown in pg_stat_activity. Default `levee`. */
  readonly applicationName?: string;
  /** A statement that runs longer is cancelled (57014, counted as unavailable). Default 30 s. */
  readonly statementTimeoutSeconds?: number;
}

export interface Database {
  readonly address: DatabaseAddress;
  readonly pool: pg.Pool;
  /**
   * A connection of its own, outside the pool, connected; for LISTEN and for migrations. Ended by the caller. With a
   * limit, a statement that is not answered in time fails: so a server that fell silent is noticed.
   */
  connect(applicationName: string, answerMilliseconds?: number): Promise<pg.Client>;
  /** Waits for statements under way. Idempotent. */
  close(): Promise<void>;
}

const INT8 = 20;

/** int8 as a number; everything else as pg has it. Kept per connection: pg's global table belongs to nobody. */
export const columnTypes: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === INT8 && format !== 'binary') return Number;
    return pg.types.getTypeParser(oid, format as 'text');
  },
};

export function connectionSettings(address: DatabaseAddress): pg.ClientConfig {
  const base: pg.ClientConfig =
    'url' in address
      ? { connectionString: address.url }
      : { host: address.socketDirectory, user: address.user, database: address.database };
  return { ...base, types: columnTypes, keepAlive: true, connectionTimeoutMillis: 5_000 };
}

/** Opens lazily: no connection is made before the first statement, so a database that is away is no error here. */
export function openDatabase(address: DatabaseAddress, options: DatabaseOptions = {}): Database {
  const applicationName = options.applicationName ?? 'levee';
  const settings = connectionSettings(address);
  const pool = new pg.Pool({
    ...settings,
    application_name: applicationName,
    max: options.maxConnections ?? 20,
    idleTimeoutMillis: 60_000,
    statement_timeout: (options.statementTimeoutSeconds ?? 30) * 1000,
    // The server's own limit does not help against one that fell silent.
    query_timeout: (options.statementTimeoutSeconds ?? 30) * 1000 + 5_000,
    // A transaction left open holds back the horizon of every tail in the cluster.
    idle_in_transaction_session_timeout: 15_000,
  });
  // An idle connection that the server ends is dropped by the pool; the next statement opens another.
  pool.on('error', () => {});
  // One that is checked out and between two statements has no listener of the pool's: without this its end would end
  // the process. Whoever holds it finds out by the next statement.
  pool.on('connect', (client) => client.on('error', () => {}));
  let closed: Promise<void> | undefined;
  return {
    address,
    pool,
    async connect(name, answerMilliseconds) {
      const limit = answerMilliseconds === undefined ? {} : { query_timeout: answerMilliseconds };
      const client = new pg.Client({ ...settings, ...limit, application_name: name });
      client.on('error', () => {});
      try {
        await client.connect();
      } catch (error) {
        await client.end().catch(() => {});
        throw error;
      }
      return client;
    },
    close() {
      closed ??= pool.end();
      return closed;
    },
  };
}
