/**
 * Owns the look at which addresses have the traffic of a subnet. Goes over what a slot touched, once for all subnets.
 */
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import type { Attack } from './attack.ts';
import { prefixAt } from './places.ts';
import { type Traffic, WindowSums } from './traffic.ts';

/** Addresses of an attacked subnet that are counted in a slot. */
const mostMembersCounted = 1_024;
const none = -1;
const sums = new WindowSums();

/** Addresses that were touched in this slot and have no attack of their own, by their subnets. One pass for all. */
export function membersOf(traffic: Traffic, subnets: ReadonlySet<number>): Map<number, number[]> {
  const members = new Map<number, number[]>();
  for (const destination of traffic.touched) {
    const aggregate = traffic.aggregates[destination] as number;
    if (aggregate === destination || !subnets.has(aggregate) || traffic.attacks[destination] !== none) continue;
    const of = members.get(aggregate);
    if (of === undefined) members.set(aggregate, [destination]);
    else of.push(destination);
  }
  return members;
}

/** How the traffic of attacked subnets is spread over their addresses. */
export function countMembers(traffic: Traffic, attacks: Iterable<Attack>): void {
  const subnets = new Map<number, Attack>();
  const left = new Map<number, number>();
  for (const attack of attacks) {
    if (!traffic.isAggregate(attack.destination)) continue;
    subnets.set(attack.destination, attack);
    left.set(attack.destination, mostMembersCounted);
  }
  if (subnets.size === 0) return;
  for (const destination of traffic.touched) {
    const aggregate = traffic.aggregates[destination] as number;
    const room = left.get(aggregate);
    if (room === undefined || room === 0 || aggregate === destination || traffic.attacks[destination] !== none)
      continue;
    left.set(aggregate, room - 1);
    const attack = subnets.get(aggregate);
    const dst = formatPrefix(prefixAt(traffic, destination));
    for (const vector of attack?.vectors.keys() ?? []) {
      const key = traffic.keyOf(destination, vector);
      if (key < 0) continue;
      const { samples } = traffic.at(key, traffic.slot, sums);
      if (samples > 0) attack?.countDestination(vector, dst, samples);
    }
  }
}
