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
  /** What a router's agent must be able to do to enforce it, and the words for it; absent: every agent can. */
  readonly needs?: Need | undefined;
  /** Names of the only routers that it concerns; absent: all of them. */
  readonly routers?: ReadonlySet<string> | undefined;
}

export interface Need {
  readonly capability: string;
  /** After "its agent does not enforce": `filters of kind wireguard (20)`. */
  readonly words: string;
}

export interface DerivedState {
  readonly state: 'pending' | 'active' | 'failed';
  /** Where the state is not `active`. One sentence. */
  readonly reason?: string | undefined;
  /** Router by router, in order of enrolment. Not to be changed: lists share it between objects. */
  readonly applied: readonly AppliedEntry[];
}

/**
 * What became of a change: in force on every enrolled router; refused by the kernel of one; not yet everywhere when the
 * time was over; or never everywhere, because no router is enrolled or one enforces nothing (the others have it).
 */
export type WaitOutcome = 'applied' | 'failed' | 'timeout' | 'not-enforced';

export interface AppliedView {
  /** For a deleted object `active` means: gone from every router. */
  stateOf(object: StoredObject): DerivedState;
  /** Resolves as soon as the outcome is known. `uuids`: the objects changed. No statement is made for a waiter. */
  waitApplied(
    change: StoredObject['change'],
    milliseconds: number,
    uuids?: readonly string[],
    scope?: Pick<StoredObject, 'needs' | 'routers'>,
  ): Promise<WaitOutcome>;
  stop(): void;
}

/**
 * Agents report every 10 s, and a replica hears of another's reports within 5 s: after so long, that what was in force
 * still is can only be supposed.
 */
export const UNKNOWN_MILLISECONDS = 60_000;
/** Agents report every 10 s: three missing ones are more than a hiccup. */
const AWAY_MILLISECONDS = 30_000;

const NO_ROUTER: DerivedState = {
  state: 'pending',
  reason: 'No router is enrolled: nothing enforces it yet.',
  applied: [],
};

/** Names shown of routers that have not enrolled. */
const NAMED_ROUTERS = 5;

function noneEnrolled(names: ReadonlySet<string>): DerivedState {
  const shown = [...names].slice(0, NAMED_ROUTERS).join(', ');
  const more = names.size > NAMED_ROUTERS ? ` and ${names.size - NAMED_ROUTERS} more` : '';
  const which = names.size === 1 ? 'The only router' : 'None of the routers';
  const has = names.size === 1 ? 'has not enrolled' : 'has enrolled';
  return { ...NO_ROUTER, reason: `${which} that it concerns (${shown}${more}) ${has}: nothing enforces it yet.` };
}

interface Waiter {
  readonly cursor: Cursor;
  readonly uuids: readonly string[];
  readonly scope: Pick<StoredObject, 'needs' | 'routers'>;
  readonly done: (outcome: WaitOutcome) => void;
}

/** `now`: by the database's clock, which dates reports wherever they were stored. */
export function createAppliedView(
  registry: RouterRegistry,
  now: () => number = () => Date.now() + registry.clockAheadMilliseconds,
): AppliedView {
  const waiters = new Set<Waiter>();
  let checking = false;
  let shared: { version: number; until: number; before: Cursor; state: DerivedState; gone: DerivedState } | undefined;

  const leave = registry.onChange(() => {
    if (checking || waiters.size === 0) return;
    checking = true;
    // Ten thousand routers' reports arrive in bursts: one look after each burst.
    setImmediate(() => {
      checking = false;
      const standing = standingOf(registry.routers);
      for (const waiter of waiters) {
        const outcome = outcomeOf(isWhole(waiter.scope) ? standing : undefined, registry.routers, waiter);
        if (outcome !== undefined) waiter.done(outcome);
      }
    });
  });

  /** Old objects on healthy routers all get the same answer: it is made once. */
  function sharedState(): typeof shared {
    const at = now();
    if (shared?.version === registry.version && at < shared.until) return shared;
    let until = Number.POSITIVE_INFINITY;
    let before: Cursor | undefined;
    for (const router of registry.routers) {
      const oldest = router.history.oldest;
      if (router.enforcement !== 'kernel' || router.acked === undefined || oldest === undefined) return undefined;
      if (before === undefined || compareCursors(oldest, before) < 0) before = oldest;
      const unknownAt = (router.lastSeenMilliseconds ?? 0) + UNKNOWN_MILLISECONDS;
      if (unknownAt > at) until = Math.min(until, unknownAt);
    }
    if (before === undefined) return undefined;
    const probe = { uuid: '', cursor: before, changed: undefined };
    shared = {
      version: registry.version,
      until,
      before,
      state: derive(registry.routers, { ...probe, deleted: false }, at),
      gone: derive(registry.routers, { ...probe, deleted: true }, at),
    };
    return shared;
  }

  return {
    stateOf({ uuid, change, changedMilliseconds, deleted, needs, routers: only }) {
      const routers = inScope(registry.routers, only);
      if (routers.length === 0) return only === undefined || only.size === 0 ? NO_ROUTER : noneEnrolled(only);
      const cursor = { xid: Number(change.xid), position: change.position };
      const known = needs === undefined && only === undefined ? sharedState() : undefined;
      if (
        known !== undefined &&
        compareCursors(cursor, known.before) <= 0 &&
        !routers.some((router) => router.failures.has(uuid))
      ) {
        return deleted ? known.gone : known.state;
      }
      return derive(routers, { uuid, cursor, changed: changedMilliseconds, deleted, needs }, now());
    },
    waitApplied(change, milliseconds, uuids = [], scope = {}) {
      const cursor = { xid: Number(change.xid), position: change.position };
      const known = outcomeOf(undefined, registry.routers, { cursor, uuids, scope });
      if (known !== undefined) return Promise.resolve(known);
      if (milliseconds <= 0) return Promise.resolve('timeout');
      return new Promise((resolve) => {
        const waiter: Waiter = {
          cursor,
          uuids,
          scope,
          done(outcome) {
            clearTimeout(timer);
            waiters.delete(waiter);
            resolve(outcome);
          },
        };
        const timer = setTimeout(() => waiter.done('timeout'), milliseconds);
        waiters.add(waiter);
      });
    },
    stop() {
      leave();
      for (const waiter of waiters) waiter.done('timeout');
    },
  };
}

