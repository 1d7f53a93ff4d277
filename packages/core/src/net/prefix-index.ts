/**
 * Owns the answer to "which of these prefixes cover this one, which lie inside it": a path-compressed binary trie a
 * family (a PATRICIA tree, Knuth 6.3). Never holds two values for one prefix.
 *
 * Not a Map per length: V8 hashes a bigint by its low 64 bits only, so that a customer with the same host part in
 * many subnets (2001:db8:x::1) would turn each probe into a walk over all of them; and "inside" needs an order anyway.
 * Addresses are held as four 32-bit words, because bigint arithmetic allocates at each step.
 */
import type { Family, Prefix } from './prefix.ts';

export interface PrefixEntry<T> {
  readonly prefix: Prefix;
  readonly value: T;
}

interface Node<T> {
  readonly words: Words;
  readonly length: number;
  /** Absent at a mere fork. */
  entry: PrefixEntry<T> | undefined;
  zero: Node<T> | undefined;
  one: Node<T> | undefined;
}

type Words = readonly [number, number, number, number];

export class PrefixIndex<T> {
  readonly #roots: Record<Family, Node<T>> = { 4: fork([0, 0, 0, 0], 0), 6: fork([0, 0, 0, 0], 0) };
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(prefix: Prefix): T | undefined {
    return this.#find(prefix)?.entry?.value;
  }

  has(prefix: Prefix): boolean {
    return this.#find(prefix)?.entry !== undefined;
  }

  /** Adds or replaces. */
  set(prefix: Prefix, value: T): void {
    const words = wordsOf(prefix);
    const entry = { prefix, value };
    let node = this.#roots[prefix.family];
    for (;;) {
      if (node.length === prefix.length) {
        if (node.entry === undefined) this.#size += 1;
        node.entry = entry;
        return;
      }
      const side = bitAt(words, node.length) ? 'one' : 'zero';
      const child = node[side];
      if (child === undefined) {
        node[side] = { words, length: prefix.length, entry, zero: undefined, one: undefined };
        this.#size += 1;
        return;
      }
      const shared = commonLength(words, child.words, Math.min(prefix.length, child.length));
      if (shared < child.length) {
        const parent: Node<T> = fork(cut(words, shared), shared);
        parent[bitAt(child.words, shared) ? 'one' : 'zero'] = child;
        node[side] = parent;
        node = parent;
      } else {
        node = child;
      }
    }
  }

  /** Whether there was one. */
  delete(prefix: Prefix): boolean {
    const words = wordsOf(prefix);
    const path: Node<T>[] = [];
    let node: Node<T> | undefined = this.#roots[prefix.family];
    while (node !== undefined && node.length < prefix.length) {
      path.push(node);
      node = bitAt(words, node.length) ? node.one : node.zero;
    }
    if (node?.entry === undefined || node.length !== prefix.length || !sameWords(node.words, words)) return false;
    node.entry = undefined;
    this.#size -= 1;
    // A fork with fewer than two branches holds nothing apart: its only branch, if any, takes its place.
    for (let parent = path.pop(); parent !== undefined; parent = path.pop()) {
      if (node.entry !== undefined || (node.zero !== undefined && node.one !== undefined)) break;
      parent[parent.zero === node ? 'zero' : 'one'] = node.zero ?? node.one;
      node = parent;
    }
    return true;
  }

  /** The entries that contain the prefix, itself included, widest first. */
  covering(prefix: Prefix): PrefixEntry<T>[] {
    const words = wordsOf(prefix);
    const found: PrefixEntry<T>[] = [];
    let node: Node<T> | undefined = this.#roots[prefix.family];
    while (node !== undefined && node.length <= prefix.length && within(words, node)) {
      if (node.entry !== undefined) found.push(node.entry);
      if (node.length === prefix.length) break;
      node = bitAt(words, node.length) ? node.one : node.zero;
    }
    return found;
  }

  /** The narrowest entry that contains the prefix. */
  longestMatch(prefix: Prefix): PrefixEntry<T> | undefined {
    return this.covering(prefix).at(-1);
  }

  /** The entries that lie inside the prefix, itself included, in the order of `comparePrefixes`. */
  inside(prefix: Prefix): PrefixEntry<T>[] {
    const words = wordsOf(prefix);
    let node: Node<T> | undefined = this.#roots[prefix.family];
    while (node !== undefined && node.length < prefix.length) {
      node = bitAt(words, node.length) ? node.one : node.zero;
    }
    const found: PrefixEntry<T>[] = [];
    if (node !== undefined && commonLength(words, node.words, prefix.length) === prefix.length) collect(node, found);
    return found;
  }

  /** All entries, in the order of `comparePrefixes`. */
  entries(): PrefixEntry<T>[] {
    const found: PrefixEntry<T>[] = [];
    collect(this.#roots[4], found);
    collect(this.#roots[6], found);
    return found;
  }

  #find(prefix: Prefix): Node<T> | undefined {
    const words = wordsOf(prefix);
    let node: Node<T> | undefined = this.#roots[prefix.family];
    while (node !== undefined && node.length < prefix.length) {
      node = bitAt(words, node.length) ? node.one : node.zero;
    }
    return node !== undefined && node.length === prefix.length && sameWords(node.words, words) ? node : undefined;
  }
}

function fork<T>(words: Words, length: number): Node<T> {
  return { words, length, entry: undefined, zero: undefined, one: undefined };
}

/** First bits first; an IPv4 address fills the first word. */
function wordsOf(prefix: Prefix): Words {
  if (prefix.family === 4) return [Number(prefix.value) | 0, 0, 0, 0];
  const high = prefix.value >> 64n;
  const low = prefix.value & 0xffffffffffffffffn;
  return [
    Number(high >> 32n) | 0,
    Number(high & 0xffffffffn) | 0,
    Number(low >> 32n) | 0,
    Number(low & 0xffffffffn) | 0,
  ];
}

function wordAt(words: Words, index: number): number {
  return words[index] ?? 0;
}

function bitAt(words: Words, position: number): boolean {
  return ((wordAt(words, position >>> 5) >>> (31 - (position & 31))) & 1) === 1;
}

/** How many first bits agree, at most `limit`. */
function commonLength(a: Words, b: Words, limit: number): number {
  for (let index = 0; index * 32 < limit; index += 1) {
    const difference = wordAt(a, index) ^ wordAt(b, index);
    if (difference !== 0) return Math.min(limit, index * 32 + Math.clz32(difference));
  }
  return limit;
}

function within<T>(words: Words, node: Node<T>): boolean {
  return commonLength(words, node.words, node.length) === node.length;
}

function sameWords(a: Words, b: Words): boolean {
  return a[0] === b[0] && a[1] === b[1] && a[2] === b[2] && a[3] === b[3];
}

/** The first `length` bits, the others zero. */
function cut(words: Words, length: number): Words {
  const keep = (index: number) => {
    const bits = length - index * 32;
    return bits >= 32 ? wordAt(words, index) : bits <= 0 ? 0 : wordAt(words, index) & (-1 << (32 - bits));
  };
  return [keep(0), keep(1), keep(2), keep(3)];
}

/** Depth is at most 129. */
function collect<T>(node: Node<T>, found: PrefixEntry<T>[]): void {
  if (node.entry !== undefined) found.push(node.entry);
  if (node.zero !== undefined) collect(node.zero, found);
  if (node.one !== undefined) collect(node.one, found);
}
