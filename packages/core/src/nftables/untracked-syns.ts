/**
 * Owns which SYNs conntrack does not see: those that filters with a SYN proxy answer (`all but SYNs`), by a map of each
 * prefix length and a chain of each prefix, so that a SYN meets the filters of its own destination alone.
 * Never decides what is tracked otherwise. A SYN counts whatever rules stand before the filter: at this hook nothing
 * has been decided yet.
 */
import { type Entry, isFilter } from '../filter/entry.ts';
import type { Filter } from '../filter/filter.ts';
import { scopesOf } from '../filter/scope.ts';
import { formatAddress } from '../net/address.ts';
import { standsAt } from './entry-text.ts';
import { scopeConditions } from './filter-text.ts';
import type { Site } from './layout.ts';
import { synChain, synMap } from './names.ts';
import { synMapDefinition } from './skeleton.ts';
import { countLength, type Work } from './work.ts';

/** `before`: the entries of the prefix before the change. */
export function exchangeUntrackedSyns(work: Work, { key, prefix, entries }: Site, before: readonly Entry[]): void {
  const { state, transaction } = work;
  const [old, now] = [before.flatMap(synLines), entries.flatMap(synLines)];
  if (old.join('\n') === now.join('\n')) return;
  const chain = synChain(key);
  if (old.length === 0) transaction.addChain(chain, now);
  else if (now.length === 0) transaction.removeChain(chain);
  else transaction.changeChain(chain, now);
  if (old.length > 0 && now.length > 0) return;
  const { family, length } = prefix;
  const address = formatAddress(prefix);
  if (now.length > 0) transaction.addElement(synMap(family, length), `${address} : jump ${chain}`);
  else transaction.removeElement(synMap(family, length), address);
  countLength(work, state.synLengths, prefix, now.length > 0 ? 1 : -1, synMapDefinition(family, length));
}

/** The router's own connections stay tracked, as they do in skeleton.ts. */
function synLines(entry: Entry): string[] {
  if (!hasSynProxy(entry)) return [];
  return scopesOf(entry)
    .filter(({ transport }) => transport === 'tcp')
    .flatMap((scope) => scopeConditions(entry, scope))
    .map((conditions) => [...conditions, 'fib daddr type != local notrack accept'].join(' '));
}

function hasSynProxy(entry: Entry): entry is Filter {
  return isFilter(entry) && standsAt(entry, 'forward') && entry.kind.enforcement?.tracking === 'all but SYNs';
}
