/**
 * Owns the step from changed prefixes to changed chains at one hook: lays them out anew, and writes what differs, also
 * for prefixes that share a chain from now on, or no longer.
 * Never decides which prefixes a change reaches.
 */
import { formatAddress } from '../net/address.ts';
import type { Prefix } from '../net/prefix.ts';
import { type Chain, chainLines, countedEntries, type Layout, layoutOf, planeLetters, type Site } from './layout.ts';
import { destinationMap, sharedChain } from './names.ts';
import type { Item } from './outline.ts';
import { destinationMapDefinition } from './skeleton.ts';
import { holdersOf, isShared, type PlaneState, type State, targetChain } from './state.ts';
import { countLength, type Work } from './work.ts';

/** What was there before a change of layouts. */
interface Before {
  readonly layout: Layout | undefined;
  readonly target: string | undefined;
}

/** `reached`: wider prefixes first; one without entries has gone. */
export function exchangeLayouts(work: Work, plane: PlaneState, reached: readonly Site[]): void {
  const before = new Map<Site, Before>();
  /** Digest → whether prefixes with it shared a chain. */
  const shared = new Map<string, boolean>();
  const note = (layout: Layout | undefined): void => {
    const digest = layout?.shareable ? layout.target?.digest : undefined;
    if (digest !== undefined && !shared.has(digest)) shared.set(digest, isShared(plane, digest));
  };
  const partsBefore = new Map<string, Chain | undefined>();
  const noteParts = (layout: Layout | undefined): void => {
    for (const { name } of layout?.parts ?? []) {
      if (!partsBefore.has(name)) partsBefore.set(name, plane.parts.get(name)?.chain);
    }
  };
  for (const site of reached) {
    const layout = plane.layouts.get(site.key);
    note(layout);
    noteParts(layout);
    before.set(site, { layout, target: targetChain(plane, layout) });
  }
  for (const site of reached) {
    const layout = freshLayout(work.state, plane, site);
    // Before the layout counts among its twins.
    note(layout);
    noteParts(layout);
    exchangeLayout(work, plane, site, layout);
  }
  const drawn = drawnAlong(plane, before, shared);
  writeChains(work, plane, new Map([...before, ...drawn]), partsBefore);
  writeSharedChains(work, plane, shared);
  for (const [site, { target }] of [...before, ...drawn]) {
    writeElement(work, plane, site.prefix, target, targetChain(plane, plane.layouts.get(site.key)));
  }
}

function freshLayout(state: State, plane: PlaneState, site: Site): Layout | undefined {
  if (site.entries.length === 0 || (plane.plane === 'ingress' && !state.needs.has('ingress'))) return undefined;
  const wider = state.sites.covering(site.prefix).findLast((entry) => entry.prefix.length < site.prefix.length);
  const inherited = wider && plane.layouts.get(wider.value.key);
  return layoutOf(plane.plane, site, inherited, state.sites.inside(site.prefix).length > 1);
}

function exchangeLayout(work: Work, plane: PlaneState, site: Site, layout: Layout | undefined): void {
  const before = plane.layouts.get(site.key);
  work.journal.put(plane.layouts, site.key, layout);
  for (const part of before?.parts ?? []) countPart(work, plane, part, -1);
  for (const part of layout?.parts ?? []) countPart(work, plane, part, 1);
  const digestOf = (of: Layout | undefined) => (of?.shareable ? of.target?.digest : undefined);
  const [old, now] = [digestOf(before), digestOf(layout)];
  if (old === now) return;
  if (old !== undefined) work.journal.member(plane.twins, old, site.key, false);
  if (now !== undefined) work.journal.member(plane.twins, now, site.key, true);
}

/** The newest text of a part is everyone's: all that use it lie inside the prefix whose change made it. */
function countPart(work: Work, plane: PlaneState, chain: Chain, difference: 1 | -1): void {
  const known = plane.parts.get(chain.name);
  const users = (known?.users ?? 0) + difference;
  const newest = difference === 1 ? chain : (known?.chain ?? chain);
  work.journal.put(plane.parts, chain.name, users > 0 ? { chain: newest, users } : undefined);
}

