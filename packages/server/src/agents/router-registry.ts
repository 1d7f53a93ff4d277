/**
 * Every enrolled router in memory, once a replica: who it is, what it enforces, what it acknowledged, what it refuses.
 * The database is the truth; this is kept fresh by the reports that this replica stores itself, by the other
 * replicas' notifications, and by reading everything again every few seconds.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { type Cursor, compareCursors } from '../store/cursor.ts';
import type { Database } from '../store/database.ts';
import { newUuid } from '../store/new-uuid.ts';
import type { SavedReports, StoredReport } from '../store/reports.ts';
import { AckHistory } from './ack-history.ts';

export interface KnownRouter {
  readonly uuid: string;
  readonly name: string;
  readonly location: string;
  /** Hex. */
  readonly keyHash: string;
  /** Undefined until its first report. */
  enforcement: 'kernel' | 'dry' | undefined;
  enforcementReason: string | undefined;
  /** It enforces nothing new, and what it enforced before may still be in its kernel. */
  tableLeft: boolean;
  /** What it enforces besides rules. */
  capabilities: ReadonlySet<string>;
  /** Tunnels alone hold back what it acknowledges. */
  waitsForTunnels: boolean;
  acked: Cursor | undefined;
  lastSeenMilliseconds: number | undefined;
  readonly enrolledMilliseconds: number;
  readonly history: AckHistory;
  /** Object uuid → reason. */
  failures: ReadonlyMap<string, string>;
}

export interface RouterRegistry {
  /** In order of enrolment. */
  readonly routers: readonly KnownRouter[];
  /** Rises with everything that may change an answer. */
  readonly version: number;
  /** What the database's clock shows more than ours. */
  readonly clockAheadMilliseconds: number;
  /** Asks the database when the key is not known here. */
  byKeyHash(keyHash: string): Promise<KnownRouter | undefined>;
  /** False once a router was removed or got another key. */
  knows(keyHash: string): boolean;
  /** What this replica has just stored. */
  stored(reports: readonly StoredReport[], saved: Pick<SavedReports, 'atMilliseconds' | 'acked'>): void;
  /** Routers were enrolled, re-keyed or removed here: read them again, and tell the other replicas. */
  refresh(): Promise<void>;
  onChange(listener: () => void): () => void;
  stop(): Promise<void>;
}

export interface RegistryOptions {
  /** Between two readings of everything. */
  readonly refreshMilliseconds?: number;
  readonly log?: (message: string) => void;
}

const CHANNEL = 'levee_router';
const ANSWER_MILLISECONDS = 15_000;
/** A payload may have 8000 bytes; 36 for a uuid, one between. */
const UUIDS_PER_NOTIFICATION = 150;
/** Acknowledgements kept in memory, over all routers. */
const HISTORY_TOTAL = 400_000;
/** An acknowledgement may be committed this much after its time. */
const LATE_MILLISECONDS = 30_000;

interface RouterRecord {
  readonly uuid: string;
  readonly name: string;
  readonly location: string;
  readonly key_hash: string;
  readonly enforcement: 'kernel' | 'dry' | null;
  readonly enforcement_reason: string | null;
  readonly table_left: boolean;
  readonly capabilities: readonly string[];
  readonly waits_for_tunnels: boolean;
  /** Some of its acknowledgements are kept. */
  readonly has_history: boolean;
  readonly acked_xid: string | null;
  readonly acked_position: number | null;
  readonly last_seen_ms: number | null;
  readonly enrolled_ms: number;
}

