/**
 * Follows the change log and the routers' reports, and tells each transition of an object once. Runs on the one replica
 * that leads. What was told is in the database, so that another replica goes on where this one stopped; what is kept in
 * memory only says where to look. When anything fails, the lead ends and begins anew from the database.
 */
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import type { EventObject } from '@levee/contract/event-names.ts';
import type pg from 'pg';
import { type AppliedView, type DerivedState, UNKNOWN_MILLISECONDS } from '../agents/applied-view.ts';
import type { RouterRegistry } from '../agents/router-registry.ts';
import type { ChangeTail } from '../store/change-tail.ts';
import { type Cursor, compareCursors } from '../store/cursor.ts';
import type { Lead } from './election.ts';
import { loadOpen, loadTold, type TellObject, takeUp, tell } from './event-log.ts';
import { byRouters, type RenderedObject, type Renderers, tableOf } from './objects.ts';
import { conditionsOf, differenceOf, lowestAcknowledged, refusedBy } from './router-standing.ts';
import { isOpen, whatToTell } from './transitions.ts';
import { Unsettled, type UnsettledObject } from './unsettled.ts';

export interface WatcherServices {
  readonly tail: Pick<ChangeTail, 'subscribe' | 'identity'>;
  readonly registry: Pick<RouterRegistry, 'routers' | 'version' | 'onChange' | 'clockAheadMilliseconds'>;
  readonly view: Pick<AppliedView, 'stateOf'>;
  readonly renderers: Renderers;
  /** Events were committed. */
  readonly announce: () => void;
}

/** Between two looks: what happens meanwhile is told together. */
const GATHER_MILLISECONDS = 50;
/** Entries a reading, and objects a transaction. */
const ENTRIES_AT_ONCE = 2_000;
const RENDERED_AT_ONCE = 1_000;
const ROWS_AT_ONCE = 5_000;
/** States derived from memory before other work gets its turn. */
const DERIVED_AT_ONCE = 2_000;
/** Rows of objects that every router let go of are looked for after this, doubling. */
const LEAVING_MILLISECONDS = 100;
const LEAVING_LONGEST_MILLISECONDS = 5_000;
/** Rows may go for reasons not known here. */
const MARKED_MILLISECONDS = 30_000;

/** Settled entries only: the cursor may pass them. In the order of the numbers, not of the text that is selected. */
const ENTRIES = `select c.xid::text as xid, c.position, c.kind, c.object_uuid::text as uuid from change c
  where (c.xid, c.position) > ($1::xid8, $2::int8) and c.xid < pg_snapshot_xmin(pg_current_snapshot())
  order by c.xid, c.position limit $3`;

/** Kind → uuid → the entry that it came by, if any. */
type Candidates = Map<EventObject, Map<string, Cursor | undefined>>;

/** Resolves when the lead is over; throws what the driver throws, and when the log that is followed is another one. */
export async function watch({ client, signal }: Lead, services: WatcherServices): Promise<void> {
  await new Watcher(client, signal, services).run();
}

class Watcher {
  readonly #client: pg.Client;
  readonly #signal: AbortSignal;
  readonly #services: WatcherServices;
  readonly #unsettled = new Unsettled();
  #cursor: Cursor = { xid: 0, position: 0 };
  #low: Cursor | undefined;
  #version = -1;
  #conditions = '';
  #refused: ReadonlySet<string> = new Set();
  #entriesCame = true;
  #logChanged = false;
  #woken = false;
  #rouse: (() => void) | undefined;
  #leavingPause = LEAVING_MILLISECONDS;
  #lookForLeavingAt = Number.POSITIVE_INFINITY;
  #lookForMarkedAt = Date.now() + MARKED_MILLISECONDS;

  constructor(client: pg.Client, signal: AbortSignal, services: WatcherServices) {
    this.#client = client;
    this.#signal = signal;
    this.#services = services;
  }

