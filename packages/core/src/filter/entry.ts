/** What decides about a destination's packets, in order: all of its rules, then all of its filters. */
import { compareRules, type Rule } from '../firewall/rule.ts';
import type { Filter } from './filter.ts';

export type Entry = Rule | Filter;

export function isFilter(entry: Entry): entry is Filter {
  return 'kind' in entry;
}

/** Rules before filters; among each, priority, then creation. */
export function compareEntries(a: Entry, b: Entry): number {
  if (isFilter(a)) return isFilter(b) ? a.priority - b.priority || a.sequence - b.sequence : 1;
  return isFilter(b) ? -1 : compareRules(a, b);
}
