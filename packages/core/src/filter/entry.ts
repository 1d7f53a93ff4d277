/** What decides about a destination's packets, in order: all of its rules, then all of its filters. */
import { compareRules, type Rule } from '../firewall/rule.ts';
import type { Filter } from './filter.ts';
import { hasSynProxy } from './filter-kind.ts';

export type Entry = Rule | Filter;

export function isFilter(entry: Entry): entry is Filter {
  return 'kind' in entry;
}

/**
 * Rules before filters; among each, priority, then creation. Filters with a SYN proxy are asked before all other filters: what
 * ends a handshake with the router is part of no connection yet, and no other kind would let it get as far.
 */
export function compareEntries(a: Entry, b: Entry): number {
  if (isFilter(a)) return isFilter(b) ? compareFilters(a, b) : 1;
  return isFilter(b) ? -1 : compareRules(a, b);
}

function compareFilters(a: Filter, b: Filter): number {
  const turn = ({ kind }: Filter): number => (hasSynProxy(kind) ? 0 : 1);
  return turn(a) - turn(b) || a.priority - b.priority || a.sequence - b.sequence;
}
