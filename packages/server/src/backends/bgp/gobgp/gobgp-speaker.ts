/**
 * GoBGP as a speaker, by its gRPC interface, on a unix socket or an address; which version of the interface it speaks is
 * found out at each connection. gobgpd keeps nothing: one that was started again has none of our routes.
 */
import {
  type BgpRoute,
  bearsMark,
  type LargeCommunity,
  type RouteFamily,
  type RouteKey,
  routeFamilies,
} from '@levee/core/flowspec/bgp-route.ts';
import type {
  BgpSpeaker,
  RoutesListed,
  RoutesTaken,
  SpeakerPeer,
  SpeakerSession,
  SpeakerTrouble,
  WithdrawnRoute,
} from '../port.ts';
import { type Calls, openCalls } from './calls.ts';
import { FlowMemory } from './flow-memory.ts';
import {
  announcement,
  apis,
  asnOf,
  type GobgpApi,
  listedPaths,
  listedPeer,
  listing,
  prefixOfKey,
  watchEverything,
  watchedChanges,
  watchedPeer,
  withdrawal,
} from './messages.ts';

export interface GobgpOptions {
  /** `unix:///run/gobgp.sock` or `127.0.0.1:50051`. */
  readonly target: string;
  readonly mark: LargeCommunity;
}

/** Routes a message: 10 000 are at a peer in 0.7 s. */
const batchRoutes = 500;
/**
 * With its length. All versions so far write the length of longer FlowSpec routes over their first component, and every
 * peer that is sent one ends its session (seen with 3.10, read in 4.8).
 */
const longestOctets = 239;

export function createGobgpSpeaker({ target, mark }: GobgpOptions): BgpSpeaker {
  const open = new Set<Session>();
  return {
    name: 'GoBGP',
    where: target,
    async connect(onPeers) {
      const calls = openCalls(target);
      const found = await detect(calls);
      if (!('version' in found)) {
        calls.close();
        return found;
      }
      const session = new Session(calls, found, mark, onPeers);
      open.add(session);
      void session.ended.then(() => open.delete(session));
      const begun = await session.begin();
      if (begun === undefined) return { ok: true, session };
      session.close();
      return begun;
    },
    async close() {
      for (const session of open) session.close();
    },
  };
}

function trouble(reason: string): SpeakerTrouble {
  return { ok: false, reason };
}

async function detect(calls: Calls): Promise<GobgpApi | SpeakerTrouble> {
  for (const api of apis) {
    const answer = await calls.ask(`/${api.service}/GetBgp`, new Uint8Array());
    if (answer.ok) {
      const [octets] = answer.answers;
      if (octets !== undefined && asnOf(octets) !== 0) return api;
      return trouble('gobgpd answers, but has no configuration in force yet (global.config).');
    }
    if (answer.kind !== 'unknown_method') return trouble(`gobgpd does not answer: ${answer.message}.`);
  }
  return trouble('What answers there is no gobgpd of version 3 or 4.');
}

class Session implements SpeakerSession {
  readonly version: string;
  readonly ended: Promise<string>;
  readonly #end: (why: string) => void;
  readonly #calls: Calls;
  readonly #api: GobgpApi;
  readonly #mark: LargeCommunity;
  readonly #onPeers: () => void;
  readonly #peers = new Map<string, SpeakerPeer>();
  readonly #memory = new FlowMemory();

  constructor(calls: Calls, api: GobgpApi, mark: LargeCommunity, onPeers: () => void) {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.ended = promise;
    this.#end = resolve;
    this.#calls = calls;
    this.#api = api;
    this.#mark = mark;
    this.#onPeers = onPeers;
    this.version = `gRPC interface ${api.version}`;
  }

  /** Peers are watched before they are read: one that comes between is in neither otherwise. */
  async begin(): Promise<SpeakerTrouble | undefined> {
    this.#calls.watch(
      this.#path('WatchEvent'),
      watchEverything(),
      (octets) => this.#heard(octets),
      (why) => this.#end(`gobgpd is gone: ${why}.`),
    );
    const listed = await this.#calls.list(this.#path('ListPeer'), new Uint8Array());
    if (!listed.ok) return trouble(`gobgpd does not list its peers: ${listed.message}.`);
    for (const octets of listed.answers) {
      const peer = listedPeer(octets);
      if (peer !== undefined && !this.#peers.has(peer.address)) this.#peers.set(peer.address, peer);
    }
    return undefined;
  }

  async announce(routes: readonly BgpRoute[]): Promise<RoutesTaken | SpeakerTrouble> {
    const isLong = ({ nlri }: BgpRoute) => nlri.length > longestOctets;
    const taken = await this.#inBatches(
      routes.filter((route) => !isLong(route)),
      (batch) => announcement(this.#api, batch),
      ({ key }) => key,
    );
    if (!taken.ok) return taken;
    for (const route of routes) if (!isLong(route) && !taken.refused.has(route.key)) this.#memory.announced(route);
    const long = routes.filter(isLong).map(({ key, nlri }): [RouteKey, string] => {
      const length = `takes ${nlri.length} octets, and GoBGP garbles FlowSpec rules of more than ${longestOctets}`;
      return [key, `The rule ${length}: fewer ranges, or several rules, are needed.`];
    });
    return { ok: true, refused: new Map([...taken.refused, ...long]) };
  }

