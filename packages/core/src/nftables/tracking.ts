/**
 * Owns which traffic conntrack sees: what the rules and filters of a prefix need, both ways, and how packets find it. A map of
 * each prefix length and direction leads to a chain that says which packets are tracked; equal chains are one. Whoever is not
 * tracked by the narrowest prefix may be by a wider one.
 * Never decides which SYNs are kept from conntrack: syn-chains.ts does.
 */
import { hash } from 'node:crypto';
import { type Entry, isFilter } from '../filter/entry.ts';
import type { Filter } from '../filter/filter.ts';
import { type FilterScope, trackedScopesOf } from '../filter/scope.ts';
import { formatAddress } from '../net/address.ts';
import type { Family } from '../net/prefix.ts';
import { standsAt } from './entry-text.ts';
import type { Site } from './layout.ts';
import { trackChain, trackedChain, trackedMap } from './names.ts';
import { clientConditions, type Direction, scopeConditions, transportNumbers } from './scope-text.ts';
import { trackedMapDefinition } from './skeleton.ts';
import { countLength, type Work } from './work.ts';

/** The lines for packets to a prefix, of which each tracks some; none: nothing is tracked. */
export type Tracked = readonly string[];

const directions: readonly Direction[] = ['to', 'from'];
const track = `goto ${trackChain}`;

/**
 * Later fragments show no ports: all fragments of a transport go to conntrack, which puts them together, or none do. RFC 791,
 * 3.1: more fragments, or an offset.
 */
const fragment4 = '@nh,48,16 & 0x3fff != 0';

/** `before`: the entries of the prefix before the change. */
export function exchangeTracking(work: Work, { key, prefix, entries }: Site, before: readonly Entry[]): void {
  const { state, journal, transaction, beginsTracking } = work;
  const { family, length } = prefix;
  for (const direction of directions) {
    const [old, now] = [before, entries].map((each) => trackedLines(each, family, direction)) as [Tracked, Tracked];
    if (old.join('\n') === now.join('\n')) continue;
    const [map, address] = [trackedMap(direction, family, length), formatAddress(prefix)];
    if (old.length > 0) transaction.removeElement(map, address);
    if (now.length > 0) transaction.addElement(map, `${address} : ${verdictOf(work, now, 1)}`);
    if (old.length > 0) verdictOf(work, old, -1);
    if (direction === 'from') continue;
    journal.put(state.tracked, key, now.length > 0 ? now : undefined);
    if (now.length > 0 && !isWithin(now, old)) beginsTracking.push(prefix);
    const difference = Math.sign(now.length) - Math.sign(old.length);
    const definitions = directions.map((each) => trackedMapDefinition(each, family, length));
    if (difference !== 0) countLength(work, state.trackedLengths, prefix, difference, ...definitions);
  }
}

/** Once, behind all prefixes: what one of them no longer needs, another may from now on. */
export function exchangeTrackedChains({ state, journal, transaction, trackedUses }: Work): void {
  for (const [chain, { lines, difference }] of trackedUses) {
    if (difference === 0) continue;
    const before = state.trackedChains.get(chain) ?? 0;
    journal.count(state.trackedChains, chain, difference);
    if (before === 0) transaction.addChain(chain, lines);
    else if (before + difference === 0) transaction.removeChain(chain);
  }
}

/** Whether all that is tracked by the one is tracked by the other, as far as equal lines tell. */
export function isWithin(narrow: Tracked, wide: Tracked): boolean {
  return wide.includes(track) || narrow.every((line) => wide.includes(line));
}

function verdictOf({ trackedUses }: Work, lines: Tracked, difference: 1 | -1): string {
  if (lines[0] === track) return track;
  const chain = trackedChain(hash('sha256', lines.join('\n'), 'hex').slice(0, 32));
  trackedUses.set(chain, { lines, difference: (trackedUses.get(chain)?.difference ?? 0) + difference });
  return `jump ${chain}`;
}

function trackedLines(entries: readonly Entry[], family: Family, direction: Direction): Tracked {
  const fragments = new Set<string>();
  const others = new Set<string>();
  for (const entry of entries) {
    if (!standsAt(entry, 'forward')) continue;
    // A rule may ask for what is related to a connection, whatever its own protocol.
    if (!isFilter(entry) && entry.connectionState !== undefined) return [track];
    if (!isFilter(entry)) continue;
    for (const scope of trackedScopesOf(entry)) {
      fragments.add(fragmentLine(entry, scope, direction));
      for (const conditions of scopeConditions(entry, scope, direction)) others.add([...conditions, track].join(' '));
    }
  }
  if (others.size === 0) return [];
  // By their text: whichever filter came first, equal needs are equal chains.
  const [first, rest] = [[...fragments].sort(), [...others].sort()];
  // A first fragment may show a transport that those behind it do not.
  return family === 4 ? [...first, ...rest] : [...first, 'exthdr frag exists return', ...rest];
}

function fragmentLine(filter: Filter, { transport }: FilterScope, direction: Direction): string {
  const { family } = filter.dst;
  const number = transportNumbers[transport](family);
  const ofTransport = family === 4 ? `${fragment4} meta l4proto ${number}` : `frag nexthdr ${number}`;
  return [ofTransport, ...clientConditions(filter, direction), track].join(' ');
}