interface Standing {
  /** Whether any router is waited for. */
  readonly enforcing: boolean;
  /** Whether any does not enforce it. */
  readonly dry: boolean;
  /** The place up to which all that are waited for have it; undefined: one has acknowledged nothing yet. */
  readonly everywhere: Cursor | undefined;
}

/** Every router, and nothing that an agent might lack. */
function isWhole({ needs, routers }: Waiter['scope']): boolean {
  return needs === undefined && routers === undefined;
}

/**
 * A router that lacks what is needed counts as one that enforces nothing. It is waited for all the same when its agent
 * has capabilities at all: such a one reports what it lacks as a failure, with the reason. An older one says nothing. What
 * one can that has acknowledged nothing yet is not known.
 */
function standingOf(routers: readonly KnownRouter[], needs?: Need): Standing {
  const able = (router: KnownRouter) => needs === undefined || router.capabilities.has(needs.capability);
  const enforcing = routers.filter((router) => router.enforcement !== 'dry');
  const rest = enforcing.filter((router) => able(router) || router.capabilities.size > 0 || !hasBegun(router));
  let everywhere = rest[0]?.acked;
  for (const { enforcement, acked } of rest) {
    if (enforcement === undefined || acked === undefined) everywhere = undefined;
    if (everywhere === undefined || acked === undefined) break;
    if (compareCursors(acked, everywhere) < 0) everywhere = acked;
  }
  const dry = enforcing.length < routers.length || !enforcing.every(able);
  return { enforcing: rest.length > 0, dry, everywhere };
}

/** Undefined: not known yet. `shared`: the standing of all routers, where the scope is the whole. */
function outcomeOf(
  shared: Standing | undefined,
  all: readonly KnownRouter[],
  { cursor, uuids, scope }: Pick<Waiter, 'cursor' | 'uuids' | 'scope'>,
): WaitOutcome | undefined {
  const routers = inScope(all, scope.routers);
  const { enforcing, dry, everywhere } = shared ?? standingOf(routers, scope.needs);
  if (!enforcing) return 'not-enforced';
  if (everywhere === undefined || compareCursors(cursor, everywhere) > 0) return undefined;
  if (uuids.some((uuid) => routers.some((router) => router.failures.has(uuid)))) return 'failed';
  return dry ? 'not-enforced' : 'applied';
}

function inScope(routers: readonly KnownRouter[], only: ReadonlySet<string> | undefined): readonly KnownRouter[] {
  return only === undefined ? routers : routers.filter(({ name }) => only.has(name));
}

interface Subject {
  readonly uuid: string;
  readonly cursor: Cursor;
  readonly changed: number | undefined;
  readonly deleted: boolean;
  readonly needs?: Need | undefined;
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
  const { needs, deleted } = subject;
  // Waiting is of no use then. An agent with capabilities says itself why it lacks one, once it has taken the object up.
  const { capabilities } = router;
  const lacks = needs !== undefined && hasBegun(router) && !capabilities.has(needs.capability);
  if (lacks && !deleted && (covered || capabilities.size === 0)) {
    return { ...place, state: 'pending', reason: `its agent does not enforce ${needs.words}` };
  }
  if (!covered) return { ...place, state: 'pending', reason: whyNotYet(router, now) };
  if (router.enforcement !== 'kernel' && !subject.deleted) {
    return {
      ...place,
      state: 'pending',
      reason: `nothing is enforced there: ${router.enforcementReason ?? 'it did not say why'}`,
    };
  }
  if (router.tableLeft && subject.deleted) {
    const reason = `it may still be in force there: ${router.enforcementReason ?? 'an older table is left'}`;
    return { ...place, state: 'pending', reason };
  }
  const seen = router.lastSeenMilliseconds;
  if (!subject.deleted && seen !== undefined && now - seen >= UNKNOWN_MILLISECONDS) {
    const last = new Date(seen).toISOString();
    const reason = `not heard of since ${last}: the last known rules stay in its kernel, but it cannot be asked`;
    return { ...place, state: 'pending', last_seen_at: last, reason };
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

/** Capabilities are a promise about the cursor: before an agent has one, it promises nothing, whatever it can. */
function hasBegun({ acked }: KnownRouter): boolean {
  return acked !== undefined;
}

function whyNotYet(router: KnownRouter, now: number): string {
  const seen = router.lastSeenMilliseconds;
  if (seen === undefined) return 'the router has not connected since it was enrolled';
  if (now - seen > AWAY_MILLISECONDS) return `the router has not been heard of since ${new Date(seen).toISOString()}`;
  if (router.enforcement === 'dry')
    return `nothing is enforced there: ${router.enforcementReason ?? 'it did not say why'}`;
  return router.waitsForTunnels
    ? 'the router has not acknowledged it yet: it is still at work on tunnels'
    : 'the router has not put it in force yet';
}
