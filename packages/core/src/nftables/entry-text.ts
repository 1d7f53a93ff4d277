/**
 * Owns what an entry becomes in nft, whichever it is: a rule's text is rule-text.ts's, a filter's filter-text.ts's.
 * Never looks at other entries: order, merging and sharing are the layout's.
 */
import { type Entry, isFilter } from '../filter/entry.ts';
import { type FilterProgram, filterLine, filterProgram } from './filter-text.ts';
import { filterChain, ruleChain } from './names.ts';
import { canMatch, endsEvaluation, lineCounts, needsIngress, ownChains, type Plane, ruleLine } from './rule-text.ts';

/**
 * Whether the entry has a line at this hook. Filters stand at the forward hook alone: what they look at is addressed
 * to this host's hardware, and some of them ask conntrack.
 */
export function standsAt(entry: Entry, plane: Plane): boolean {
  return isFilter(entry) ? plane === 'forward' : canMatch(entry, plane);
}

/** Whether the entry is about packets that only an ingress hook sees. */
export function asksIngress(entry: Entry): boolean {
  return !isFilter(entry) && needsIngress(entry);
}

/** Whether no packet gets past. What a filter does not discard goes on. */
export function endsChain(entry: Entry): boolean {
  return !isFilter(entry) && endsEvaluation(entry);
}

/** One line for each chain in which the entry stands. */
export function entryLine(entry: Entry, plane: Plane): string {
  return isFilter(entry) ? filterLine(entry) : ruleLine(entry, plane);
}

/** The entry's own chain that counts for it; undefined: its lines do. */
export function countingChain(entry: Entry): string | undefined {
  if (isFilter(entry)) return filterChain('discard', entry.uuid);
  return lineCounts(entry) ? undefined : ruleChain('verdict', entry.uuid);
}

/** The chains and sets that belong to the entry alone, wherever it stands. */
export function ownProgram(entry: Entry): FilterProgram {
  return isFilter(entry) ? filterProgram(entry) : { sets: [], chains: ownChains(entry) };
}
