/**
 * Owns values by text in order, in chunks: exact and subtree look-ups by binary search, and a snapshot that costs one
 * reference a chunk however much changes behind it, so that a slow zone transfer is of one moment.
 *
 * Not a Map with a count at each empty name between: an IPv6 address alone in its /64 has 16 of those, and a million
 * of them would be kept for a hundred thousand records.
 */

interface Chunk<V> {
  readonly keys: string[];
  readonly values: V[];
  /** A snapshot reads it: changed in a copy. */
  shared: boolean;
}

export class RecordList<V> {
  readonly #largestChunk: number;
  /** None is empty. */
  readonly #chunks: Chunk<V>[] = [];
  #size = 0;

  /** Of two entries with one key the later counts. */
  constructor(entries: Iterable<readonly [string, V]> = [], largestChunk = 512) {
    this.#largestChunk = largestChunk;
    const sorted = [...new Map(entries)].sort(([a], [b]) => (a < b ? -1 : 1));
    this.#size = sorted.length;
    // Three quarters full: room for what is added later.
    const fill = Math.ceil((largestChunk * 3) / 4);
    for (let start = 0; start < sorted.length; start += fill) {
      const part = sorted.slice(start, start + fill);
      this.#chunks.push({ keys: part.map(([key]) => key), values: part.map(([, value]) => value), shared: false });
    }
  }

  get size(): number {
    return this.#size;
  }

  get(key: string): V | undefined {
    const chunk = this.#chunks[this.#chunkOf(key)];
    if (chunk === undefined) return undefined;
    const index = lowerBound(chunk.keys, key);
    return chunk.keys[index] === key ? chunk.values[index] : undefined;
  }

  /** Whether any key begins with this one, itself included. */
  hasBeginning(beginning: string): boolean {
    const at = this.#chunkOf(beginning);
    const chunk = this.#chunks[at];
    if (chunk === undefined) return false;
    const next = chunk.keys[lowerBound(chunk.keys, beginning)] ?? this.#chunks[at + 1]?.keys[0];
    return next?.startsWith(beginning) ?? false;
  }

  set(key: string, value: V): void {
    const at = this.#chunkOf(key);
    if (this.#chunks.length === 0) this.#chunks.push({ keys: [], values: [], shared: false });
    const chunk = this.#own(at);
    const index = lowerBound(chunk.keys, key);
    if (chunk.keys[index] === key) {
      chunk.values[index] = value;
      return;
    }
    chunk.keys.splice(index, 0, key);
    chunk.values.splice(index, 0, value);
    this.#size += 1;
    if (chunk.keys.length <= this.#largestChunk) return;
    const half = chunk.keys.length >>> 1;
    this.#chunks.splice(at + 1, 0, { keys: chunk.keys.splice(half), values: chunk.values.splice(half), shared: false });
  }

  /** Whether there was one. */
  delete(key: string): boolean {
    const at = this.#chunkOf(key);
    const found = this.#chunks[at];
    if (found === undefined) return false;
    const index = lowerBound(found.keys, key);
    if (found.keys[index] !== key) return false;
    const chunk = this.#own(at);
    chunk.keys.splice(index, 1);
    chunk.values.splice(index, 1);
    this.#size -= 1;
    if (chunk.keys.length === 0) this.#chunks.splice(at, 1);
    return true;
  }

  /** What is there now, in order, whatever changes while it is read. */
  snapshot(): Iterable<readonly [string, V]> {
    const chunks = this.#chunks.slice();
    for (const chunk of chunks) chunk.shared = true;
    return {
      *[Symbol.iterator]() {
        for (const { keys, values } of chunks) {
          for (let index = 0; index < keys.length; index += 1)
            yield [keys[index] as string, values[index] as V] as const;
        }
      },
    };
  }

  /** The last chunk that begins at or before the key; the first when none does. */
  #chunkOf(key: string): number {
    let low = 0;
    let high = this.#chunks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#chunks[middle]?.keys[0] ?? '') <= key) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #own(at: number): Chunk<V> {
    const chunk = this.#chunks[at];
    if (chunk === undefined) throw new RangeError(`no chunk ${at}`);
    if (!chunk.shared) return chunk;
    const copy = { keys: chunk.keys.slice(), values: chunk.values.slice(), shared: false };
    this.#chunks[at] = copy;
    return copy;
  }
}

/** The first index whose key is not less. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((keys[middle] ?? '') < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
