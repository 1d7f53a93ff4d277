/**
 * Owns what the steps of one change carry: state, journal, transaction; and the one thing that several of them do to it.
 */
import type { Prefix } from '../net/prefix.ts';
import type { Journal } from './journal.ts';
import { lengthKey } from './skeleton.ts';
import type { State } from './state.ts';
import type { SetDefinition, Transaction } from './transaction.ts';

type SetWork = Pick<Work, 'state' | 'journal' | 'transaction'>;

/** What one change carries through all of its steps. */
export interface Work {
  readonly state: State;
  readonly journal: Journal;
  readonly transaction: Transaction;
  /** Prefixes of which conntrack sees traffic that it did not before. */
  readonly beginsTracking: Prefix[];
  /** Chains that say what is tracked, and how many more, or fewer, elements lead there than before. */
  readonly trackedUses: Map<string, { readonly lines: readonly string[]; readonly difference: number }>;
}

export function addSet({ state, journal, transaction }: SetWork, definition: SetDefinition): void {
  journal.put(state.sets, definition.name, definition);
  transaction.addSet(definition);
}

/** Anew, and empty: see Transaction. */
export function renewSet({ state, journal, transaction }: SetWork, definition: SetDefinition): void {
  journal.put(state.sets, definition.name, definition);
  transaction.renewSet(definition);
}

export function removeSet({ state, journal, transaction }: SetWork, definition: SetDefinition): void {
  journal.put(state.sets, definition.name, undefined);
  transaction.removeSet(definition);
}

/** Sets exist as long as they have an element. */
export function countLength(
  work: Work,
  lengths: Map<string, number>,
  prefix: Prefix,
  difference: number,
  ...definitions: readonly SetDefinition[]
): void {
  const key = lengthKey(prefix.family, prefix.length);
  const before = lengths.get(key) ?? 0;
  work.journal.count(lengths, key, difference);
  for (const definition of definitions) {
    if (before === 0) addSet(work, definition);
    if (before + difference === 0) removeSet(work, definition);
  }
}
