/**
 * Owns what one filter does to one packet: whether it looks at it, what its kind finds, and then, in this order, the
 * kind's meters, its memory, and the filter's own limit. Never remembers or counts anything itself: it asks.
 */
import type { Packet } from '../firewall/packet.ts';
import type { Filter } from './filter.ts';
import type { KindEnforcement, KindMeter } from './filter-kind.ts';
import type { FilterFinding } from './judgement.ts';
import { type FilterMismatch, matchFilter } from './match-filter.ts';

/** What a filter goes by beside the packet. Asked in the order of the steps; an answer may count the packet. */
export interface FilterFacts {
  /** Whether the filter is in force for less than `settlingSeconds`. */
  settling(filter: Filter): boolean;
  /** Whether the packet's source is remembered at its destination; of kinds that remember flows: its flow. */
  knows(filter: Filter, packet: Packet): boolean;
  withinMeter(filter: Filter, meter: KindMeter, packet: Packet): boolean;
  /** From now on it is known, if there is room. */
  remember(filter: Filter, packet: Packet): void;
  /** Of a filter with a rate limit. */
  withinRate(filter: Filter, packet: Packet): boolean;
}

/** A router that has seen nothing yet and is under no load. */
export const nothingRemembered: FilterFacts = {
  settling: () => false,
  knows: () => false,
  withinMeter: () => true,
  remember: () => {},
  withinRate: () => true,
};

/** `undecided`: a fact that the kind goes by is not known. */
export type FilterEffect =
  | 'passed'
  | 'discarded'
  | 'challenged'
  | 'undecided'
  | 'discarded_over_meter'
  | 'discarded_over_limit';

export type FilterStep =
  | { readonly filter: Filter; readonly matched: false; readonly mismatch: FilterMismatch }
  | {
      readonly filter: Filter;
      readonly matched: true;
      readonly effect: FilterEffect;
      /** The kind's finding, in its words. */
      readonly why: string;
      /** The one that the packet is above. */
      readonly meter?: KindMeter;
    };

export function applyFilter(filter: Filter, packet: Packet, facts: FilterFacts): FilterStep {
  const match = matchFilter(filter, packet);
  if (!match.matched) return { filter, matched: false, mismatch: match.mismatch };
  const { enforcement } = filter.kind;
  const finding = enforcement.judge({
    filter,
    packet,
    transport: match.transport,
    payload: packet.payload,
    established: packet.connectionState === 'established',
    known: facts.knows(filter, packet),
    settling: facts.settling(filter),
  });
  return { filter, matched: true, why: finding.why, ...effectOf(filter, enforcement, packet, finding, facts) };
}

function effectOf(
  filter: Filter,
  enforcement: KindEnforcement,
  packet: Packet,
  finding: FilterFinding,
  facts: FilterFacts,
): { readonly effect: FilterEffect; readonly meter?: KindMeter } {
  switch (finding.outcome) {
    case 'discard':
      return { effect: 'discarded' };
    case 'challenge':
      return { effect: 'challenged' };
    case 'unknown':
      return { effect: 'undecided' };
    case 'pass':
      break;
  }
  for (const name of finding.charges ?? []) {
    const meter = enforcement.meters.find((each) => each.name === name);
    if (meter === undefined) throw new Error(`${filter.kind.name} has no meter ${name}`);
    if (!facts.withinMeter(filter, meter, packet)) return { effect: 'discarded_over_meter', meter };
  }
  if (finding.remembers === true) facts.remember(filter, packet);
  if (filter.rateLimitMegabitsPerSecond !== undefined && !facts.withinRate(filter, packet)) {
    return { effect: 'discarded_over_limit' };
  }
  return { effect: 'passed' };
}
