/**
 * Owns a change of rules and filters: which prefixes it reaches, and what the table needs for it beside their chains. Works on
 * the state through a journal and writes what it finds into a transaction.
 * Never renders commands, and never looks at prefixes that the change cannot reach.
 */
import { compareEntries, type Entry, isFilter } from '../filter/entry.ts';
import type { Family, Prefix } from '../net/prefix.ts';
import { asksIngress, standsAt } from './entry-text.ts';
import { exchangeLayouts } from './exchange-layouts.ts';
import { exchangeProgram } from './exchange-program.ts';
import type { Journal } from './journal.ts';
import { planeLetters, type Site } from './layout.ts';
import {
  openingDispatchChain,
  openingMap,
  outputHookChain,
  prefixKey,
  preroutingHookChain,
  synDispatchChain,
  synMap,
  trackChain,
} from './names.ts';
import { destinationChains, dispatchLines, families, outputLines, trackingLines, trackLines } from './skeleton.ts';
import type { State } from './state.ts';
import { exchangeSynChains } from './syn-chains.ts';
import { exchangeTrackedChains, exchangeTracking } from './tracking.ts';
import type { Transaction } from './transaction.ts';
import type { Work } from './work.ts';

export interface Delta {
  readonly upsert: Iterable<Entry>;
  readonly remove: Iterable<string>;
}

/** The entries that one prefix loses and gains. */
interface Touched {
  readonly prefix: Prefix;
  readonly leaving: Set<string>;
  readonly coming: Entry[];
}

/** The prefixes of whose traffic conntrack sees more from now on. */
export function applyDelta(state: State, delta: Delta, journal: Journal, transaction: Transaction): Prefix[] {
  const work: Work = { state, journal, transaction, beginsTracking: [], trackedUses: new Map() };
  const fixedBefore = variableChains(state);
  const needsBefore = new Map(state.needs);
  const touched = exchangeEntries(work, delta);
  const reached = reachedSites(state, touched, exchangeSites(work, touched));
  for (const plane of state.planes) {
    const flips = plane.plane === 'ingress' && needsBefore.has('ingress') !== state.needs.has('ingress');
    exchangeLayouts(work, plane, flips ? withEverySite(state, reached) : reached);
  }
  for (const [name, lines] of variableChains(state)) {
    const before = fixedBefore.get(name);
    if (before?.join('\n') !== lines.join('\n')) transaction.changeChain(name, lines);
  }
  return work.beginsTracking;
}

/** The chains whose lines follow from which prefix lengths are in use; they exist from the table's beginning on. */
export function variableChains(state: State): Map<string, readonly string[]> {
  const chains = new Map<string, readonly string[]>();
  for (const plane of state.planes) {
    const found = destinationChains(planeLetters[plane.plane], lengthsByFamily(plane.lengths));
    for (const [name, lines] of found) chains.set(name, lines);
  }
  const syns = lengthsByFamily(state.synLengths);
  chains.set(preroutingHookChain, trackingLines(lengthsByFamily(state.trackedLengths), syns));
  chains.set(synDispatchChain, dispatchLines(synMap, syns));
  const openings = lengthsByFamily(state.openingLengths);
  chains.set(outputHookChain, outputLines(syns, openings));
  chains.set(openingDispatchChain, dispatchLines(openingMap, openings));
  chains.set(trackChain, trackLines(state.needs.has('fragment marks')));
  return chains;
}

/** The prefix lengths among these length keys. */
export function lengthsByFamily(counts: ReadonlyMap<string, number>): Map<Family, number[]> {
  const lengths = (family: Family) =>
    [...counts.keys()].filter((key) => key.startsWith(`${family}_`)).map((key) => Number(key.slice(2)));
  return new Map(families.map((family) => [family, lengths(family)]));
}

function exchangeEntries(work: Work, delta: Delta): Map<string, Touched> {
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
  const wanted = new Map<string, Entry | undefined>();
  for (const uuid of delta.remove) wanted.set(uuid, undefined);
  for (const entry of delta.upsert) wanted.set(entry.uuid, entry);
  for (const [uuid, entry] of wanted) {
    const before = work.state.entries.get(uuid);
    work.journal.put(work.state.entries, uuid, entry);
    const old = before && takesPart(work.state, before) ? before : undefined;
    const now = entry && takesPart(work.state, entry) ? entry : undefined;
    if (old) touch(old.dst).leaving.add(uuid);
    if (now) touch(now.dst).coming.push(now);
    exchangeProgram(work, old, now);
    if (old) countNeeds(work, old, -1);
    if (now) countNeeds(work, now, 1);
  }
  return touched;
}

function takesPart(state: State, entry: Entry): boolean {
  return state.planes.some(({ plane }) => standsAt(entry, plane));
}

/** What one entry adds to, or takes from, the table beside its chains. */
function countNeeds(work: Work, entry: Entry, difference: 1 | -1): void {
  const { state, journal } = work;
  if (asksIngress(entry)) journal.count(state.needs, 'ingress', difference);
  if (!isFilter(entry) && entry.protocol === 'ipv6-frag' && entry.dst.family === 6) {
    journal.count(state.needs, 'fragment marks', difference);
  }
}

/** Prefixes above one that appeared or went: they may have become inner ones, or leaves. */
function exchangeSites(work: Work, touched: ReadonlyMap<string, Touched>): Site[] {
  const { sites } = work.state;
  const parents: Site[] = [];
  for (const [key, { prefix, leaving, coming }] of touched) {
    const before = sites.get(prefix);
    const kept = before?.entries.filter((entry) => !leaving.has(entry.uuid)) ?? [];
    const entries = coming.length > 0 ? [...kept, ...coming].sort(compareEntries) : kept;
    work.journal.putPrefix(sites, prefix, entries.length > 0 ? { key, prefix, entries } : undefined);
    exchangeSynChains(work, { key, prefix, entries }, before?.entries ?? []);
    exchangeTracking(work, { key, prefix, entries }, before?.entries ?? []);
    if ((before === undefined) === (entries.length === 0)) continue;
    const parent = sites.covering(prefix).findLast((entry) => entry.prefix.length < prefix.length);
    if (parent) parents.push(parent.value);
  }
  exchangeTrackedChains(work);
  return parents;
}

/** The prefixes whose chains may differ after the change, gone ones too (without entries), wider before narrower. */
function reachedSites(state: State, touched: ReadonlyMap<string, Touched>, parents: readonly Site[]): Site[] {
  const reached = new Map<string, Site>();
  for (const [key, { prefix }] of touched) {
    const site = state.sites.get(prefix);
    if (site === undefined) reached.set(key, { key, prefix, entries: [] });
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
