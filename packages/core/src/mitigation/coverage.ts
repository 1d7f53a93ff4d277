/**
 * Owns how much of a vector's traffic a set of measures is certain to catch, from the shares in its profile. Shares are of one
 * field each and say nothing about how fields go together: what is told is the least that can be true (Bonferroni's bound), so
 * that no measure counts for more than it does.
 */
import type { Share, VectorProfile } from '@levee/contract/detector.ts';
import { amplifierPorts, classify, type Vector, vectorNumber, vectors } from '../detection/vector.ts';
import type { FlagExpression } from '../flowspec/flag-expression.ts';
import { isInSet, type NumberSet } from '../flowspec/number-set.ts';
import { type Prefix, prefixContains } from '../net/prefix.ts';
import { prefixFromTrusted } from '../net/prefix-text.ts';
import { rangeContainsAddress, rangeOfPrefix } from '../net/range.ts';
import { mayOverlap } from './overlap.ts';
import { otherProtocols } from './profile-shape.ts';
import type { TrafficMatch } from './traffic-match.ts';

/** 0 … 1. `dst`: the attack's. */
export function coverageOf(matches: readonly TrafficMatch[], profile: VectorProfile, dst: Prefix): number {
  const each = matches
    .map((match) => ({ match, share: shareOf(match, profile, dst) }))
    .sort((a, b) => b.share - a.share);
  const apart: TrafficMatch[] = [];
  let sum = 0;
  for (const { match, share } of each) {
    // What two of them catch counts once.
    if (apart.some((other) => mayOverlap(other, match) && mayOverlap(match, other))) continue;
    apart.push(match);
    sum += share;
  }
  return Math.min(1, sum);
}

function shareOf(match: TrafficMatch, profile: VectorProfile, dst: Prefix): number {
  if (!prefixContains(match.dst, dst)) return 0;
  const misses = [
    1 - sourceShare(match, profile),
    1 - protocolShare(match.protocols, profile, dst),
    1 - sourcePortShare(match.sourcePorts, profile),
    1 - numberShare(match.destinationPorts, profile.destination_ports),
    1 -
      Math.max(
        numberShare(match.eitherPort, profile.source_ports),
        numberShare(match.eitherPort, profile.destination_ports),
      ),
    1 - lengthShare(match.lengths, profile),
    1 - flagShare(match.tcpFlags, profile),
    1 - icmpShare(match, profile),
    1 - fragmentShare(match.fragment, profile),
  ];
  return Math.max(0, 1 - misses.reduce((sum, miss) => sum + miss, 0));
}

function numberShare(set: NumberSet | undefined, shares: readonly Share<number>[]): number {
  if (set === undefined) return 1;
  return sumOf(shares.filter(({ value }) => isInSet(set, value)));
}

function sumOf(shares: readonly Share<unknown>[]): number {
  return Math.min(
    1,
    shares.reduce((sum, { share }) => sum + share, 0),
  );
}

function sourceShare({ source }: TrafficMatch, { sources }: VectorProfile): number {
  if (source === undefined) return 1;
  return sumOf(
    sources.filter(({ value }) => {
      const { start, end, family } = rangeOfPrefix(prefixFromTrusted(value));
      return (
        rangeContainsAddress(source, { family, value: start }) && rangeContainsAddress(source, { family, value: end })
      );
    }),
  );
}

/** Protocols that all packets of a vector have, whatever the samples say. */
const ownProtocols: Readonly<Partial<Record<Vector, number>>> = {
  'udp-amplification': 17,
  'udp-other': 17,
  'tcp-syn': 6,
  'tcp-syn-ack': 6,
  'tcp-ack': 6,
  'tcp-rst': 6,
  'tcp-other': 6,
  gre: 47,
  esp: 50,
};

function protocolShare(set: NumberSet | undefined, { vector, protocols }: VectorProfile, dst: Prefix): number {
  if (set === undefined) return 1;
  const own = vector === 'icmp' ? (dst.family === 6 ? 58 : 1) : ownProtocols[vector as Vector];
  if (own !== undefined) return isInSet(set, own) ? 1 : 0;
  if (vector === 'ip-other' && otherProtocols.every((number) => isInSet(set, number))) return 1;
  return numberShare(set, protocols);
}

function sourcePortShare(set: NumberSet | undefined, { vector, source_ports }: VectorProfile): number {
  if (set !== undefined && vector === 'udp-amplification' && amplifierPorts.every((port) => isInSet(set, port)))
    return 1;
  return numberShare(set, source_ports);
}

function lengthShare(set: NumberSet | undefined, { length }: VectorProfile): number {
  if (set === undefined) return 1;
  const holds = (from: number) => set.some(({ start, end }) => start <= from && length.max <= end);
  if (holds(length.min)) return 1;
  return holds(length.p5) ? 0.95 : 0;
}

const flagOctets = Array.from({ length: 256 }, (_, octet) => octet);

function flagShare(expression: FlagExpression | undefined, { vector, tcp_flags }: VectorProfile): number {
  if (expression === undefined) return 1;
  const matches = (octet: number) =>
    expression.some(({ set, unset }) => (octet & set) === set && (octet & unset) === 0);
  const number = vectors.some((name) => name === vector) ? vectorNumber(vector as Vector) : -1;
  const ofVector = flagOctets.filter((octet) => classify(6, 0, octet, false, false) === number);
  if (ofVector.length > 0 && ofVector.every(matches)) return 1;
  return sumOf(tcp_flags.filter(({ value }) => matches(value)));
}

function icmpShare({ icmpTypes, icmpCodes }: TrafficMatch, { icmp }: VectorProfile): number {
  if (icmpTypes === undefined && icmpCodes === undefined) return 1;
  return sumOf(
    icmp.filter(
      ({ value }) =>
        (icmpTypes === undefined || isInSet(icmpTypes, value >> 8)) &&
        (icmpCodes === undefined || isInSet(icmpCodes, value & 255)),
    ),
  );
}

const LATER = 2;
const FIRST = 4;

/** Fragments other than the first, the first, or both; other conditions count for nothing. */
function fragmentShare(expression: FlagExpression | undefined, { vector, later_fragments }: VectorProfile): number {
  if (expression === undefined) return 1;
  const asks = (bit: number) => expression.some(({ set, unset }) => set === bit && unset === 0);
  if (vector === 'ip-fragment' && asks(LATER) && asks(FIRST)) return 1;
  return asks(LATER) ? later_fragments : 0;
}
