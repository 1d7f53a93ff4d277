/**
 * Follows the change log, once a replica, and hands what it reads to every subscriber in this process. The log is the
 * truth; being woken only makes it sooner: by a commit of this replica, by another replica's notification, and by
 * polling in any case. Never skips an entry, never hands out a settled one before an earlier one.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { type ChangeEntry, type ChangesSince, changesSince, readHorizon } from './change-log.ts';
import { type Cursor, compareCursors } from './cursor.ts';
import type { Database } from './database.ts';
import { followLog } from './log-history.ts';
import { readLogIdentity } from './log-identity.ts';
import { newUuid } from './new-uuid.ts';
import { readPresentTunnels, type TunnelsOfRouters } from './present-tunnels.ts';

/** A reading as it is handed out. */
export interface Changes extends ChangesSince {
  /** What the subscribers' routers have of `tunnels` now; a router that is not in it has none of them. */
  readonly ends: TunnelsOfRouters;
}

export interface TailSubscriber {
  /** Whose tunnels it wants to know; absent: nobody's. */
  readonly routerUuid?: string;
  /**
   * In order. `changes.cursor` never goes back. An entry that was handed out unsettled comes again, settled, in
   * `entries`, but its object is then no longer in `upsert`, `remove` or `tunnels`: its state has been handed out.
   * Many tunnels come in parts, which have nothing else and the cursor from before.
   */
  changes(changes: Changes): void;
  /** Entries were missed (pruned while the database was away, or another database answers now): read a snapshot. */
  gap(): void;
}

export interface ChangeTail {
  /** Everything up to here has been handed out. */
  readonly cursor: Cursor;
  /** Which log the cursor belongs to; another one after a fail-over (log-identity.ts). */
  readonly identity: string;
  /** False while the database is away. */
  readonly connected: boolean;
  subscribe(subscriber: TailSubscriber): () => void;
  /**
   * Joins at a cursor: reads what lies between it and the tail, hands that to `changes` first, and everything after
   * it without a hole or an overlap. Resolves false, without joining, when the cursor lies too far back or ahead.
   */
  join(cursor: Cursor, subscriber: TailSubscriber): Promise<(() => void) | false>;
  /** Something was committed here: read now, and tell the other replicas. */
  wake(): void;
  stop(): Promise<void>;
}

export interface TailOptions {
  readonly pollMilliseconds?: number;
  /** How long a change may wait for an older transaction before a warning. */
  readonly warnMilliseconds?: number;
  readonly log?: (message: string) => void;
  /** Something that an operator should look after. */
  readonly warn?: (message: string) => void;
}

export const CHANNEL = 'levee_change';
/** Its statements are short: a server that takes longer is gone. */
const ANSWER_MILLISECONDS = 15_000;
/** Entries a statement; a larger transaction still comes whole. */
const BATCH = 5_000;
/** Between two notifications: the first goes at once, those within this time after it become one. */
const NOTIFY_MILLISECONDS = 5;
/** When something is committed but not settled, look again after this, doubling up to the poll. */
const HELD_MILLISECONDS = 2;
/** Of tunnels, in memory at once: what a part is made of that is handed out. */
const ENDS_AT_ONCE = 20_000;
const WARN_MILLISECONDS = 5_000;
const WARN_AGAIN_MILLISECONDS = 60_000;

interface Joiner {
  readonly cursor: Cursor;
  readonly subscriber: TailSubscriber;
  readonly resolve: (leave: (() => void) | false) => void;
}

/** Resolves once it stands at the present; throws what the driver throws when the database cannot be reached now. */
export async function startChangeTail(
  database: Pick<Database, 'connect' | 'pool'>,
  options: TailOptions = {},
): Promise<ChangeTail> {
  const tail = new Tail(database, options);
  await tail.start();
  return tail;
}

