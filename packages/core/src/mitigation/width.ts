/**
 * Owns how wide measures are beside each other: about how many kinds of packets each would hit. Says nothing of how much of an
 * attack they catch. Pure.
 */
import type { NumberSet } from '../flowspec/number-set.ts';
import type { TrafficMatch } from './traffic-match.ts';

/** Below it two sets of measures count as alike: what is seen wavers, and routers are not told anew for that. */
export const MUCH_WIDER = 4;

/**
 * Comparable among matches of one destination and one vector. Lengths count as told or not, since they waver the most;
 * fragments beside what is whole do not count: they have no ports by which they could be told apart.
 */
export function widthOf(matches: readonly TrafficMatch[]): number {
  const whole = matches.filter(({ fragment }) => fragment === undefined);
  return (whole.length > 0 ? whole : matches).reduce((sum, match) => sum + widthOfOne(match), 0);
}

function widthOfOne(match: TrafficMatch): number {
  const sizes = [
    size(match.protocols, 256),
    size(match.sourcePorts, 65_536),
    size(match.destinationPorts, 65_536),
    size(match.eitherPort, 65_536),
    size(match.icmpTypes, 256),
    size(match.icmpCodes, 256),
    told(match.lengths),
    told(match.tcpFlags),
    told(match.source),
  ];
  return sizes.reduce((product, each) => product * each, 1);
}

function size(set: NumberSet | undefined, all: number): number {
  if (set === undefined) return all;
  return set.reduce((sum, { start, end }) => sum + end - start + 1, 0);
}

function told(condition: unknown): number {
  return condition === undefined ? 2 : 1;
}
