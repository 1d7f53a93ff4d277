/**
 * Derives an object's state from what the routers reported: the only place that decides it. Reads memory only, so that
 * a list of a hundred thousand rules costs no statement.
 */
import type { AppliedEntry } from '@levee/contract/schemas/object.ts';
import { type Cursor, compareCursors } from '../store/cursor.ts';
import type { KnownRouter, RouterRegistry } from './router-registry.ts';

export interface StoredObject {
  readonly uuid: string;
  /** The place of its last change. */
  readonly change: { readonly xid: string | number; readonly position: number };
  /** When that change was made, by the database's clock; absent: no latency is told. */
  readonly changedMilliseconds?: number | undefined;
  readonly deleted: boolean;
}

export interface DerivedState {
  readonly state: 'pending' | 'active' | 'failed';
  /** Where the state is not `active`. One sentence. */
  readonly reason?: string | undefined;
  /** Router by router, in order of enrolment. Not to be changed: lists share it between objects. */
  readonly applied: readonly AppliedEntry[];
}

export interface AppliedView {
  /** For a deleted object `active` means: gone from every router. */
  stateOf(object: StoredObject): DerivedState;
  /**
   * Resolves true once the change is in force on every enrolled router, false when the time is over or nothing can
   * enforce it. No statement is made for a waiter.
   */
  waitApplied(change: StoredObject['change'], milliseconds: number): Promise<boolean>;
  stop(): void;
}

/** Agents report every 10 s: three missing ones are more than a hiccup. */
const AWAY_MILLISECONDS = 30_000;

const NO_ROUTER: DerivedState = {
  state: 'pending',
  reason: 'No router is enrolled: nothing enforces it yet.',
  applied: [],
};

interface Waiter {
  readonly cursor: Cursor;
  readonly done: (applied: boolean) => void;
}

export function createAppliedView(registry: RouterRegistry, now: () => number = Date.now): AppliedView {
  const waiters = new Set<Waiter>();
  let checking = false;
  let shared: { version: number; before: Cursor; state: DerivedState; gone: DerivedState } | undefined;

  const leave = registry.onChange(() => {
    if (checking || waiters.size === 0) return;
    checking = true;
    // Ten thousand routers' reports arrive in bursts: one look after each burst.
    setImmediate(() => {
      checking = false;
      const everywhere = appliedEverywhere(registry.routers);
      if (everywhere === undefined) return;
      for (const waiter of waiters) if (compareCursors(waiter.cursor, everywhere) <= 0) waiter.done(true);
    });
  });

  /** Old objects on healthy routers all get the same answer: it is made once. */
  function sharedState(): typeof shared {
    if (shared?.version === registry.version) return shared;
    let before: Cursor | undefined;
    for (const router of registry.routers) {
      const oldest = router.history.oldest;
      if (router.enforcement !== 'kernel' || router.acked === undefined || oldest === undefined) return undefined;
      if (before === undefined || compareCursors(oldest, before) < 0) before = oldest;
    }
    if (before === undefined) return undefined;
    const probe = { uuid: '', cursor: before, changed: undefined };
    shared = {
      version: registry.version,
      before,
      state: derive(registry.routers, { ...probe, deleted: false }, now()),
      gone: derive(registry.routers, { ...probe, deleted: true }, now()),
    };
    return shared;
  }

  return {
    stateOf({ uuid, change, changedMilliseconds, deleted }) {
      const { routers } = registry;
      if (routers.length === 0) return NO_ROUTER;
      const cursor = { xid: Number(change.xid), position: change.position };
      const known = sharedState();
      if (
        known !== undefined &&
        compareCursors(cursor, known.before) <= 0 &&
        !routers.some((router) => router.failures.has(uuid))
      ) {
        return deleted ? known.gone : known.state;
      }
      return derive(routers, { uuid, cursor, changed: changedMilliseconds, deleted }, now());
    },
    waitApplied(change, milliseconds) {
      const cursor = { xid: Number(change.xid), position: change.position };
      const everywhere = appliedEverywhere(registry.routers);
      if (everywhere !== undefined && compareCursors(cursor, everywhere) <= 0) return Promise.resolve(true);
      return new Promise((resolve) => {
        const waiter: Waiter = {
          cursor,
          done(applied) {
            clearTimeout(timer);
            waiters.delete(waiter);
            resolve(applied);
          },
        };
        const timer = setTimeout(() => waiter.done(false), milliseconds);
        waiters.add(waiter);
      });
    },
    stop() {
      leave();
      for (const waiter of waiters) waiter.done(false);
    },
  };
}

/** The place up to which every router enforces, or undefined when one does not enforce at all. */
function appliedEverywhere(routers: readonly KnownRouter[]): Cursor | undefined {
  let lowest: Cursor | undefined;
  for (const { enforcement, acked } of routers) {
    if (enforcement !== 'kernel' || acked === undefined) return undefined;
    if (lowest === undefined || compareCursors(acked, lowest) < 0) lowest = acked;
  }
  return lowest;
}

interface Subject {
  readonly uuid: string;
  readonly cursor: Cursor;
  readonly changed: number | undefined;
  readonly deleted: boolean;
}

function derive(routers: readonly KnownRouter[], subject: Subject, now: number): DerivedState {
  const applied = routers.map((router) => entryOf(router, subject, now));
  const failed = applied.find((entry) => entry.state === 'failed');
  const found = failed ?? applied.find((entry) => entry.state === 'pending');
  const state = failed !== undefined ? 'failed' : found !== undefined ? 'pending' : 'active';
  return { state, applied, ...(found?.reason !== undefined && { reason: `${found.router}: ${found.reason}` }) };
}

function entryOf(router: KnownRouter, subject: Subject, now: number): AppliedEntry {
  const place = { location: router.location, router: router.name };
  const covered = router.acked !== undefined && compareCursors(subject.cursor, router.acked) <= 0;
  const failure = subject.deleted && covered ? undefined : router.failures.get(subject.uuid);
  if (failure !== undefined) return { ...place, state: 'failed', reason: failure };
  if (!covered) return { ...place, state: 'pending', reason: whyNotYet(router, now) };
  if (router.enforcement !== 'kernel' && !subject.deleted) {
    return {
      ...place,
      state: 'pending',
      reason: `nothing is enforced there: ${router.enforcementReason ?? 'it did not say why'}`,
    };
  }
  const since = router.history.covering(subject.cursor);
  return {
    ...place,
    state: subject.deleted ? 'removed' : 'active',
    ...(since !== undefined && { at: new Date(since.atMilliseconds).toISOString() }),
    ...(since?.exact &&
      subject.changed !== undefined && { latency_ms: Math.max(0, Math.round(since.atMilliseconds - subject.changed)) }),
  };
}

function whyNotYet(router: KnownRouter, now: number): string {
  const seen = router.lastSeenMilliseconds;
  if (seen === undefined) return 'the router has not connected since it was enrolled';
  if (now - seen > AWAY_MILLISECONDS) return `the router has not been heard of since ${new Date(seen).toISOString()}`;
  if (router.enforcement === 'dry')
    return `nothing is enforced there: ${router.enforcementReason ?? 'it did not say why'}`;
  return 'the router has not put it in force yet';
}