class Tail implements ChangeTail {
  cursor: Cursor = { xid: 0, position: 0 };
  identity = '';
  connected = false;
  readonly #database: Pick<Database, 'connect' | 'pool'>;
  readonly #pollMilliseconds: number;
  readonly #warnMilliseconds: number;
  readonly #log: (message: string) => void;
  readonly #warn: (message: string) => void;
  readonly #replica = newUuid();
  readonly #subscribers = new Set<TailSubscriber>();
  #joiners: Joiner[] = [];
  /** Keys of entries that were handed out unsettled. */
  #early = new Set<string>();
  #client: pg.Client | undefined;
  #stopped = false;
  #awake = false;
  /** A reading is under way whose subscribers are fixed: whoever joins now would miss its tunnels. */
  #reading = false;
  #rouse: (() => void) | undefined;
  /** The database snapshot up to which unsettled entries were handed out. */
  #seen: string | undefined;
  /** The entry that has been unsettled longest. */
  #held: { entry: string | undefined; since: number; warned: number } = { entry: undefined, since: 0, warned: 0 };
  #look = HELD_MILLISECONDS;
  #running: Promise<void> = Promise.resolve();
  #notifyTimer: NodeJS.Timeout | undefined;
  #notifyAgain = false;
  #notifying: Promise<unknown> = Promise.resolve();

  constructor(database: Pick<Database, 'connect' | 'pool'>, options: TailOptions) {
    this.#database = database;
    this.#pollMilliseconds = options.pollMilliseconds ?? 250;
    this.#warnMilliseconds = options.warnMilliseconds ?? WARN_MILLISECONDS;
    this.#log = options.log ?? (() => {});
    this.#warn = options.warn ?? this.#log;
  }

  async start(): Promise<void> {
    await this.#connect();
    this.#running = this.#run();
  }

  subscribe(subscriber: TailSubscriber): () => void {
    this.#subscribers.add(subscriber);
    return () => void this.#subscribers.delete(subscriber);
  }