const milliseconds = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`;

const ROUTERS = `select r.uuid::text as uuid, r.name, l.name as location, encode(r.key_hash, 'hex') as key_hash,
    r.enforcement, r.enforcement_reason, r.table_left, r.capabilities, r.waits_for_tunnels,
    exists (select from router_ack a where a.router_uuid = r.uuid) as has_history,
    r.acked_xid::text as acked_xid, r.acked_position,
    ${milliseconds('r.last_seen_at')} as last_seen_ms, ${milliseconds('r.enrolled_at')} as enrolled_ms
  from router r join location l on l.uuid = r.location_uuid
  where r.enrolled_at is not null and ($1::uuid[] is null or r.uuid = any($1))
  order by r.enrolled_at, r.uuid`;

const FIRST_ACKS = `select a.router_uuid::text as uuid, a.xid::text as xid, a.position, ${milliseconds('a.at')} as at_ms
  from router r cross join lateral (
    select * from router_ack where router_uuid = r.uuid order by xid desc, position desc limit $1
  ) a order by a.xid, a.position`;

const LATER_ACKS = `select a.router_uuid::text as uuid, a.xid::text as xid, a.position, ${milliseconds('a.at')} as at_ms
  from router_ack a where a.at > to_timestamp($1::float8 / 1000) and ($2::uuid[] is null or a.router_uuid = any($2))
  order by a.xid, a.position`;

const FAILURES = `select router_uuid::text as router, object_uuid::text as object, reason from router_failure
  where $1::uuid[] is null or router_uuid = any($1)`;

/** Throws what the driver throws when the database cannot be reached now; later it recovers by itself. */
export async function startRouterRegistry(
  database: Pick<Database, 'connect' | 'pool'>,
  options: RegistryOptions = {},
): Promise<RouterRegistry> {
  const registry = new Registry(database, options);
  await registry.start();
  return registry;
}

class Registry implements RouterRegistry {
  routers: readonly KnownRouter[] = [];
  version = 0;
  clockAheadMilliseconds = 0;
  readonly #database: Pick<Database, 'connect' | 'pool'>;
  readonly #refreshMilliseconds: number;
  readonly #log: (message: string) => void;
  readonly #replica = newUuid();
  readonly #listeners = new Set<() => void>();
  #byUuid = new Map<string, KnownRouter>();
  #byKey = new Map<string, KnownRouter>();
  /** Counts the reports stored here; a reading that began before one of a router knows less than we do. */
  #writes = 0;
  readonly #written = new Map<string, number>();
  #acksFrom: number | undefined;
  #client: pg.Client | undefined;
  #connected = false;
  #stopping = new AbortController();
  #dirty: Set<string> | 'all' = new Set();
  #reading: Promise<void> | undefined;
  #told = new Set<string>();
  #telling: Promise<void> | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(database: Pick<Database, 'connect' | 'pool'>, options: RegistryOptions) {
    this.#database = database;
    this.#refreshMilliseconds = options.refreshMilliseconds ?? 5_000;
    this.#log = options.log ?? (() => {});
  }

  async start(): Promise<void> {
    await this.#connect();
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#reading?.catch(() => {});
    await this.#telling;
    await this.#client?.end().catch(() => {});
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async byKeyHash(keyHash: string): Promise<KnownRouter | undefined> {
    const known = this.#byKey.get(keyHash);
    if (known !== undefined) return known;
    const { rows } = await this.#database.pool.query<{ uuid: string }>({
      name: 'router_by_key',
      text: `select uuid::text as uuid from router where key_hash = decode($1, 'hex')`,
      values: [keyHash],
    });
    const uuid = rows[0]?.uuid;
    if (uuid === undefined) return undefined;
    await this.#mark([uuid]);
    return this.#byKey.get(keyHash);
  }

  knows(keyHash: string): boolean {
    return this.#byKey.has(keyHash);
  }

  stored(reports: readonly StoredReport[], { atMilliseconds, acked }: Parameters<RouterRegistry['stored']>[1]): void {
    this.#writes++;
    for (const report of reports) {
      const router = this.#byUuid.get(report.routerUuid);
      this.#written.set(report.routerUuid, this.#writes);
      // One that has enrolled anew by now has told nothing yet.
      if (router !== undefined && router.keyHash === report.keyHash) {
        router.enforcement = report.enforcement;
        router.enforcementReason = report.enforcementReason;
        router.tableLeft = report.tableLeft ?? false;
        router.capabilities = new Set(report.capabilities);
        router.lastSeenMilliseconds = atMilliseconds;
        router.waitsForTunnels = report.waitsForTunnels ?? false;
        const failures = report.failures.map((failure) => [failure.uuid, failure.reason] as const);
        router.failures = new Map([...(report.resumes === undefined ? [] : router.failures), ...failures]);
        router.acked = acked.get(report.routerUuid);
        if (report.cursor !== undefined) router.history.add(report.cursor, atMilliseconds, this.#keep());
        else if (report.foreign) router.history.clear();
        else if (router.acked !== undefined) router.history.fallBackTo(router.acked);
      }
      this.#told.add(report.routerUuid);
    }
    this.#changed();
    this.#tell();
  }

  async refresh(): Promise<void> {
    await this.#mark('all');
    this.#told.add('*');
    this.#tell();
  }

  #keep(): number {
    return Math.max(64, Math.min(4_096, Math.floor(HISTORY_TOTAL / Math.max(1, this.routers.length))));
  }

  #changed(): void {
    this.version++;
    for (const listener of this.#listeners) listener();
  }

  /** One notification at a time; those that gather meanwhile go with the next one. */
  #tell(): void {
    this.#telling ??= (async () => {
      while (this.#told.size > 0) {
        const names = [...this.#told];
        this.#told.clear();
        for (let i = 0; i < names.length; i += UUIDS_PER_NOTIFICATION) {
          const payload = `${this.#replica} ${names.slice(i, i + UUIDS_PER_NOTIFICATION).join(' ')}`;
          await this.#database.pool
            .query({ name: 'router_notify', text: 'select pg_notify($1, $2)', values: [CHANNEL, payload] })
            .catch(() => {});
        }
      }
      this.#telling = undefined;
    })();
  }

  async #connect(): Promise<void> {
    const client = await this.#database.connect('levee router registry', ANSWER_MILLISECONDS);
    try {
      client.on('notification', (message) => {
        const [replica, ...names] = (message.payload ?? '').split(' ');
        if (replica === this.#replica) return;
        void this.#mark(names.includes('*') ? 'all' : names).catch(() => {});
      });
      client.on('end', () => {
        if (this.#client === client) this.#connected = false;
      });
      await client.query(`listen ${CHANNEL}`);
      this.#client = client;
      this.#connected = true;
      await this.#mark('all');
    } catch (error) {
      this.#connected = false;
      await client.end().catch(() => {});
      throw error;
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let failing = false;
    while (!signal.aborted) {
      await delay(this.#connected ? this.#refreshMilliseconds : 250, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      try {
        if (this.#connected) await this.#mark('all');
        else await this.#connect();
        if (failing) this.#log('the routers are read again');
        failing = false;
      } catch (error) {
        if (!failing) this.#log(`the routers cannot be read: ${(error as Error).message}`);
        failing = true;
      }
    }
  }

  /** Resolves when what was asked for has been read by a reading that began after the call. */
  async #mark(uuids: readonly string[] | 'all'): Promise<void> {
    if (uuids === 'all' || this.#dirty === 'all') this.#dirty = 'all';
    else for (const uuid of uuids) this.#dirty.add(uuid);
    while (this.#reading !== undefined) await this.#reading.catch(() => {});
    const some = this.#dirty;
    if (some !== 'all' && some.size === 0) return;
    this.#dirty = new Set();
    this.#reading = this.#read(some === 'all' ? null : [...some]).finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  async #read(uuids: readonly string[] | null): Promise<void> {
    const { pool } = this.#database;
    const first = this.#acksFrom === undefined;
    const writes = this.#writes;
    const { rows: clock } = await pool.query<{ now: number }>(`select ${milliseconds('clock_timestamp()')} as now`);
    this.clockAheadMilliseconds = (clock[0]?.now ?? Date.now()) - Date.now();
    const { rows: records } = await pool.query<RouterRecord>(ROUTERS, [uuids]);
    const { rows: acks } = first
      ? await pool.query(FIRST_ACKS, [
          Math.max(64, Math.min(4_096, Math.floor(HISTORY_TOTAL / Math.max(1, records.length)))),
        ])
      : await pool.query(LATER_ACKS, [this.#acksFrom, uuids]);
    const { rows: failures } = await pool.query(FAILURES, [uuids]);
    if (uuids === null) this.#acksFrom = (clock[0]?.now ?? Date.now()) - LATE_MILLISECONDS;
    this.#take(records, acks, failures, uuids, writes);
  }

  #take(
    records: readonly RouterRecord[],
    acks: readonly { uuid: string; xid: string; position: number; at_ms: number }[],
    failures: readonly { router: string; object: string; reason: string }[],
    uuids: readonly string[] | null,
    writes: number,
  ): void {
    const asked = new Set(uuids ?? this.#byUuid.keys());
    const found = new Map(records.map((record) => [record.uuid, record]));
    for (const uuid of asked) {
      if (found.has(uuid)) continue;
      this.#byUuid.delete(uuid);
      this.#written.delete(uuid);
    }
    const failing = Map.groupBy(failures, (failure) => failure.router);
    const acked = Map.groupBy(acks, (ack) => ack.uuid);
    for (const record of records) {
      const present = this.#byUuid.get(record.uuid);
      if (present?.keyHash === record.key_hash && (this.#written.get(record.uuid) ?? 0) > writes) continue;
      const router: KnownRouter = {
        uuid: record.uuid,
        name: record.name,
        location: record.location,
        keyHash: record.key_hash,
        enforcement: record.enforcement ?? undefined,
        enforcementReason: record.enforcement_reason ?? undefined,
        tableLeft: record.table_left,
        capabilities: new Set(record.capabilities),
        waitsForTunnels: record.waits_for_tunnels,
        acked:
          record.acked_xid === null
            ? undefined
            : { xid: Number(record.acked_xid), position: record.acked_position ?? 0 },
        lastSeenMilliseconds: record.last_seen_ms ?? undefined,
        enrolledMilliseconds: record.enrolled_ms,
        // None is kept of one that began anew.
        history: (record.has_history ? present?.history : undefined) ?? new AckHistory(),
        failures: new Map(failing.get(record.uuid)?.map((failure) => [failure.object, failure.reason])),
      };
      for (const ack of acked.get(record.uuid) ?? []) {
        const place = { xid: Number(ack.xid), position: ack.position };
        // An earlier one than those in memory was read before; an addition would void them.
        const last = router.history.newest;
        if (last === undefined || compareCursors(place, last) > 0) router.history.add(place, ack.at_ms, this.#keep());
      }
      if (router.acked !== undefined) router.history.add(router.acked, record.last_seen_ms ?? 0, this.#keep());
      this.#byUuid.set(record.uuid, router);
    }
    this.routers = [...this.#byUuid.values()].sort(
      (a, b) => a.enrolledMilliseconds - b.enrolledMilliseconds || (a.uuid < b.uuid ? -1 : 1),
    );
    this.#byKey = new Map(this.routers.map((router) => [router.keyHash, router]));
    this.#changed();
  }
}
