/**
 * Owns a change of the rules: which prefixes it reaches, what their chains become, what the table needs for that. Works
 * on the state through a journal and writes what it finds into a transaction.
 * Never renders commands, and never looks at prefixes that the change cannot reach.
 */
import { compareRules, type Rule } from '../firewall/rule.ts';
import { formatAddress } from '../net/address.ts';
import type { Family, Prefix } from '../net/prefix.ts';
import type { Journal } from './journal.ts';
import { type Chain, chainLines, countedRules, type Layout, layoutOf, planeLetters, type Site } from './layout.ts';
import {
  destinationChain,
  destinationMap,
  prefixKey,
  sharedChain,
  trackChain,
  trackedSet,
  trackingChain,
} from './names.ts';
import type { Item } from './outline.ts';
import { canMatch, ownChains } from './rule-text.ts';
import {
  destinationLines,
  destinationMapDefinition,
  lengthKey,
  trackedSetDefinition,
  trackingLines,
  trackLines,
} from './skeleton.ts';
import { holdersOf, isShared, type PlaneState, type State, targetChain } from './state.ts';
import type { SetDefinition, Transaction } from './transaction.ts';

export interface Delta {
  readonly upsert: Iterable<Rule>;
  readonly remove: Iterable<string>;
}

/** What one change carries through all of its steps. */
interface Work {
  readonly state: State;
  readonly journal: Journal;
  readonly transaction: Transaction;
}

/** The rules that one prefix loses and gains. */
interface Touched {
  readonly prefix: Prefix;
  readonly leaving: Set<string>;
  readonly coming: Rule[];
}

const allFamilies: readonly Family[] = [4, 6];

export function applyDelta(state: State, delta: Delta, journal: Journal, transaction: Transaction): void {
  const work: Work = { state, journal, transaction };
  const fixedBefore = variableChains(state);
  const needsBefore = new Map(state.needs);
  const touched = exchangeRules(work, delta);
  const reached = reachedSites(state, touched, exchangeSites(work, touched));
  for (const plane of state.planes) {
    const flips = plane.plane === 'ingress' && needsBefore.has('ingress') !== state.needs.has('ingress');
    layOut(work, plane, flips ? withEverySite(state, reached) : reached);
  }
  for (const [name, lines] of variableChains(state)) {
    const before = fixedBefore.get(name);
    if (before?.join('\n') !== lines.join('\n')) transaction.changeChain(name, lines);
  }
}

/** The chains whose lines follow from which prefix lengths are in use; they exist from the table's beginning on. */
export function variableChains(state: State): Map<string, readonly string[]> {
  const chains = new Map<string, readonly string[]>();
  for (const plane of state.planes) {
    const letter = planeLetters[plane.plane];
    for (const family of allFamilies) {
      chains.set(destinationChain(letter, family), destinationLines(letter, family, lengthsOf(plane.lengths, family)));
    }
  }
  const tracked = new Map(allFamilies.map((family) => [family, lengthsOf(state.trackedLengths, family)] as const));
  chains.set(trackingChain, trackingLines(tracked));
  chains.set(trackChain, trackLines(state.needs.has('fragment marks')));
  return chains;
}

function lengthsOf(counts: ReadonlyMap<string, number>, family: Family): number[] {
  return [...counts.keys()].filter((key) => key.startsWith(`${family}_`)).map((key) => Number(key.slice(2)));
}

function exchangeRules(work: Work, delta: Delta): Map<string, Touched> {
  const touched = new Map<string, Touched>();
  const touch = (prefix: Prefix): Touched => {
    const key = prefixKey(prefix);
    const known = touched.get(key);
    if (known) return known;
    const created = { prefix, leaving: new Set<string>(), coming: [] };
    touched.set(key, created);
    return created;
  };
  // The last word on a uuid counts, and a removal before an upsert of the same delta is a replacement.
  const wanted = new Map<string, Rule | undefined>();
  for (const uuid of delta.remove) wanted.set(uuid, undefined);
  for (const rule of delta.upsert) wanted.set(rule.uuid, rule);
  for (const [uuid, rule] of wanted) {
    const before = work.state.rules.get(uuid);
    work.journal.put(work.state.rules, uuid, rule);
    const old = before && takesPart(work.state, before) ? before : undefined;
    const now = rule && takesPart(work.state, rule) ? rule : undefined;
    if (old) touch(old.dst).leaving.add(uuid);
    if (now) touch(now.dst).coming.push(now);
    exchangeOwnChains(work, old, now);
    if (old) countNeeds(work, old, -1);
    if (now) countNeeds(work, now, 1);
  }
  return touched;
}

function takesPart(state: State, rule: Rule): boolean {
  return state.planes.some(({ plane }) => canMatch(rule, plane));
}

