/** A speaker in memory, which forgets like gobgpd does, with switches for what can go wrong. Test code only. */
import type { BgpRoute, RouteKey } from '@levee/core/flowspec/bgp-route.ts';
import type { BgpSpeaker, SpeakerPeer, SpeakerSession, SpeakerTrouble } from '../port.ts';

export interface FakeSpeaker extends BgpSpeaker {
  /** What it has now: ours by key, with what their attributes say. */
  readonly routes: ReadonlyMap<RouteKey, string>;
  /** Announced by others through it: it lets ours replace them, and be withdrawn, as gobgpd does. */
  readonly foreign: Set<RouteKey>;
  /** Another program announces it instead. */
  replace(key: RouteKey): void;
  /** Refused whenever they come. */
  readonly refuses: Set<RouteKey>;
  /** Every route ever announced or withdrawn, in order: `+ key`, `- key`. */
  readonly told: string[];
  readonly peers: SpeakerPeer[];
  /** It ends, and all that it had is gone; `start` brings it back empty. */
  crash(): void;
  start(): void;
  /** Its routes stay, and it cannot be reached. */
  partition(): void;
  heal(): void;
  /** The call after so many more ends in the middle: a part of it was taken. Undefined: none does. */
  breakAfter(calls: number | undefined): void;
}

export function createFakeSpeaker(): FakeSpeaker {
  const routes = new Map<RouteKey, string>();
  const foreign = new Set<RouteKey>();
  const refuses = new Set<RouteKey>();
  const told: string[] = [];
  const peers: SpeakerPeer[] = [{ address: '192.0.2.7', asn: 64500, established: true }];
  let reachable = true;
  let breakIn: number | undefined;
  const sessions = new Set<{ readonly end: (why: string) => void }>();
  const away: SpeakerTrouble = { ok: false, reason: 'The fake is away.' };

  function endAll(): void {
    for (const { end } of sessions) end('The fake is gone.');
    sessions.clear();
  }

  /** How many of so many the call comes to; fewer: it broke. */
  function comesTo(count: number): number {
    if (breakIn === undefined || breakIn-- > 0) return count;
    breakIn = undefined;
    return count >> 1;
  }

  const speaker: FakeSpeaker = {
    name: 'GoBGP',
    where: 'memory',
    routes,
    foreign,
    refuses,
    told,
    peers,
    async connect() {
      if (!reachable) return away;
      const { promise: ended, resolve: end } = Promise.withResolvers<string>();
      const handle = { end };
      sessions.add(handle);
      const isOpen = () => sessions.has(handle);
      async function each<T>(all: readonly T[], keyOf: (one: T) => RouteKey, take: (one: T) => void) {
        await Promise.resolve();
        if (!isOpen()) return away;
        const refused = new Map<RouteKey, string>();
        const count = comesTo(all.length);
        for (const one of all.slice(0, count)) {
          if (refuses.has(keyOf(one))) refused.set(keyOf(one), 'The fake refuses it.');
          else take(one);
        }
        if (count < all.length || !isOpen()) {
          endAll();
          return away;
        }
        return { ok: true as const, refused };
      }
      const session: SpeakerSession = {
        version: 'fake',
        ended,
        announce: (all) =>
          each(
            all,
            ({ key }) => key,
            ({ key, content }: BgpRoute) => {
              told.push(`+ ${key}`);
              foreign.delete(key);
              routes.set(key, content);
            },
          ),
        withdraw: (all) =>
          each(
            all,
            ({ key }) => key,
            ({ key }) => {
              if (routes.delete(key) || foreign.delete(key)) told.push(`- ${key}`);
            },
          ),
        async list(keys) {
          await Promise.resolve();
          const isAsked = (key: RouteKey) => keys?.includes(key) !== false;
          const ours = new Map([...routes].filter(([key]) => isAsked(key)));
          return isOpen() ? { ok: true, ours, foreign: new Set([...foreign].filter(isAsked)) } : away;
        },
        peers: () => peers,
        close() {
          sessions.delete(handle);
          end('The connection was closed.');
        },
      };
      return { ok: true, session };
    },
    async close() {
      endAll();
    },
    replace(key) {
      routes.delete(key);
      foreign.add(key);
    },
    crash() {
      reachable = false;
      routes.clear();
      endAll();
    },
    start() {
      reachable = true;
    },
    partition() {
      reachable = false;
      endAll();
    },
    heal() {
      reachable = true;
    },
    breakAfter(calls) {
      breakIn = calls;
    },
  };
  return speaker;
}
