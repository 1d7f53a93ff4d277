/**
 * Owns what is handed out to a tunnel's end: a number, which is GRE's key or Geneve's VNI, and the inner addresses that
 * go with it. One number stands for all three and is unique in the installation, so that no two ends anywhere share a
 * key, a VNI or an address. Numbers are taken round and round: one that is free again comes up only after all others.
 *
 * Never knows who takes them, nor reads what is stored: what is taken is an argument.
 */
import { type Address, familyBits, type Prefix } from '../net/prefix.ts';
import { formatPrefix, prefixFromTrusted } from '../net/prefix-text.ts';

/** Where inner addresses come from: an IPv4 prefix of /30 or wider, and an IPv6 one of /126 or wider. */
export interface InnerPools {
  readonly ipv4: Prefix;
  readonly ipv6: Prefix;
}

/** A pool holds two pairs at least: its first one is never given out. */
export const longestPoolLengths = { 4: 30, 6: 126 } as const;

/**
 * 10.48.0.0/13: 262 143 pairs, between the ranges that container networks, Kubernetes distributions and clouds take by
 * default. fd6c:6576:6565::/48: a unique local prefix (RFC 4193).
 */
export const usualPools: InnerPools = {
  ipv4: prefixFromTrusted('10.48.0.0/13'),
  ipv6: prefixFromTrusted('fd6c:6576:6565::/48'),
};

/** The largest VNI (RFC 8926, 3.4: 24 bits). */
const vniMaximum = 2 ** 24 - 1;

export interface EndNumbers {
  /** At least 1. */
  readonly number: number;
  /** A /31 (RFC 3021): the router has the even address, the customer the odd one. */
  readonly innerIpv4: Prefix;
  /** A /127 (RFC 6164), likewise. */
  readonly innerIpv6: Prefix;
}

/** Pairs in the smaller pool, less the first: its IPv6 half begins with the subnet-router anycast address. */
export function capacityOf(pools: InnerPools): number {
  const pairs = ({ family, length }: Prefix) => 2 ** Math.min(53, familyBits(family) - length - 1);
  return Math.min(pairs(pools.ipv4) - 1, pairs(pools.ipv6) - 1, vniMaximum);
}

/** `number` from 1 to the capacity. */
export function endNumbers(pools: InnerPools, number: number): EndNumbers {
  const pair = ({ family, value }: Prefix): Prefix => ({
    family,
    value: value + 2n * BigInt(number),
    length: familyBits(family) - 1,
  });
  return { number, innerIpv4: pair(pools.ipv4), innerIpv6: pair(pools.ipv6) };
}

/** The two addresses of a pair. */
export function innerAddresses(pair: Prefix): { readonly router: Address; readonly customer: Address } {
  const { family, value } = pair;
  return { router: { family, value }, customer: { family, value: value + 1n } };
}

export interface Taken {
  readonly numbers: ReadonlySet<number>;
  /** Canonical texts of pairs of either family: those of former pools may lie in the present ones. */
  readonly pairs: ReadonlySet<string>;
}

/** A stretch of numbers, both ends included; it does not wrap. */
export interface Stretch {
  readonly first: number;
  readonly last: number;
}

/** `length` numbers from `from` on, round the end of the pools: one or two stretches, none of them twice. */
export function stretchesFrom(pools: InnerPools, from: number, length: number): readonly Stretch[] {
  const capacity = capacityOf(pools);
  const first = from >= 1 && from <= capacity ? from : 1;
  const count = Math.min(length, capacity);
  const last = first + count - 1;
  if (last <= capacity) return [{ first, last }];
  return [
    { first, last: capacity },
    { first: 1, last: last - capacity },
  ];
}

/** The first free ones in the stretches, at most `count`. */
export function allocate(
  pools: InnerPools,
  stretches: readonly Stretch[],
  count: number,
  taken: Taken,
): readonly EndNumbers[] {
  const found: EndNumbers[] = [];
  for (const { first, last } of stretches) {
    for (let number = first; number <= last; number++) {
      if (found.length === count) return found;
      if (taken.numbers.has(number)) continue;
      const end = endNumbers(pools, number);
      if (taken.pairs.has(formatPrefix(end.innerIpv4)) || taken.pairs.has(formatPrefix(end.innerIpv6))) continue;
      found.push(end);
    }
  }
  return found;
}

/** Where the next search begins. */
export function numberAfter(pools: InnerPools, number: number): number {
  return number >= capacityOf(pools) ? 1 : number + 1;
}
