/**
 * Addresses and subnets of labelled traffic, from their text. Must never be given foreign input: it judges nothing.
 */
import type { Random } from '../random.ts';

/** An address as packets carry it. */
export interface Place {
  readonly family: 4 | 6;
  readonly value: bigint;
}

/** An address in either family, without zone and without an IPv4 tail. */
export function placeOf(text: string): Place {
  if (!text.includes(':')) {
    const value = text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n);
    return { family: 4, value };
  }
  const [head = '', tail] = text.split('::');
  const words = (part: string | undefined): string[] => (part ? part.split(':') : []);
  const before = words(head);
  const after = words(tail);
  const zeros = tail === undefined ? [] : Array<string>(8 - before.length - after.length).fill('0');
  const value = [...before, ...zeros, ...after].reduce((sum, word) => (sum << 16n) | BigInt(`0x${word}`), 0n);
  return { family: 6, value };
}

/** Any address of `203.0.113.0/24`, or of a single one. */
export function anyOf(target: string, random: Random): Place {
  const [address = '', length] = target.split('/');
  const { family, value } = placeOf(address);
  if (length === undefined) return { family, value };
  return { family, value: value | random.bits((family === 4 ? 32 : 128) - Number(length)) };
}

/** An address in 100.64.0.0/10 or 2001:db8:c000::/34 that stands for somebody outside: the same for the same number. */
export function outsider(family: 4 | 6, number: number): bigint {
  const spread = Math.imul(number + 1, 2_654_435_761) >>> 0;
  return family === 4
    ? 0x6440_0000n | BigInt(spread >>> 10)
    : (0x2001_0db8_c000n << 80n) | (BigInt(spread) << 64n) | BigInt(number + 1);
}

/** Somewhere in 11.0.0.0 … 74.255.255.255, or 2001:db8:e000::/35: as forged as it looks. */
export function forged(family: 4 | 6, random: Random): bigint {
  return family === 4
    ? (BigInt(random.integer(11, 74)) << 24n) | random.bits(24)
    : (0x2001_0db8_e000n << 80n) | (random.bits(29) << 64n) | random.bits(64);
}
