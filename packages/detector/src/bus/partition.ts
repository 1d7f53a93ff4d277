/**
 * Owns which share a destination is of: by its /24 (IPv6: /64), so that an aggregate and its addresses are always together.
 * The hash is part of what collectors and detectors of different releases agree on: it never changes.
 */
import { wordsOf } from '@levee/core/detection/outermost.ts';
import type { Prefix } from '@levee/core/net/prefix.ts';
import { PARTITIONS } from './port.ts';

/** `a`, `b`: the first two words of the address or subnet; IPv4 has the first alone. */
export function partitionOf(family: number, a: number, b: number): number {
  return family === 4 ? mixed(a >>> 8) % PARTITIONS : mixed(mixed(a) ^ b ^ 6) % PARTITIONS;
}

export function partitionOfPrefix({ family, value }: Pick<Prefix, 'family' | 'value'>): number {
  const [a = 0, b = 0] = wordsOf(family, value);
  return partitionOf(family, a, b);
}

/** A finalizer of MurmurHash3: each bit of the word changes half of the bits. */
export function mixed(word: number): number {
  let h = word >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
