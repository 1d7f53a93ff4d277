/**
 * Owns which keys of a stream have the most weight, in the space of 64: Space-Saving (Metwally, Agrawal, El Abbadi: Efficient computation of
 * frequent and top-k elements in data streams, 2005). A key is four words. Never says more of a key than what it surely had: the
 * weight that it took over with its place is subtracted, as a thousand forged sources would otherwise each look heavy.
 */
import { hashWords } from './key-table.ts';

export const HEAVY_KEYS = 64;

const buckets = 128;
const none = 255;

export class HeavyKeys {
  readonly words = new Uint32Array(HEAVY_KEYS * 4);
  readonly #weights = new Float64Array(HEAVY_KEYS);
  /** Of each weight, what may have been of keys that had the place before. */
  readonly #doubts = new Float64Array(HEAVY_KEYS);
  readonly #heads = new Uint8Array(buckets).fill(none);
  readonly #next = new Uint8Array(HEAVY_KEYS);
  #size = 0;
  /** Most packets of a flood have the key of the one before. */
  #last = 0;

  add(weight: number, a: number, b = 0, c = 0, d = 0): void {
    const { words } = this;
    const last = this.#last;
    if (last < this.#size && this.#is(last, a, b, c, d)) {
      this.#weights[last] = (this.#weights[last] as number) + weight;
      return;
    }
    const bucket = hashWords(a, b, c, d, 0) & (buckets - 1);
    let at = this.#heads[bucket] as number;
    while (at !== none && !this.#is(at, a, b, c, d)) at = this.#next[at] as number;
    if (at !== none) {
      this.#weights[at] = (this.#weights[at] as number) + weight;
      this.#last = at;
      return;
    }
    if (this.#size < HEAVY_KEYS) {
      at = this.#size++;
      this.#weights[at] = weight;
      this.#doubts[at] = 0;
    } else {
      at = this.#lightest();
      this.#unlink(at);
      this.#doubts[at] = this.#weights[at] as number;
      this.#weights[at] = (this.#weights[at] as number) + weight;
    }
    words[at * 4] = a;
    words[at * 4 + 1] = b;
    words[at * 4 + 2] = c;
    words[at * 4 + 3] = d;
    this.#next[at] = this.#heads[bucket] as number;
    this.#heads[bucket] = at;
    this.#last = at;
  }

  clear(): void {
    if (this.#size === 0) return;
    this.#heads.fill(none);
    this.#size = 0;
    this.#last = 0;
  }

  /** Places in `words` (times 4) and the weights that their keys surely had, the heaviest first. */
  places(): { place: number; weight: number }[] {
    const found: { place: number; weight: number }[] = [];
    for (let at = 0; at < this.#size; at++) {
      found.push({ place: at * 4, weight: (this.#weights[at] as number) - (this.#doubts[at] as number) });
    }
    return found.sort((one, other) => other.weight - one.weight);
  }

  /** Those of keys that are one word. */
  numbers(): [number, number][] {
    return this.places().map(({ place, weight }) => [this.words[place] as number, weight]);
  }

  #is(at: number, a: number, b: number, c: number, d: number): boolean {
    const { words } = this;
    const place = at * 4;
    return words[place] === a && words[place + 1] === b && words[place + 2] === c && words[place + 3] === d;
  }

  #lightest(): number {
    let found = 0;
    let least = this.#weights[0] as number;
    for (let at = 1; at < HEAVY_KEYS; at++) {
      const weight = this.#weights[at] as number;
      if (weight < least) {
        least = weight;
        found = at;
      }
    }
    return found;
  }

  #unlink(at: number): void {
    const { words } = this;
    const place = at * 4;
    const hash = hashWords(
      words[place] as number,
      words[place + 1] as number,
      words[place + 2] as number,
      words[place + 3] as number,
      0,
    );
    const bucket = hash & (buckets - 1);
    let before = this.#heads[bucket] as number;
    if (before === at) {
      this.#heads[bucket] = this.#next[at] as number;
      return;
    }
    while (this.#next[before] !== at) before = this.#next[before] as number;
    this.#next[before] = this.#next[at] as number;
  }
}
