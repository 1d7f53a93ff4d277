/**
 * Owns what the compiler knows between two plans: rules and filters, and what the table holds for them. Data and look-ups only;
 * changes go through a journal (change.ts).
 */
import type { Entry } from '../filter/entry.ts';
import { PrefixIndex } from '../net/prefix-index.ts';
import type { Chain, Layout, Site } from './layout.ts';
import { planeLetters } from './layout.ts';
import { sharedChain } from './names.ts';
import type { Item } from './outline.ts';
import type { Plane } from './rule-text.ts';
import type { Tracked } from './tracking.ts';
import type { SetDefinition } from './transaction.ts';

export interface PlaneState {
  readonly plane: Plane;
  readonly layouts: Map<string, Layout>;
  /** Keys of the prefixes whose target has this digest and may be shared. */
  readonly twins: Map<string, Set<string>>;
  /** Chains of prefixes and runs, by name; not the shared ones. */
  readonly chains: Map<string, readonly Item[]>;
  /** Parts of runs in use, with the number of layouts that use them. */
  readonly parts: Map<string, { readonly chain: Chain; readonly users: number }>;
  /** Elements by length key. */
  readonly lengths: Map<string, number>;
}

export interface State {
  /** All of them, those that are compiled to nothing too. */
  readonly entries: Map<string, Entry>;
  readonly sites: PrefixIndex<Site>;
  readonly planes: readonly PlaneState[];
  /** Of the whole table, by name. */
  readonly sets: Map<string, SetDefinition>;
  /** Own chains that count for one entry → its uuid. */
  readonly countingChains: Map<string, string>;
  /** What conntrack must see of the traffic to a prefix, by its key. */
  readonly tracked: Map<string, Tracked>;
  /** Chains that say what is tracked, with the number of maps' elements that lead there. */
  readonly trackedChains: Map<string, number>;
  /** Prefixes in `tracked`, by length key. */
  readonly trackedLengths: Map<string, number>;
  /** Prefixes with SYNs that conntrack must not see, by length key. */
  readonly synLengths: Map<string, number>;
  /** Prefixes with filters that bound the connections opened for clients, by length key. */
  readonly openingLengths: Map<string, number>;
  /** Rules in force, by what they make necessary. */
  readonly needs: Map<'fragment marks' | 'ingress', number>;
}

/**
 * From this many destinations on, equal chains are one. A shared chain counts for all of its destinations together, and
 * a destination that joins or leaves at the threshold moves all of them: hence neither few nor many. A pure
 * function of the rules, never of history, so that a restarted agent arrives at the same names.
 */
export const sharedFrom = 16;

export function emptyState(planes: readonly Plane[]): State {
  return {
    entries: new Map(),
    sites: new PrefixIndex(),
    planes: planes.map((plane) => ({
      plane,
      layouts: new Map(),
      twins: new Map(),
      chains: new Map(),
      parts: new Map(),
      lengths: new Map(),
    })),
    sets: new Map(),
    countingChains: new Map(),
    tracked: new Map(),
    trackedChains: new Map(),
    trackedLengths: new Map(),
    synLengths: new Map(),
    openingLengths: new Map(),
    needs: new Map(),
  };
}

export function isShared(state: PlaneState, digest: string): boolean {
  return (state.twins.get(digest)?.size ?? 0) >= sharedFrom;
}

/** The chain to which packets to this prefix go. */
export function targetChain(state: PlaneState, layout: Layout | undefined): string | undefined {
  const target = layout?.target;
  if (layout === undefined || target === undefined) return undefined;
  const shared = layout.shareable && isShared(state, target.digest);
  return shared ? sharedChain(planeLetters[state.plane], target.digest) : target.name;
}

/** The items of all layouts that are behind a chain: several when it is shared. */
export function holdersOf(state: PlaneState, chain: string): (readonly Item[])[] {
  const own = state.chains.get(chain);
  if (own) return [own];
  const prefix = sharedChain(planeLetters[state.plane], '');
  if (!chain.startsWith(prefix)) return [];
  const digest = chain.slice(prefix.length);
  if (!isShared(state, digest)) return [];
  const holders: (readonly Item[])[] = [];
  for (const key of state.twins.get(digest) ?? []) {
    const target = state.layouts.get(key)?.target;
    if (target) holders.push(target.items);
  }
  return holders;
}