function exchangeOwnChains(work: Work, old: Rule | undefined, now: Rule | undefined): void {
  const before = new Map((old ? ownChains(old) : []).map((chain) => [chain.name, chain]));
  for (const chain of now ? ownChains(now) : []) {
    const known = before.get(chain.name);
    before.delete(chain.name);
    if (known === undefined) work.transaction.addChain(chain.name, chain.lines);
    else if (known.lines.join('\n') !== chain.lines.join('\n')) work.transaction.changeChain(chain.name, chain.lines);
    if (chain.counted) work.journal.put(work.state.verdictOwners, chain.name, now?.uuid);
  }
  for (const [name, { counted }] of before) {
    work.transaction.removeChain(name);
    if (counted) work.journal.put(work.state.verdictOwners, name, undefined);
  }
}

/** What one rule adds to, or takes from, the table beside its chains. */
function countNeeds(work: Work, rule: Rule, difference: 1 | -1): void {
  const { state, journal, transaction } = work;
  if (rule.packetType !== undefined && rule.packetType !== 'host') journal.count(state.needs, 'ingress', difference);
  if (rule.protocol === 'ipv6-frag' && rule.dst.family === 6) journal.count(state.needs, 'fragment marks', difference);
  if (rule.connectionState === undefined || !canMatch(rule, 'forward')) return;
  const key = prefixKey(rule.dst);
  const before = state.stateful.get(key) ?? 0;
  journal.count(state.stateful, key, difference);
  const after = before + difference;
  if (before !== 0 && after !== 0) return;
  const { family, length } = rule.dst;
  countLength(work, state.trackedLengths, rule.dst, difference, trackedSetDefinition(family, length));
  const element = formatAddress(rule.dst);
  if (after === 0) transaction.removeElement(trackedSet(family, length), element);
  else transaction.addElement(trackedSet(family, length), element);
}

/** A set exists as long as it has an element. */
function countLength(
  work: Work,
  lengths: Map<string, number>,
  prefix: Prefix,
  difference: number,
  definition: SetDefinition,
): void {
  const key = lengthKey(prefix.family, prefix.length);
  const before = lengths.get(key) ?? 0;
  work.journal.count(lengths, key, difference);
  if (before === 0) work.transaction.addSet(definition);
  if (before + difference === 0) work.transaction.removeSet(definition);
}

/** Prefixes above one that appeared or went: they may have become inner ones, or leaves. */
function exchangeSites(work: Work, touched: ReadonlyMap<string, Touched>): Site[] {
  const { sites } = work.state;
  const parents: Site[] = [];
  for (const [key, { prefix, leaving, coming }] of touched) {
    const before = sites.get(prefix);
    const kept = before?.rules.filter((rule) => !leaving.has(rule.uuid)) ?? [];
    const rules = coming.length > 0 ? [...kept, ...coming].sort(compareRules) : kept;
    work.journal.putPrefix(sites, prefix, rules.length > 0 ? { key, prefix, rules } : undefined);
    if ((before === undefined) === (rules.length === 0)) continue;
    const parent = sites.covering(prefix).findLast((entry) => entry.prefix.length < prefix.length);
    if (parent) parents.push(parent.value);
  }
  return parents;
}

/** The prefixes whose chains may differ after the change, gone ones too (without rules), wider before narrower. */
function reachedSites(state: State, touched: ReadonlyMap<string, Touched>, parents: readonly Site[]): Site[] {
  const reached = new Map<string, Site>();
  for (const [key, { prefix }] of touched) {
    const site = state.sites.get(prefix);
    if (site === undefined) reached.set(key, { key, prefix, rules: [] });
    for (const { value } of state.sites.inside(prefix)) reached.set(value.key, value);
  }
  for (const parent of parents) {
    // A parent may have been exchanged itself since it was noted.
    const present = state.sites.get(parent.prefix);
    if (present) reached.set(present.key, present);
  }
  return widerFirst(reached.values());
}

function withEverySite(state: State, reached: readonly Site[]): Site[] {
  const all = new Map(reached.map((site) => [site.key, site]));
  for (const { value } of state.sites.entries()) all.set(value.key, value);
  return widerFirst(all.values());
}

function widerFirst(sites: Iterable<Site>): Site[] {
  return [...sites].sort((a, b) => a.prefix.length - b.prefix.length);
}

/** What was there before a change of layouts. */
interface Before {
  readonly layout: Layout | undefined;
  readonly target: string | undefined;
}

function layOut(work: Work, plane: PlaneState, reached: readonly Site[]): void {
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
  if (site.rules.length === 0 || (plane.plane === 'ingress' && !state.needs.has('ingress'))) return undefined;
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
    // Equal texts of other rules: their counters must not go on from each other's.
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
  const [mine, theirs] = [countedRules(a), countedRules(b)];
  return mine.length === theirs.length && mine.every((rule, index) => rule.uuid === theirs[index]?.uuid);
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
