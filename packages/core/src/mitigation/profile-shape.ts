/**
 * Reads an attack's profile for what its packets have in common: the fewest values that most of them have, a narrow band of
 * lengths, a handful of sources. Pure. Never chooses a measure.
 */
import type { Share, VectorProfile } from '@levee/contract/detector.ts';
import { classify, vectorNumber } from '../detection/vector.ts';

/** What measures have to catch of a vector. */
export const WANTED_COVERAGE = 0.9;
/** Octets: lengths that are apart no further count as one. */
const NARROW_BAND = 64;
/** With fewer samples, a few sources say nothing about how many there are. */
const TELLING_SAMPLES = 50;
const FEW_SOURCES = 8;

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
  if (samples === 0 || length.max === 0) return undefined;
  if (length.max - length.min <= NARROW_BAND) return { start: length.min, end: length.max };
  return length.max - length.p5 <= NARROW_BAND ? { start: length.p5, end: length.max } : undefined;
}

/**
 * The few sources that most of it really comes from. Undefined: they are many, forged, or too few samples tell. A flood that
 * forges its sources has about as many of them as packets.
 */
export function fewSources({ sources, samples, distinct_sources }: VectorProfile): string[] | undefined {
  if (samples < TELLING_SAMPLES || distinct_sources > samples / 4) return undefined;
  return fewestValues(sources, FEW_SOURCES);
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
