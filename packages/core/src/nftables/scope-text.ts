/**
 * Owns a filter's scope as conditions: of packets to its destinations, and of those that its destinations send back, where
 * ports and addresses have changed places. Never decides what happens to them.
 */
import type { Filter } from '../filter/filter.ts';
import type { FilterTransport } from '../filter/filter-kind.ts';
import type { FilterScope } from '../filter/scope.ts';
import type { Family } from '../net/prefix.ts';
import { areMany, kindPortsCondition } from './kind-ports.ts';
import { addressConditions, destinationPortCondition, type Side, sourcePortCondition } from './rule-text.ts';

/** Whether packets go to a filter's destinations or come from there. */
export type Direction = 'to' | 'from';

export const transportNumbers: Record<FilterTransport, (family: Family) => number> = {
  tcp: () => 6,
  udp: () => 17,
  icmp: (family) => (family === 4 ? 1 : 58),
};

/** One entry an alternative. */
export function scopeConditions(filter: Filter, scope: FilterScope, direction: Direction = 'to'): string[][] {
  const number = transportNumbers[scope.transport](filter.dst.family);
  const found: string[][] = [];
  for (const from of portConditions(filter, scope, 'src', direction)) {
    for (const to of portConditions(filter, scope, 'dst', direction)) {
      found.push([`meta l4proto ${number}`, ...from, ...to, ...clientConditions(filter, direction)]);
    }
  }
  return found;
}

/** The other side's addresses, where the filter names any. */
export function clientConditions({ src }: Filter, direction: Direction): string[] {
  return src === undefined ? [] : addressConditions(src, seenAs('src', direction));
}

/** One entry an alternative; many ports are the kind's own, and one look-up. */
function portConditions(filter: Filter, scope: FilterScope, side: Side, direction: Direction): string[][] {
  const ranges = side === 'src' ? scope.sourcePorts : scope.destinationPorts;
  if (ranges === undefined) return [[]];
  const seen = seenAs(side, direction);
  if (areMany(ranges)) return [[kindPortsCondition(filter.kind.id, scope.transport, side, seen)]];
  return ranges.map((range) => [seen === 'src' ? sourcePortCondition(range) : destinationPortCondition(range)]);
}

/** On which side of the packet the scope's side stands. */
function seenAs(side: Side, direction: Direction): Side {
  return direction === 'to' ? side : side === 'src' ? 'dst' : 'src';
}
