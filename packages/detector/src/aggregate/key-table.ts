/**
 * Owns the numbers of keys: an address (four words, IPv4 in the first) and a tag have one row, and whoever keeps columns
 * keeps them by it. Bounded, and chained, so that a row can take another key in its place. Never holds what a row is about.
 *
 * A hash rather than a dense table of the protected space: a slot touches few of many addresses, and a table of all of
 * them costs memory and a miss for each (decision 0125). The seed is of this process, as destinations are chosen by attackers.
 */
import { randomInt } from 'node:crypto';

const seed = randomInt(0x7fffffff);

/** 32 bits, signed. */
export function hashWords(a: number, b: number, c: number, d: number, tag: number): number {
  let hash = seed ^ Math.imul(a ^ tag, 0x9e3779b1);
  hash ^= hash >>> 15;
  hash = Math.imul(hash ^ b, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash ^ c, 0xc2b2ae35);
  hash ^= hash >>> 16;
  hash = Math.imul(hash ^ d, 0x27d4eb2f);
  hash ^= hash >>> 15;
  hash = Math.imul(hash ^ (tag << 8), 0x165667b1);
  return hash ^ (hash >>> 14);
}

const firstCapacity = 256;
const none = -1;

export class KeyTable {
  /** Rows that may be in use; whoever keeps columns makes them as long when `grown` is called. */
  capacity: number;
  /** Rows below it are or were in use. */
  used = 0;
  /** Rows in use. */
  size = 0;
  words: Uint32Array;
  tags: Int32Array;
  readonly #most: number;
  readonly #grown: (capacity: number) => void;
  #hashes: Int32Array;
  #next: Int32Array;
  #heads: Int32Array;
  #mask: number;
  #free = none;

  /** `most`: a power of two. `grown` is called once at the start as well. */
  constructor(most: number, grown: (capacity: number) => void) {
    this.#most = most;
    this.#grown = grown;
    this.capacity = Math.min(most, firstCapacity);
    this.words = new Uint32Array(this.capacity * 4);
    this.tags = new Int32Array(this.capacity);
    this.#hashes = new Int32Array(this.capacity);
    this.#next = new Int32Array(this.capacity);
    this.#heads = new Int32Array(this.capacity).fill(none);
    this.#mask = this.capacity - 1;
    grown(this.capacity);
  }

  get full(): boolean {
    return this.size === this.#most;
  }

  /** Octets of its own. */
  get octets(): number {
    return this.capacity * 32;
  }

  /** The row of the key, or -1. */
  find(a: number, b: number, c: number, d: number, tag: number): number {
    const { words, tags } = this;
    let row = this.#heads[hashWords(a, b, c, d, tag) & this.#mask] as number;
    while (row !== none) {
      const at = row << 2;
      if (words[at] === a && tags[row] === tag && words[at + 1] === b && words[at + 2] === c && words[at + 3] === d) {
        return row;
      }
      row = this.#next[row] as number;
    }
    return none;
  }

  /** A row for a key that has none; -1 when it is full. What the row's columns hold is the caller's to set. */
  add(a: number, b: number, c: number, d: number, tag: number): number {
    let row = this.#free;
    if (row !== none) {
      this.#free = this.#next[row] as number;
    } else {
      if (this.used === this.#most) return none;
      if (this.used === this.capacity) this.#grow();
      row = this.used++;
    }
    this.size++;
    this.#link(row, a, b, c, d, tag);
    return row;
  }

  /** Gives the row to another key, which has none. */
  replace(row: number, a: number, b: number, c: number, d: number, tag: number): void {
    this.#unlink(row);
    this.#link(row, a, b, c, d, tag);
  }

  /** Its row is then given to the next that is added. */
  remove(row: number): void {
    this.#unlink(row);
    this.tags[row] = none;
    this.#next[row] = this.#free;
    this.#free = row;
    this.size--;
  }

  /** Takes as long as rows were used, not as there is room. */
  clear(): void {
    for (let row = 0; row < this.used; row++) this.#heads[(this.#hashes[row] as number) & this.#mask] = none;
    this.used = 0;
    this.size = 0;
    this.#free = none;
  }

  #link(row: number, a: number, b: number, c: number, d: number, tag: number): void {
    const { words } = this;
    const hash = hashWords(a, b, c, d, tag);
    const at = row << 2;
    words[at] = a;
    words[at + 1] = b;
    words[at + 2] = c;
    words[at + 3] = d;
    this.tags[row] = tag;
    this.#hashes[row] = hash;
    this.#next[row] = this.#heads[hash & this.#mask] as number;
    this.#heads[hash & this.#mask] = row;
  }

  #unlink(row: number): void {
    const bucket = (this.#hashes[row] as number) & this.#mask;
    let at = this.#heads[bucket] as number;
    if (at === row) {
      this.#heads[bucket] = this.#next[row] as number;
      return;
    }
    while (this.#next[at] !== row) at = this.#next[at] as number;
    this.#next[at] = this.#next[row] as number;
  }

  #grow(): void {
    this.capacity *= 2;
    this.words = longer(this.words, new Uint32Array(this.capacity * 4));
    this.tags = longer(this.tags, new Int32Array(this.capacity));
    this.#hashes = longer(this.#hashes, new Int32Array(this.capacity));
    this.#next = longer(this.#next, new Int32Array(this.capacity));
    this.#heads = new Int32Array(this.capacity).fill(none);
    this.#mask = this.capacity - 1;
    // Only a table without free rows grows, so that every row is in use.
    for (let row = 0; row < this.used; row++) {
      const bucket = (this.#hashes[row] as number) & this.#mask;
      this.#next[row] = this.#heads[bucket] as number;
      this.#heads[bucket] = row;
    }
    this.#grown(this.capacity);
  }
}

/** What `from` holds, in the longer `to`. */
export function longer<T extends Uint8Array | Int32Array | Uint32Array | Float64Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
