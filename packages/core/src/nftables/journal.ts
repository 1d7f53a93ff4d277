/**
 * Owns the way back: every change of the compiler's state is made through here, so that a plan can be taken back when
 * it has been written out, and made again when the kernel has taken it.
 * Must never be kept past one plan.
 */
import type { Prefix } from '../net/prefix.ts';
import type { PrefixIndex } from '../net/prefix-index.ts';

interface Step {
  readonly forth: () => void;
  readonly back: () => void;
}

export class Journal {
  readonly #steps: Step[] = [];
  readonly #keeping: boolean;

  /** `keep: false` for a state that is built anew and thrown away as a whole. */
  constructor(options: { keep: boolean }) {
    this.#keeping = options.keep;
  }

  /** `undefined` deletes. */
  put<K, V>(map: Map<K, V>, key: K, value: V | undefined): void {
    const before = map.get(key);
    this.#step(
      () => putOrDelete(map, key, value),
      () => putOrDelete(map, key, before),
    );
  }

  /** `undefined` deletes. */
  putPrefix<V>(index: PrefixIndex<V>, prefix: Prefix, value: V | undefined): void {
    const before = index.get(prefix);
    this.#step(
      () => putOrDeletePrefix(index, prefix, value),
      () => putOrDeletePrefix(index, prefix, before),
    );
  }

  /** Puts a member into the set under a key, or takes it out; empty sets are not kept. */
  member<K, M>(sets: Map<K, Set<M>>, key: K, member: M, present: boolean): void {
    if ((sets.get(key)?.has(member) ?? false) === present) return;
    this.#step(
      () => setMember(sets, key, member, present),
      () => setMember(sets, key, member, !present),
    );
  }

  /** Adds to a count; counts of 0 are not kept. */
  count<K>(counts: Map<K, number>, key: K, difference: number): void {
    const value = (counts.get(key) ?? 0) + difference;
    this.put(counts, key, value === 0 ? undefined : value);
  }

  /** Takes everything back; `replay` makes it again. */
  rollback(): void {
    for (const step of this.#steps.toReversed()) step.back();
  }

  replay(): void {
    for (const step of this.#steps) step.forth();
  }

  #step(forth: () => void, back: () => void): void {
    forth();
    if (this.#keeping) this.#steps.push({ forth, back });
  }
}

function putOrDelete<K, V>(map: Map<K, V>, key: K, value: V | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

function putOrDeletePrefix<V>(index: PrefixIndex<V>, prefix: Prefix, value: V | undefined): void {
  if (value === undefined) index.delete(prefix);
  else index.set(prefix, value);
}

function setMember<K, M>(sets: Map<K, Set<M>>, key: K, member: M, present: boolean): void {
  const set = sets.get(key) ?? new Set<M>();
  if (present) set.add(member);
  else set.delete(member);
  if (set.size === 0) sets.delete(key);
  else sets.set(key, set);
}
