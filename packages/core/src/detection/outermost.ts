/**
 * Owns which protected prefix an address is of and with which others it forms an aggregate. Prefixes inside others
 * count for nothing: the outermost one is what one provider holds. Addresses are four words, IPv4 in the first.
 */
import type { Family, Prefix } from '../net/prefix.ts';
import { parsePrefix } from '../net/prefix-text.ts';

/** Addresses that may be attacked together, where no longer prefix is protected. */
export const AGGREGATE_LENGTH: Readonly<Record<Family, number>> = { 4: 24, 6: 64 };

interface Ranges {
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  readonly lengths: Uint8Array;
}

export class OutermostPrefixes {
  readonly #ranges: Readonly<Record<Family, Ranges>>;

  /** What is no prefix is left out. */
  constructor(texts: readonly string[]) {
    const prefixes = texts.flatMap((text) => {
      const read = parsePrefix(text);
      return read.ok ? [read.prefix] : [];
    });
    this.#ranges = { 4: rangesOf(prefixes, 4), 6: rangesOf(prefixes, 6) };
  }

  /** The length of the outermost prefix that has the address; -1: it is not protected. */
  lengthAt(family: Family, a: number, b: number, c: number, d: number): number {
    const { starts, ends, lengths } = this.#ranges[family];
    let low = 0;
    let high = lengths.length;
    // The last range that does not start behind the address.
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(starts, middle * 4, a, b, c, d) <= 0) low = middle + 1;
      else high = middle;
    }
    return low > 0 && compare(ends, (low - 1) * 4, a, b, c, d) >= 0 ? (lengths[low - 1] as number) : -1;
  }

  /** The length of the aggregate that the address belongs to; the whole address's where it is alone; -1: not protected. */
  aggregateLengthAt(family: Family, a: number, b: number, c: number, d: number): number {
    const length = this.lengthAt(family, a, b, c, d);
    return length < 0 ? -1 : Math.max(length, AGGREGATE_LENGTH[family]);
  }
}

function rangesOf(prefixes: readonly Prefix[], family: Family): Ranges {
  const sorted = prefixes
    .filter((prefix) => prefix.family === family)
    .map(({ value, length }) => ({ start: wordsOf(family, value), length }))
    .sort((a, b) => compareWords(a.start, b.start) || a.length - b.length);
  const outermost: { start: number[]; end: number[]; length: number }[] = [];
  for (const { start, length } of sorted) {
    const last = outermost.at(-1);
    if (last !== undefined && compareWords(start, last.end) <= 0) continue;
    outermost.push({ start, end: start.map((word, index) => (word | ~maskOf(length - index * 32)) >>> 0), length });
  }
  return {
    starts: Uint32Array.from(outermost.flatMap(({ start }) => start)),
    ends: Uint32Array.from(outermost.flatMap(({ end }) => end)),
    lengths: Uint8Array.from(outermost, ({ length }) => length),
  };
}

/** Four words, the first bits first. */
export function wordsOf(family: Family, value: bigint): number[] {
  if (family === 4) return [Number(value), 0, 0, 0];
  return [96n, 64n, 32n, 0n].map((shift) => Number((value >> shift) & 0xffffffffn));
}

export function addressValue(family: Family, words: ArrayLike<number>, at = 0): bigint {
  const word = (index: number) => BigInt(words[at + index] ?? 0);
  return family === 4 ? word(0) : (word(0) << 96n) | (word(1) << 64n) | (word(2) << 32n) | word(3);
}

/** The first `bits` of a word set; of a negative number none, of more than 32 all. */
export function maskOf(bits: number): number {
  return bits >= 32 ? 0xffffffff : bits <= 0 ? 0 : (-1 << (32 - bits)) >>> 0;
}

function compareWords(a: readonly number[], b: readonly number[]): number {
  for (let index = 0; index < 4; index++) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Below 0 when the entry of `of` at `at` comes before the address. */
function compare(of: Uint32Array, at: number, a: number, b: number, c: number, d: number): number {
  if (of[at] !== a) return (of[at] as number) - a;
  if (of[at + 1] !== b) return (of[at + 1] as number) - b;
  if (of[at + 2] !== c) return (of[at + 2] as number) - c;
  return (of[at + 3] as number) - d;
}