  join(cursor: Cursor, subscriber: TailSubscriber): Promise<(() => void) | false> {
    if (this.#stopped) return Promise.resolve(false);
    const present = compareCursors(cursor, this.cursor) === 0 && this.#early.size === 0;
    if (this.connected && present && !this.#reading) return Promise.resolve(this.subscribe(subscriber));
    return new Promise((resolve) => {
      this.#joiners.push({ cursor, subscriber, resolve });
      this.#rouseNow();
    });
  }

  wake(): void {
    this.#look = HELD_MILLISECONDS;
    this.#rouseNow();
    this.#notify();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#notifyTimer);
    this.#rouseNow();
    await this.#running;
    await this.#notifying;
    for (const joiner of this.#joiners.splice(0)) joiner.resolve(false);
    await this.#client?.end().catch(() => {});
  }

  #rouseNow(): void {
    this.#awake = true;
    this.#rouse?.();
  }

  /** On a connection of the pool: a notification inside a writing transaction would serialise all commits. */
  #notify(): void {
    if (this.#stopped) return;
    if (this.#notifyTimer !== undefined) {
      this.#notifyAgain = true;
      return;
    }
    this.#notifying = this.#database.pool
      .query({ name: 'change_notify', text: 'select pg_notify($1, $2)', values: [CHANNEL, this.#replica] })
      .catch(() => {});
    this.#notifyTimer = setTimeout(() => {
      this.#notifyTimer = undefined;
      if (!this.#notifyAgain) return;
      this.#notifyAgain = false;
      this.#notify();
    }, NOTIFY_MILLISECONDS);
  }

  async #connect(): Promise<void> {
    const client = await this.#database.connect('levee change tail', ANSWER_MILLISECONDS);
    try {
      client.on('notification', (message) => {
        if (message.payload === this.#replica) return;
        this.#look = HELD_MILLISECONDS;
        this.#rouseNow();
      });
      await client.query(`listen ${CHANNEL}`);
      const other = (await readLogIdentity(client)) !== this.identity;
      const followed = other ? await followLog(this.#database) : undefined;
      if (followed?.rebased) this.#warn('the database has another history than before: routers are brought up anew');
      const { next, floor } = await readHorizon(client);
      const first = this.cursor.xid === 0;
      const lost = other || compareCursors(this.cursor, floor) < 0 || compareCursors(this.cursor, next) > 0;
      this.identity = followed?.identity ?? this.identity;
      if (first || lost) {
        this.cursor = next;
        this.#early.clear();
        this.#seen = undefined;
      }
      if (lost && !first) for (const subscriber of [...this.#subscribers]) subscriber.gap();
      client.on('end', () => {
        if (this.#client !== client) return;
        this.connected = false;
        this.#rouseNow();
      });
      this.#client = client;
      this.connected = true;
      this.#awake = true;
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
  }

  async #run(): Promise<void> {
    let pause = 50;
    while (!this.#stopped) {
      try {
        if (!this.connected) {
          await this.#connect();
          this.#log('following the change log again');
        }
        await this.#sleep();
        if (!this.#stopped && this.connected) await this.#read();
        pause = 50;
      } catch (error) {
        if (this.connected) this.#log(`the change log cannot be read: ${(error as Error).message}`);
        this.connected = false;
        const client = this.#client;
        this.#client = undefined;
        void client?.end().catch(() => {});
        if (!this.#stopped) await delay(pause);
        pause = Math.min(pause * 2, 1_000);
      }
    }
  }

  /** Until woken, or the next look is due. */
  async #sleep(): Promise<void> {
    if (!this.#awake && !this.#stopped) {
      const milliseconds = this.#early.size > 0 ? Math.min(this.#look, this.#pollMilliseconds) : this.#pollMilliseconds;
      this.#look = Math.min(this.#look * 2, this.#pollMilliseconds);
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, milliseconds);
      this.#rouse = resolve;
      await promise;
      this.#rouse = undefined;
      clearTimeout(timer);
    }
    this.#awake = false;
  }

  /** All that is new, in pages; past what is unsettled too, or one open transaction would hide all that follow it. */
  async #read(): Promise<void> {
    const client = this.#client;
    if (client === undefined) return;
    let after: Cursor | undefined;
    let snapshot: string | undefined;
    for (;;) {
      const changes = await changesSince(client, this.cursor, BATCH, { ...(after && { after }), seen: this.#seen });
      snapshot ??= changes.snapshot;
      if (after !== undefined || changes.unsettled.length > 0) after = changes.last;
      const rest = await this.#handTunnels(client, this.#freshIn(changes));
      this.#remember(changes);
      this.#hand(rest);
      if (changes.complete || this.#stopped) break;
    }
    if (this.#early.size === 0) this.#seen = undefined;
    else this.#seen = snapshot ?? this.#seen;
    await this.#watchHorizon(client);
    await this.#admit(client);
  }

  /** Without the objects whose state was handed out before, while their entries were unsettled. */
  #freshIn(changes: ChangesSince): ChangesSince {
    const early = this.#early;
    if (early.size === 0) return changes;
    const isNew = (entry: ChangeEntry) => !early.has(keyOf(entry));
    const unsettled = changes.unsettled.filter(isNew);
    const fresh = new Set([...unsettled, ...changes.entries.filter(isNew)].map((entry) => entry.objectUuid));
    return {
      ...changes,
      unsettled,
      upsert: new Map([...changes.upsert].filter(([uuid]) => fresh.has(uuid))),
      remove: changes.remove.filter((uuid) => fresh.has(uuid)),
      tunnels: new Set([...changes.tunnels].filter((uuid) => fresh.has(uuid))),
    };
  }

  #remember(changes: ChangesSince): void {
    for (const entry of changes.entries) this.#early.delete(keyOf(entry));
    for (const entry of changes.unsettled) this.#early.add(keyOf(entry));
  }

  /** Returns what is left to hand out: all of it, or all but the tunnels that went ahead. */
  async #handTunnels(client: pg.Client, changes: ChangesSince): Promise<Changes> {
    this.#reading = changes.tunnels.size > 0;
    try {
      const parts = partsOf(client, changes, routersOf(this.#subscribers), this.cursor);
      for (let part = await parts.next(); ; part = await parts.next()) {
        if (part.done === true) return part.value;
        for (const subscriber of [...this.#subscribers]) subscriber.changes(part.value);
      }
    } finally {
      this.#reading = false;
    }
  }

  /** States stay `pending` and cursors stand still while a transaction stays open: whoever runs it should know. */
  async #watchHorizon(client: pg.Client): Promise<void> {
    const [oldest] = this.#early;
    if (oldest !== this.#held.entry) this.#held = { entry: oldest, since: Date.now(), warned: 0 };
    const held = this.#held;
    const now = Date.now();
    if (oldest === undefined || now - held.since < this.#warnMilliseconds) return;
    if (now - held.warned < WARN_AGAIN_MILLISECONDS) return;
    held.warned = now;
    const seconds = Math.round((now - held.since) / 1000);
    this.#warn(`changes have waited ${seconds} s for an older transaction to end: ${await oldestWriter(client)}`);
  }

  #hand(changes: Changes): void {
    this.cursor = changes.cursor;
    if (changes.entries.length === 0 && changes.unsettled.length === 0) return;
    for (const subscriber of [...this.#subscribers]) subscriber.changes(changes);
  }

  /** Between two reads nothing is handed out, so that a joiner neither misses nor repeats anything. */
  async #admit(client: pg.Client): Promise<void> {
    while (this.#joiners.length > 0) {
      const joiners = this.#joiners.splice(0);
      const { next, floor } = await readHorizon(client).catch((error: Error) => {
        this.#joiners.unshift(...joiners);
        throw error;
      });
      const far = (joiner: Joiner) =>
        compareCursors(joiner.cursor, floor) < 0 || compareCursors(joiner.cursor, next) > 0;
      for (const joiner of joiners.filter(far)) joiner.resolve(false);
      const near = joiners.filter((joiner) => !far(joiner));
      const from = near.map((joiner) => joiner.cursor).sort(compareCursors)[0];
      if (from === undefined) continue;
      // The same reading for all of them: whoever stands further on gets a little again, in its present state.
      const routers = routersOf(near.map(({ subscriber }) => subscriber));
      const missed = await this.#missedSince(client, from, routers).catch((error: Error) => {
        this.#joiners.unshift(...near);
        throw error;
      });
      for (const { subscriber, resolve } of near) {
        if (missed === undefined) {
          resolve(false);
          continue;
        }
        for (const page of missed) subscriber.changes(page);
        resolve(this.subscribe(subscriber));
      }
    }
  }

  /** Undefined when it is more than a page of settled entries: those are read by the joiner itself. */
  async #missedSince(client: pg.Client, cursor: Cursor, routers: readonly string[]): Promise<Changes[] | undefined> {
    const first = await changesSince(client, cursor, BATCH);
    if (!first.complete && first.unsettled.length === 0) return undefined;
    const pages = [first];
    for (let page = first; !page.complete; ) {
      page = await changesSince(client, first.cursor, BATCH, { after: page.last });
      pages.push(page);
    }
    const missed: Changes[] = [];
    for (const page of pages.filter(({ entries, unsettled }) => entries.length > 0 || unsettled.length > 0)) {
      const parts = partsOf(client, page, routers, cursor);
      let part = await parts.next();
      for (; part.done !== true; part = await parts.next()) missed.push(part.value);
      missed.push(part.value);
    }
    return missed;
  }
}

function routersOf(subscribers: Iterable<TailSubscriber>): readonly string[] {
  return [...subscribers].flatMap(({ routerUuid }) => (routerUuid === undefined ? [] : [routerUuid]));
}

/**
 * Yields parts of the tunnels where their ends are too many to be held at once, which hardly ever happens, and returns
 * everything else with the last of them. `before`: the cursor of the parts.
 */
async function* partsOf(
  client: pg.Client,
  changes: ChangesSince,
  routers: readonly string[],
  before: Cursor,
): AsyncGenerator<Changes, Changes> {
  const tunnels = [...changes.tunnels];
  const atOnce = Math.max(1, Math.floor(ENDS_AT_ONCE / Math.max(1, routers.length)));
  let from = 0;
  for (; from + atOnce < tunnels.length; from += atOnce) {
    const part = tunnels.slice(from, from + atOnce);
    const ends = await readPresentTunnels(client, part, routers);
    const nothing = { entries: [], unsettled: [], upsert: new Map(), remove: [] };
    yield { ...changes, ...nothing, cursor: before, tunnels: new Set(part), ends };
  }
  const last = tunnels.slice(from);
  const ends = await readPresentTunnels(client, last, routers);
  return { ...changes, tunnels: new Set(last), ends };
}

/** What is visible of it to our role; other roles' sessions show only that they are there. */
async function oldestWriter(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ what: string }>(
    `select what from (
        select backend_xid as xid, format('session %s (%s, %s, database %s), transaction %s since %s', pid,
          coalesce(nullif(application_name, ''), 'no name'), coalesce(state, 'state not visible'), datname, backend_xid,
          xact_start) as what
        from pg_stat_activity where backend_xid is not null and pid <> pg_backend_pid()
        union all
        select transaction, format('prepared transaction %s of %s, database %s, since %s', gid, owner, database, prepared)
        from pg_prepared_xacts
      ) writers order by age(xid) desc limit 1`,
  );
  return rows[0]?.what ?? 'which one cannot be seen';
}

function keyOf(entry: Cursor): string {
  return `${entry.xid}.${entry.position}`;
}
