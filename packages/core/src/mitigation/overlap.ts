/**
 * Owns the one question whether any packet may be of both of two kinds of traffic. Errs on one side only: where it says no,
 * there is none.
 *
 * A router that tracks connections puts fragments together before its rules see them, and what is upstream does not: a rule
 * may so accept by its ports and its whole length what arrives in pieces that show neither. Conditions on what only a whole
 * packet shows therefore never tell fragments apart from it.
 */
import type { FlagExpression } from '../flowspec/flag-expression.ts';
import { flagKinds } from '../flowspec/flowrule.ts';
import type { NumberSet } from '../flowspec/number-set.ts';
import { prefixesOverlap } from '../net/prefix.ts';
import type { TrafficMatch } from './traffic-match.ts';

/** `upstream`: what a router before this one sees, in pieces as they come. `behind`: what rules here are about. */
export function mayOverlap(upstream: TrafficMatch, behind: TrafficMatch): boolean {
  const [a, b] = [upstream, behind];
  if (a.dst.family !== b.dst.family || !prefixesOverlap(a.dst, b.dst)) return false;
  if (a.source && b.source && (a.source.end < b.source.start || b.source.end < a.source.start)) return false;
  if (!meet(a.protocols, b.protocols)) return false;
  if (asksForFragments(a) || asksForFragments(b)) return true;
  return (
    portsMeet(a, b) &&
    lengthsMeet(a.lengths, b.lengths) &&
    flagsMeet(a.tcpFlags, b.tcpFlags) &&
    meet(a.icmpTypes, b.icmpTypes) &&
    meet(a.icmpCodes, b.icmpCodes)
  );
}

/** By a condition that a fragment can meet. */
function asksForFragments({ fragment }: TrafficMatch): boolean {
  const { 'dont-fragment': whole } = flagKinds.fragment;
  return fragment?.some(({ set }) => (set & ~whole) !== 0) ?? false;
}

function meet(a: NumberSet | undefined, b: NumberSet | undefined): boolean {
  if (a === undefined || b === undefined) return true;
  return a.some((one) => b.some((other) => one.start <= other.end && other.start <= one.end));
}

function portsMeet(a: TrafficMatch, b: TrafficMatch): boolean {
  if (!meet(a.sourcePorts, b.sourcePorts) || !meet(a.destinationPorts, b.destinationPorts)) return false;
  return eitherMeets(a.eitherPort, b) && eitherMeets(b.eitherPort, a);
}

function eitherMeets(either: NumberSet | undefined, { sourcePorts, destinationPorts }: TrafficMatch): boolean {
  return meet(either, sourcePorts) || meet(either, destinationPorts);
}

/** A piece is shorter than the whole: whatever is no longer may be one of it. */
function lengthsMeet(upstream: NumberSet | undefined, behind: NumberSet | undefined): boolean {
  if (upstream === undefined || behind === undefined) return true;
  return (upstream[0]?.start ?? 0) <= (behind.at(-1)?.end ?? 0);
}

function flagsMeet(a: FlagExpression | undefined, b: FlagExpression | undefined): boolean {
  if (a === undefined || b === undefined) return true;
  return a.some((one) => b.some((other) => (one.set & other.unset) === 0 && (other.set & one.unset) === 0));
}
