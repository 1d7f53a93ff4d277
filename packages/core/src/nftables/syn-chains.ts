/**
 * Owns how SYNs find filters with a SYN proxy before and behind the forward hook, by a map of each prefix length and a chain
 * of each prefix, so that a SYN meets the filters of its own destination alone: which clients' SYNs conntrack does not see
 * (`all but SYNs`), and which filters count the SYNs that the router sends for clients (`openings`).
 * Never decides what is tracked otherwise. A SYN counts whatever rules stand before the filter: at these hooks nothing is
 * decided by rules.
 */
import { type Entry, isFilter } from '../filter/entry.ts';
import type { Filter } from '../filter/filter.ts';
import { scopesOf } from '../filter/scope.ts';
import { formatAddress } from '../net/address.ts';
import type { Family } from '../net/prefix.ts';
import { standsAt } from './entry-text.ts';
import { openingLine } from './filter-text.ts';
import type { Site } from './layout.ts';
import { openingChain, openingMap, synChain, synMap } from './names.ts';
import { opensForClients } from './proxied-flows.ts';
import { scopeConditions } from './scope-text.ts';
import { openingMapDefinition, synMapDefinition } from './skeleton.ts';
import type { State } from './state.ts';
import type { SetDefinition } from './transaction.ts';
import { countLength, type Work } from './work.ts';

interface Place {
  readonly chain: (key: string) => string;
  readonly map: (family: Family, length: number) => string;
  readonly definition: (family: Family, length: number) => SetDefinition;
  readonly lengths: (state: State) => Map<string, number>;
  /** How a line of the filter ends; undefined: it has none there. */
  readonly ending: (filter: Filter) => string | undefined;
}

const places: readonly Place[] = [
  {
    chain: synChain,
    map: synMap,
    definition: synMapDefinition,
    lengths: (state) => state.synLengths,
    // The router's own connections stay tracked, as they do in skeleton.ts.
    ending: (filter) => (opensForClients(filter) ? 'fib daddr type != local notrack accept' : undefined),
  },
  {
    chain: openingChain,
    map: openingMap,
    definition: openingMapDefinition,
    lengths: (state) => state.openingLengths,
    ending: openingLine,
  },
];

/** `before`: the entries of the prefix before the change. */
export function exchangeSynChains(work: Work, site: Site, before: readonly Entry[]): void {
  for (const place of places) exchangeAt(place, work, site, before);
}

function exchangeAt(place: Place, work: Work, { key, prefix, entries }: Site, before: readonly Entry[]): void {
  const { state, transaction } = work;
  const lines = (entry: Entry) => linesOf(place, entry);
  const [old, now] = [before.flatMap(lines), entries.flatMap(lines)];
  if (old.join('\n') === now.join('\n')) return;
  const chain = place.chain(key);
  if (old.length === 0) transaction.addChain(chain, now);
  else if (now.length === 0) transaction.removeChain(chain);
  else transaction.changeChain(chain, now);
  if (old.length > 0 && now.length > 0) return;
  const { family, length } = prefix;
  const address = formatAddress(prefix);
  if (now.length > 0) transaction.addElement(place.map(family, length), `${address} : jump ${chain}`);
  else transaction.removeElement(place.map(family, length), address);
  countLength(work, place.lengths(state), prefix, now.length > 0 ? 1 : -1, place.definition(family, length));
}

function linesOf({ ending }: Place, entry: Entry): string[] {
  if (!isFilter(entry) || !standsAt(entry, 'forward')) return [];
  const end = ending(entry);
  if (end === undefined) return [];
  return scopesOf(entry)
    .filter(({ transport }) => transport === 'tcp')
    .flatMap((scope) => scopeConditions(entry, scope))
    .map((conditions) => [...conditions, end].join(' '));
}
