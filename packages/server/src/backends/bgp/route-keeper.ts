/**
 * Brings one session's routes to what is stored: the whole, by comparing with the speaker's list, or some flowrules that
 * changed. One a session, one call at a time. What it remembers of the speaker is only what the speaker listed or took.
 */
import type { RouteKey, RouteOptions } from '@levee/core/flowspec/bgp-route.ts';
import type pg from 'pg';
import {
  loadAll,
  loadSome,
  type Refusal,
  type RowAt,
  type StoredFlowrule,
  saveIntent,
  saveRefused,
  saveTaken,
  saveWithdrawn,
} from './announced-flowrules.ts';
import { decideRoutes, keysOf, type RouteDecisions, type RowOfRoute } from './decide-routes.ts';
import type { SpeakerSession, SpeakerTrouble } from './port.ts';

export interface RouteKeeper {
  /** Throws what the driver throws. A trouble ends the session's use. */
  whole(): Promise<Kept | SpeakerTrouble>;
  /** These flowrules may have changed. */
  some(uuids: readonly string[]): Promise<Kept | SpeakerTrouble>;
  readonly counts: RouteCounts;
}

export interface Kept {
  readonly ok: true;
  /** Something was written to the change log. */
  readonly hasWritten: boolean;
  /** Some wait for another program to withdraw its routes, which nobody tells of. */
  readonly areBlocked: boolean;
}

export interface RouteCounts {
  readonly flow: number;
  readonly blackhole: number;
  readonly foreign: number;
}

export interface KeeperOptions {
  readonly pool: Pick<pg.Pool, 'query'>;
  readonly session: SpeakerSession;
  readonly routes: RouteOptions;
  /** Throws when another replica may lead: awaited before the speaker is told anything. */
  readonly prove: () => Promise<void>;
}

/** Flowrules that are noted, announced and noted again at once. */
const atOnce = 2_000;

export function createRouteKeeper({ pool, session, routes, prove }: KeeperOptions): RouteKeeper {
  let ours = new Map<RouteKey, string>();
  let foreign = new Set<RouteKey>();

  async function bring(rows: readonly StoredFlowrule[], isWhole: boolean): Promise<Kept | SpeakerTrouble> {
    const decided = decideRoutes(rows, { ours, foreign }, routes, isWhole);
    const { announce, areBlocked } = decided;
    const withdrawn = await withdrawAll(decided);
    if (!withdrawn.ok) return withdrawn;
    await saveTaken(pool, decided.confirm);
    // Those that were there before are noted already: a speaker that was started anew has them back at once.
    const lost = await announceAll(announce.filter(({ isNew }) => !isNew));
    if (!lost.ok) return lost;
    await saveRefused(pool, lost.refusals);
    const fresh = announce.filter(({ isNew }) => isNew);
    for (let from = 0; from < fresh.length; from += atOnce) {
      const part = fresh.slice(from, from + atOnce);
      const intended = await saveIntent(pool, part);
      const sent = await announceAll(part.filter(({ uuid }) => intended.has(uuid)));
      if (!sent.ok) return sent;
      await saveRefused(pool, sent.refusals);
      await saveTaken(pool, sent.taken);
    }
    const written = [decided.confirm, decided.free, decided.refuse, fresh, lost.refusals];
    return { ok: true, hasWritten: written.some(({ length }) => length > 0), areBlocked };
  }

  async function withdrawAll({
    withdraw,
    free,
    refuse,
  }: RouteDecisions): Promise<{ readonly ok: true } | SpeakerTrouble> {
    if (withdraw.length > 0) {
      await prove();
      const done = await session.withdraw(withdraw);
      if (!done.ok) return done;
      for (const { key } of withdraw) if (!done.refused.has(key)) ours.delete(key);
      // It should not happen, and is found by the next comparison: until then their rows stay.
      if (done.refused.size > 0) return { ok: true };
    }
    await saveWithdrawn(pool, free);
    await saveRefused(pool, refuse);
    return { ok: true };
  }

  async function announceAll(
    rows: readonly RowOfRoute[],
  ): Promise<{ readonly ok: true; readonly taken: RowAt[]; readonly refusals: Refusal[] } | SpeakerTrouble> {
    const taken: RowAt[] = [];
    const refusals: Refusal[] = [];
    if (rows.length === 0) return { ok: true, taken, refusals };
    await prove();
    const done = await session.announce(rows.map(({ route }) => route));
    if (!done.ok) return done;
    for (const { uuid, position, route } of rows) {
      const reason = done.refused.get(route.key);
      if (reason === undefined) {
        ours.set(route.key, route.content);
        taken.push({ uuid, position });
      } else refusals.push({ uuid, position, reason });
    }
    return { ok: true, taken, refusals };
  }

  return {
    async whole() {
      // The list first: a flowrule that is stored after it is missing there, and announced again without harm.
      const listed = await session.list();
      if (!listed.ok) return listed;
      ours = new Map(listed.ours);
      foreign = new Set(listed.foreign);
      return bring(await loadAll(pool), true);
    },
    async some(uuids) {
      const rows = await loadSome(pool, uuids);
      const expected = decideRoutes(rows, { ours, foreign }, routes, false);
      if (expected.announce.length + expected.withdraw.length === 0) return bring(rows, false);
      // Before anything is told: another program may have announced or withdrawn a route of these since the last comparison.
      const keys = keysOf(rows, routes);
      const listed = await session.list(keys);
      if (!listed.ok) return listed;
      for (const key of keys) {
        const content = listed.ours.get(key);
        if (content === undefined) ours.delete(key);
        else ours.set(key, content);
        if (listed.foreign.has(key)) foreign.add(key);
        else foreign.delete(key);
      }
      return bring(rows, false);
    },
    get counts() {
      let blackhole = 0;
      for (const key of ours.keys()) if (key.startsWith('unicast')) blackhole++;
      return { flow: ours.size - blackhole, blackhole, foreign: foreign.size };
    },
  };
}
