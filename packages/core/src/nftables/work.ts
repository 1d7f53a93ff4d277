/**
 * Owns what the steps of one change carry: state, journal, transaction; and the one thing that several of them do to it.
 */
import type { Prefix } from '../net/prefix.ts';
import type { Journal } from './journal.ts';
import { lengthKey } from './skeleton.ts';
import type { State } from './state.ts';
import type { SetDefinition, Transaction } from './transaction.ts';

/** What one change carries through all of its steps. */
export interface Work {
  readonly state: State;
  readonly journal: Journal;
  readonly transaction: Transaction;
  /** Prefixes whose need of conntrack the change has touched, and whether they were tracked before. */
  readonly trackedBefore: Map<string, { readonly prefix: Prefix; readonly tracked: boolean }>;
}

/** A set exists as long as it has an element. */
export function countLength(
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
