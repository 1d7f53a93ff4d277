/**
 * Owns the step from a changed entry to its own chains and sets. They are touched by nothing else: what packets wrote
 * into a filter's sets, and what is left in a bucket, survives every change of the entries around.
 * Never decides where the entry stands.
 */
import { type Entry, isFilter } from '../filter/entry.ts';
import type { Filter } from '../filter/filter.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { ownProgram } from './entry-text.ts';
import type { FilterProgram, FilterSet } from './filter-text.ts';
import { addSet, removeSet, renewSet, type Work } from './work.ts';

const nothing: FilterProgram = { sets: [], chains: [] };

/** Undefined: the entry was not there, or is no more. */
export function exchangeProgram(work: Work, old: Entry | undefined, now: Entry | undefined): void {
  const before = old ? ownProgram(old) : nothing;
  const after = now ? ownProgram(now) : nothing;
  const anew = old !== undefined && now !== undefined && !keepsMemory(old, now);
  const renewed = exchangeSets(work, before.sets, after.sets, anew);
  const chains = new Map(before.chains.map((chain) => [chain.name, chain]));
  for (const chain of after.chains) {
    const known = chains.get(chain.name);
    chains.delete(chain.name);
    if (known === undefined) work.transaction.addChain(chain.name, chain.lines);
    // A set goes only when no rule names it any more.
    else if (renewed || known.lines.join('\n') !== chain.lines.join('\n')) {
      work.transaction.changeChain(chain.name, chain.lines);
    }
    if (chain.counted) work.journal.put(work.state.countingChains, chain.name, now?.uuid);
  }
  for (const [name, { counted }] of chains) {
    work.transaction.removeChain(name);
    if (counted) work.journal.put(work.state.countingChains, name, undefined);
  }
}

/** Whether a set was made anew under its name. The first elements go by themselves: nobody removes them. */
function exchangeSets(work: Work, before: readonly FilterSet[], after: readonly FilterSet[], anew: boolean): boolean {
  const old = new Map(before.map((set) => [set.name, set]));
  let renewed = false;
  for (const set of after) {
    const known = old.get(set.name);
    old.delete(set.name);
    if (known && !anew && known.properties.join('\n') === set.properties.join('\n')) continue;
    if (known) renewSet(work, set);
    else addSet(work, set);
    renewed ||= known !== undefined;
    for (const element of set.elements) work.transaction.addElement(set.name, element);
  }
  for (const set of old.values()) removeSet(work, set);
  return renewed;
}

/** A filter that looks at other traffic than before knows nothing of it, and settles again. */
function keepsMemory(old: Entry, now: Entry): boolean {
  return !isFilter(old) || !isFilter(now) || lookedAt(old) === lookedAt(now);
}

function lookedAt({ kind, dst, src, sourcePorts, destinationPorts }: Filter): string {
  const range = (of: { start: number | bigint; end: number | bigint } | undefined) => of && `${of.start}-${of.end}`;
  return [kind.id, formatPrefix(dst), range(src), range(sourcePorts), range(destinationPorts)].join(' ');
}
