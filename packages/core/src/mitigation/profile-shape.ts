/**
 * Reads an attack's profile for what its packets have in common: the fewest values that most of them have, a narrow band of
 * lengths. Pure. Never chooses a measure. Says nothing of sources: whoever sends may write any address as one (decision 0141).
 */
import type { Share, VectorProfile } from '@levee/contract/detector.ts';
import { classify, vectorNumber } from '../detection/vector.ts';

/** What measures have to catch of a vector. */
export const WANTED_COVERAGE = 0.9;
/** Octets: lengths that are apart no further count as one. */
const NARROW_BAND = 64;

/** The fewest values that together have `wanted` of the packets, the most frequent first; undefined: `most` do not. */
export function fewestValues<T>(shares: readonly Share<T>[], most: number, wanted = WANTED_COVERAGE): T[] | undefined {
  const values: T[] = [];
  let sum = 0;
  for (const { value, share } of shares.toSorted((a, b) => b.share - a.share)) {
    if (sum >= wanted - 1e-12 || values.length === most) break;
    values.push(value);
    sum += share;
  }
  return sum >= wanted - 1e-12 && values.length > 0 ? values : undefined;
}

export interface Band {
  readonly start: number;
  readonly end: number;
}

/** Undefined: the lengths are spread. */
export function narrowLengths({ length, samples }: VectorProfile): Band | undefined {
  if (samples === 0 || length.max === 0 || length.min > length.max) return undefined;
  if (length.max - length.min <= NARROW_BAND) return { start: length.min, end: length.max };
  return length.max - length.p5 <= NARROW_BAND ? { start: length.p5, end: length.max } : undefined;
}

const DNS = 53;
/** Octets of the shortest answer that no client without extensions gets (RFC 1035, 4.2.1), with its headers. */
const LONG_DNS_ANSWER = 512 + 28;
/** NTP answers a client with 76. */
const LONG_ANSWER = 100;

/** The length from which on answers from `ports` are longer than those that clients get all the time. */
export function longAnswer(ports: readonly number[]): number {
  return ports.includes(DNS) ? LONG_DNS_ANSWER : LONG_ANSWER;
}

/** Octets of an average packet. */
export function packetBytes({ pps, bps, length }: VectorProfile): number {
  if (pps > 0 && bps > 0) return Math.min(65535, Math.max(20, bps / 8 / pps));
  return length.max > 0 ? (length.min + length.max) / 2 : 64;
}

/** Protocols of no vector that has a name. */
export const otherProtocols: readonly number[] = Array.from({ length: 256 }, (_, number) => number).filter(
  (number) => classify(number, 0, 0, false, false) === vectorNumber('ip-other'),
);

/** Those of a profile that belong to no other vector: what else it shows would be the measures' own mistake. */
export function otherProtocolShares({ protocols }: VectorProfile): Share<number>[] {
  return protocols.filter(({ value }) => otherProtocols.includes(value));
}