  async run(): Promise<void> {
    const { tail, registry } = this.#services;
    const wake = () => this.#wake();
    const leaveTail = tail.subscribe({
      changes: ({ entries }) => {
        if (entries.length === 0) return;
        this.#entriesCame = true;
        wake();
      },
      gap: () => {
        this.#logChanged = true;
        wake();
      },
    });
    const leaveRegistry = registry.onChange(wake);
    this.#signal.addEventListener('abort', wake, { once: true });
    try {
      await this.#begin();
      while (!this.#signal.aborted) {
        const notBefore = Date.now() + GATHER_MILLISECONDS;
        this.#woken = false;
        if (this.#logChanged) throw new Error('the change log is another one');
        if (this.#entriesCame) await this.#follow();
        await this.#look();
        await this.#lookForRemoved();
        await this.#sleep(notBefore);
      }
    } finally {
      leaveTail();
      leaveRegistry();
      this.#signal.removeEventListener('abort', wake);
    }
  }

  async #begin(): Promise<void> {
    const { cursor, first } = await takeUp(this.#client, this.#services.tail.identity);
    this.#cursor = cursor;
    if (!first) return this.#load();
    // What is refused already is no news, but that it no longer is will be.
    this.#refused = refusedBy(this.#services.registry.routers);
    const candidates: Candidates = new Map();
    for (const uuid of this.#refused) for (const kind of byRouters) add(candidates, kind, uuid);
    await this.#examine(candidates, cursor, true);
  }

  async #load(): Promise<void> {
    for (const [kind, told] of Map.groupBy(await loadOpen(this.#client), (each) => each.kind)) {
      if (byRouters.has(kind)) await this.#loadOfRouters(kind, new Map(told.map(({ uuid, state }) => [uuid, state])));
      else for (const { uuid, state } of told) if (state === 'marked_for_deletion') this.#leave({ kind, uuid });
    }
  }

  /** Those whose rows are gone meanwhile are told of as marked ones are. */
  async #loadOfRouters(kind: EventObject, told: ReadonlyMap<string, string>): Promise<void> {
    const render = kind === 'firewall_rule' ? undefined : this.#services.renderers[kind];
    const loaded: UnsettledObject[] = [];
    for (const uuids of chunks([...told.keys()], render === undefined ? ROWS_AT_ONCE : RENDERED_AT_ONCE)) {
      const found = render === undefined ? await this.#places(kind, uuids) : (await render(uuids)).map(placeOf);
      const there = new Set(found.map(({ uuid }) => uuid));
      for (const place of found) loaded.push({ kind, ...place, told: told.get(place.uuid) ?? '' });
      for (const uuid of uuids) if (!there.has(uuid)) this.#leave({ kind, uuid });
    }
    loaded.sort((a, b) => compareCursors(a.change, b.change));
    for (const object of loaded) this.#unsettled.put(object, object.change, undefined);
  }

  async #places(kind: EventObject, uuids: readonly string[]): Promise<readonly Place[]> {
    const { rows } = await this.#client.query<{ uuid: string; xid: number; position: number; deleted: boolean }>(
      `select uuid::text as uuid, change_xid::text::int8 as xid, change_position as position,
        deletion_marked_at is not null as deleted from ${tableOf[kind]} where uuid = any($1::uuid[])`,
      [uuids],
    );
    return rows.map(({ uuid, xid, position, deleted }) => ({ uuid, change: { xid, position }, deleted }));
  }

  async #follow(): Promise<void> {
    this.#entriesCame = false;
    for (let more = true; more && !this.#signal.aborted; ) {
      const { rows } = await this.#client.query<{ xid: string; position: number; kind: string; uuid: string }>({
        name: 'events_entries',
        text: ENTRIES,
        values: [String(this.#cursor.xid), this.#cursor.position, ENTRIES_AT_ONCE],
      });
      more = rows.length === ENTRIES_AT_ONCE;
      const candidates: Candidates = new Map();
      let place = this.#cursor;
      for (const { xid, position, kind, uuid } of rows) {
        place = { xid: Number(xid), position };
        add(candidates, kind as EventObject, uuid, place);
      }
      if (rows.length > 0) await this.#examine(candidates, place);
    }
  }