  async withdraw(routes: readonly WithdrawnRoute[]): Promise<RoutesTaken | SpeakerTrouble> {
    const keys = routes.map(({ key }) => key);
    const taken = await this.#inBatches(
      keys.filter((key) => key.length - key.indexOf(' ') - 1 <= 2 * longestOctets),
      (batch) => withdrawal(this.#api, batch),
      (key) => key,
    );
    if (taken.ok) for (const route of routes) if (!taken.refused.has(route.key)) this.#memory.withdrawn(route);
    return taken;
  }

  /** Some routes of a FlowSpec family are found in the memory as long as that is sure, else by listing all of it. */
  async list(keys?: readonly RouteKey[]): Promise<RoutesListed | SpeakerTrouble> {
    const ours = new Map<RouteKey, string>();
    const foreign = new Set<RouteKey>();
    for (const family of routeFamilies) {
      const some = keys?.filter((key) => key.startsWith(`${family} `));
      if (some?.length === 0) continue;
      const known = some && this.#memory.recall(family);
      const found = known ?? (await this.#listFamily(family, some));
      if ('reason' in found) return found;
      for (const key of some ?? [...found.ours.keys(), ...found.foreign]) {
        const content = found.ours.get(key);
        if (content !== undefined) ours.set(key, content);
        if (found.foreign.has(key)) foreign.add(key);
      }
    }
    return { ok: true, ours, foreign };
  }

  /** `some`: of a unicast family these alone are asked for. */
  async #listFamily(
    family: RouteFamily,
    some: readonly RouteKey[] | undefined,
  ): Promise<Pick<RoutesListed, 'ours' | 'foreign'> | SpeakerTrouble> {
    const isFlow = family.startsWith('flow');
    const learn = isFlow ? this.#memory.relearn(family) : undefined;
    const prefixes = isFlow ? undefined : some?.map(prefixOfKey);
    const listed = await this.#calls.list(this.#path('ListPath'), listing(this.#api, family, prefixes));
    if (!listed.ok) return trouble(`gobgpd does not list its routes: ${listed.message}.`);
    const ours = new Map<RouteKey, string>();
    const foreign = new Set<RouteKey>();
    for (const path of listed.answers.flatMap((octets) => listedPaths(family, octets))) {
      const isOurs = bearsMark(path.content, this.#mark);
      learn?.(path, isOurs);
      if (path.isFromPeer) continue;
      if (isOurs) ours.set(path.key, path.content);
      else foreign.add(path.key);
    }
    return { ours, foreign };
  }

  peers(): readonly SpeakerPeer[] {
    return [...this.#peers.values()].sort((a, b) => (a.address < b.address ? -1 : 1));
  }

  close(): void {
    this.#end('The connection was closed.');
    this.#calls.close();
  }

  #path(method: string): string {
    return `/${this.#api.service}/${method}`;
  }

  #heard(octets: Uint8Array): void {
    // All that it watches it watches from its first event on.
    this.#memory.begin();
    for (const change of watchedChanges(octets, this.#mark)) this.#memory.changed(change);
    const peer = watchedPeer(octets);
    if (peer === undefined) return;
    const known = this.#peers.get(peer.address);
    // Events say less of a peer than the list does.
    this.#peers.set(peer.address, { ...peer, asn: peer.asn ?? known?.asn });
    if (known?.established !== peer.established) this.#onPeers();
  }

  /** A batch that is refused is halved until it is known what of it is. */
  async #inBatches<T>(
    all: readonly T[],
    encode: (batch: readonly T[]) => Uint8Array,
    keyOf: (each: T) => RouteKey,
  ): Promise<RoutesTaken | SpeakerTrouble> {
    const refused = new Map<RouteKey, string>();
    const open: (readonly T[])[] = [];
    for (let from = 0; from < all.length; from += batchRoutes) open.push(all.slice(from, from + batchRoutes));
    for (let batch = open.shift(); batch !== undefined; batch = open.shift()) {
      const sent = await this.#calls.send(this.#path('AddPathStream'), encode(batch));
      if (sent.ok) continue;
      if (sent.kind !== 'refused') return trouble(`gobgpd takes no routes: ${sent.message}.`);
      const [only, ...more] = batch;
      if (only === undefined) continue;
      if (more.length === 0) refused.set(keyOf(only), `GoBGP refused it: ${sent.message}.`);
      else {
        const middle = batch.length >> 1;
        open.unshift(batch.slice(0, middle), batch.slice(middle));
      }
    }
    return { ok: true, refused };
  }
}