/** Prefixes that the change did not reach, but whose body is shared from now on, or no longer. */
function drawnAlong(
  plane: PlaneState,
  reached: ReadonlyMap<Site, Before>,
  shared: ReadonlyMap<string, boolean>,
): Map<Site, Before> {
  const reachedKeys = new Set([...reached.keys()].map((site) => site.key));
  const drawn = new Map<Site, Before>();
  for (const [digest, wasShared] of shared) {
    if (wasShared === isShared(plane, digest)) continue;
    for (const key of plane.twins.get(digest) ?? []) {
      const layout = plane.layouts.get(key);
      if (layout?.target === undefined || reachedKeys.has(key)) continue;
      const target = wasShared ? sharedChain(planeLetters[plane.plane], digest) : layout.target.name;
      drawn.set(layout.site, { layout, target });
    }
  }
  return drawn;
}

/** The difference between the chains that stood for these prefixes and those that stand for them now. */
function writeChains(
  work: Work,
  plane: PlaneState,
  before: ReadonlyMap<Site, Before>,
  partsBefore: ReadonlyMap<string, Chain | undefined>,
): void {
  const old = new Map<string, Chain>();
  const now = new Map<string, Chain>();
  for (const [name, part] of partsBefore) {
    if (part) old.set(name, part);
    const present = plane.parts.get(name)?.chain;
    if (present) now.set(name, present);
  }
  for (const [site, { layout, target }] of before) {
    for (const chain of privateChains(layout, target)) old.set(chain.name, chain);
    const present = plane.layouts.get(site.key);
    for (const chain of privateChains(present, targetChain(plane, present))) now.set(chain.name, chain);
  }
  for (const [name, { digest, items }] of now) {
    const known = old.get(name);
    work.journal.put(plane.chains, name, items);
    if (known === undefined) work.transaction.addChain(name, chainLines(plane.plane, items));
    // Equal texts of other entries: their counters must not go on from each other's.
    else if (known.digest !== digest || !sameOwners(known.items, items)) {
      work.transaction.changeChain(name, chainLines(plane.plane, items));
    }
  }
  for (const name of old.keys()) {
    if (now.has(name)) continue;
    work.journal.put(plane.chains, name, undefined);
    work.transaction.removeChain(name);
  }
}

function writeSharedChains(work: Work, plane: PlaneState, shared: ReadonlyMap<string, boolean>): void {
  for (const [digest, wasShared] of shared) {
    const name = sharedChain(planeLetters[plane.plane], digest);
    const [items] = holdersOf(plane, name);
    if (items && !wasShared) work.transaction.addChain(name, chainLines(plane.plane, items));
    if (!items && wasShared) work.transaction.removeChain(name);
  }
}

/** `target`: the chain that packets to the prefix go to, its own or a shared one. */
function privateChains(layout: Layout | undefined, target: string | undefined): readonly Chain[] {
  if (layout === undefined) return [];
  const own = layout.target;
  return layout.shareable && own !== undefined && own.name === target ? [...layout.chains, own] : layout.chains;
}

function sameOwners(a: readonly Item[], b: readonly Item[]): boolean {
  const [mine, theirs] = [countedEntries(a), countedEntries(b)];
  return mine.length === theirs.length && mine.every((entry, index) => entry.uuid === theirs[index]?.uuid);
}

function writeElement(
  work: Work,
  plane: PlaneState,
  prefix: Prefix,
  before: string | undefined,
  now: string | undefined,
): void {
  if (before === now) return;
  const letter = planeLetters[plane.plane];
  const map = destinationMap(letter, prefix.family, prefix.length);
  const difference = (now === undefined ? 0 : 1) - (before === undefined ? 0 : 1);
  if (difference !== 0) {
    const definition = destinationMapDefinition(letter, prefix.family, prefix.length);
    countLength(work, plane.lengths, prefix, difference, definition);
  }
  const address = formatAddress(prefix);
  if (before !== undefined) work.transaction.removeElement(map, address);
  if (now !== undefined) work.transaction.addElement(map, `${address} : goto ${now}`);
}