  /** What the routers' reports since the last look may have settled. */
  async #look(): Promise<void> {
    const { registry } = this.#services;
    if (registry.version === this.#version) return;
    this.#version = registry.version;
    const { routers } = registry;
    const before = this.#low;
    this.#low = lowestAcknowledged(routers);
    if (before !== undefined && (this.#low === undefined || compareCursors(this.#low, before) < 0)) {
      this.#unsettled.fellBack();
    }
    const moved = this.#low !== undefined && (before === undefined || compareCursors(this.#low, before) !== 0);
    const reached = moved && this.#low !== undefined ? this.#unsettled.acknowledged(this.#low) : [];
    const now = Date.now() + registry.clockAheadMilliseconds;
    const conditions = conditionsOf(routers, now, UNKNOWN_MILLISECONDS);
    const touched = conditions === this.#conditions ? reached : this.#unsettled.held;
    const freed = routers.length === 0 ? this.#unsettled.marked() : [];
    this.#conditions = conditions;

    const candidates: Candidates = new Map();
    for (const objects of chunks([...touched, ...this.#unsettled.scoped, ...freed], DERIVED_AT_ONCE)) {
      for (const object of objects) this.#sort(object, candidates);
      await nextTurn();
    }
    const refused = refusedBy(routers);
    const changed = differenceOf(this.#refused, refused);
    this.#refused = refused;
    for (const uuids of chunks(changed, ROWS_AT_ONCE)) {
      const told = await loadTold(this.#client, uuids);
      for (const uuid of uuids) {
        const kind = told.get(uuid)?.kind;
        for (const each of kind === undefined ? byRouters : [kind]) add(candidates, each, uuid);
      }
    }
    await this.#examine(candidates, this.#cursor);
  }

  /** From memory: most are as they were. */
  #sort(object: UnsettledObject, candidates: Candidates): void {
    if (object.deleted) {
      this.#leaveIfFree(object);
      return;
    }
    const { kind, uuid, told } = object;
    const { state } = this.#stateOf(object);
    if (state !== 'pending' && state !== told) add(candidates, kind, uuid);
  }

  /** When every router let go of it, or no router is there to. */
  #leaveIfFree(object: UnsettledObject): void {
    const isAlone = this.#services.registry.routers.length === 0 || object.scope?.routers?.size === 0;
    if (isAlone || this.#stateOf(object).state === 'active') this.#leave(object);
  }

  #stateOf({ uuid, change, deleted, scope }: UnsettledObject): DerivedState {
    return this.#services.view.stateOf({ uuid, change, deleted, ...scope });
  }

  #leave(object: Pick<UnsettledObject, 'kind' | 'uuid'>): void {
    if (this.#unsettled.leaving.has(object.uuid)) return;
    this.#unsettled.leave({ change: this.#cursor, told: 'marked_for_deletion', ...object, deleted: true });
    this.#leavingPause = LEAVING_MILLISECONDS;
    this.#lookForLeavingAt = Math.min(this.#lookForLeavingAt, Date.now() + this.#leavingPause);
  }

  async #lookForRemoved(): Promise<void> {
    const now = Date.now();
    const all = now >= this.#lookForMarkedAt;
    if (!all && now < this.#lookForLeavingAt) return;
    if (all) this.#lookForMarkedAt = now + MARKED_MILLISECONDS;
    const objects = all ? this.#unsettled.marked() : [...this.#unsettled.leaving.values()];
    for (const [kind, marked] of Map.groupBy(objects, (object) => object.kind)) {
      for (const some of chunks(marked, ROWS_AT_ONCE)) {
        const { rows } = await this.#client.query<{ uuid: string }>(
          `select u::text as uuid from unnest($1::uuid[]) u where not exists (select from ${tableOf[kind]} where uuid = u)`,
          [some.map(({ uuid }) => uuid)],
        );
        const deleted = rows.map(({ uuid }) => uuid);
        if (deleted.length > 0) await this.#tell([], deleted, this.#cursor);
      }
    }
    this.#leavingPause = Math.min(this.#leavingPause * 2, LEAVING_LONGEST_MILLISECONDS);
    this.#lookForLeavingAt = this.#unsettled.leaving.size === 0 ? Number.POSITIVE_INFINITY : now + this.#leavingPause;
  }

  /**
   * Reads them as a client would, and tells what is new. `cursor`: what counts as followed when all of it is told.
   * `silently`: it is only noted as told.
   */
  async #examine(candidates: Candidates, cursor: Cursor, silently = false): Promise<void> {
    let objects: TellObject[] = [];
    let deleted: string[] = [];
    for (const [kind, since] of candidates) {
      const render = this.#services.renderers[kind];
      if (render === undefined) continue;
      for (const uuids of chunks([...since.keys()], RENDERED_AT_ONCE)) {
        const told = await loadTold(this.#client, uuids);
        const there = await render(uuids);
        for (const object of there) {
          const before = told.get(object.uuid);
          const whats = silently ? [] : whatToTell(kind, before, object);
          const state = whats.length === 0 && before !== undefined ? before.state : object.state;
          if (whats.length > 0 || silently) objects.push({ kind, object, whats, state });
          this.#track(kind, object, state, since.get(object.uuid));
        }
        const found = new Set(there.map(({ uuid }) => uuid));
        deleted.push(...uuids.filter((uuid) => !found.has(uuid) && told.get(uuid)?.kind === kind));
        if (objects.length + deleted.length < ENTRIES_AT_ONCE) continue;
        await this.#tell(objects, deleted, this.#cursor);
        objects = [];
        deleted = [];
      }
    }
    if (objects.length + deleted.length > 0 || cursor !== this.#cursor) await this.#tell(objects, deleted, cursor);
    this.#cursor = cursor;
  }

  async #tell(objects: readonly TellObject[], deleted: readonly string[], cursor: Cursor): Promise<void> {
    const news = await tell(this.#client, { objects, deleted, cursor });
    for (const uuid of deleted) this.#unsettled.drop(uuid);
    if (news) this.#services.announce();
  }

  #track(kind: EventObject, object: RenderedObject, told: string, since: Cursor | undefined): void {
    if (!isOpen(kind, told)) this.#unsettled.drop(object.uuid);
    else if (byRouters.has(kind)) {
      const unsettled = { kind, ...placeOf(object), told };
      this.#unsettled.put(unsettled, since ?? object.change, this.#low);
      if (unsettled.deleted) this.#leaveIfFree(unsettled);
    } else if (object.state === 'marked_for_deletion') this.#leave({ kind, uuid: object.uuid });
    else this.#unsettled.drop(object.uuid);
  }

  #wake(): void {
    this.#woken = true;
    this.#rouse?.();
  }

  /** Until there is something to look at, and in no case before `notBefore`. */
  async #sleep(notBefore: number): Promise<void> {
    await delay(Math.max(0, notBefore - Date.now()), undefined, { signal: this.#signal }).catch(() => {});
    if (this.#woken || this.#signal.aborted) return;
    const marked = this.#unsettled.size === 0 ? Number.POSITIVE_INFINITY : this.#lookForMarkedAt;
    const due = Math.min(this.#lookForLeavingAt, marked);
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = Number.isFinite(due) ? setTimeout(resolve, Math.max(0, due - Date.now())) : undefined;
    this.#rouse = resolve;
    await promise;
    this.#rouse = undefined;
    clearTimeout(timer);
  }
}

type Place = Pick<UnsettledObject, 'uuid' | 'change' | 'deleted' | 'scope'>;

function placeOf({ uuid, change, state, scope }: RenderedObject): Place {
  return { uuid, change, deleted: state === 'marked_for_deletion', scope };
}

function add(candidates: Candidates, kind: EventObject, uuid: string, since?: Cursor): void {
  const ofKind = candidates.get(kind) ?? new Map<string, Cursor | undefined>();
  ofKind.set(uuid, since ?? ofKind.get(uuid));
  candidates.set(kind, ofKind);
}

function* chunks<T>(all: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += size) yield all.slice(at, at + size);
}
