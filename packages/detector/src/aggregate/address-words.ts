/** Owns the way between an address as four words, IPv4 in the first, and its text. Never on the path of a record. */
import { formatAddress } from '@levee/core/net/address.ts';
import type { Prefix } from '@levee/core/net/prefix.ts';

export type Words = readonly [number, number, number, number];

export function wordsOf({ family, value }: Pick<Prefix, 'family' | 'value'>): Words {
  if (family === 4) return [Number(value), 0, 0, 0];
  const word = (shift: bigint): number => Number((value >> shift) & 0xffffffffn);
  return [word(96n), word(64n), word(32n), word(0n)];
}

export function addressText(family: 4 | 6, a: number, b: number, c: number, d: number): string {
  if (family === 4) return `${a >>> 24}.${(a >>> 16) & 255}.${(a >>> 8) & 255}.${a & 255}`;
  const value = (BigInt(a) << 96n) | (BigInt(b) << 64n) | (BigInt(c) << 32n) | BigInt(d);
  return formatAddress({ family, value });
}

/** The word `index` (0 … 3) of an address with all bits behind the first `length` cleared. */
export function maskedWord(word: number, index: number, length: number): number {
  const bits = length - index * 32;
  if (bits >= 32) return word;
  return bits <= 0 ? 0 : (word & (0xffffffff << (32 - bits))) >>> 0;
}
