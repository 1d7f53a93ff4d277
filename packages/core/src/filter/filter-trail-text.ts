/**
 * Owns the sentences in which a trail tells of a filter: what it looks at, what the packet had, what its kind found.
 * Never decides anything.
 */
import type { Packet } from '../firewall/packet.ts';
import { protocolText } from '../firewall/protocol-traits.ts';
import { addressText, portsText, rangeText } from '../firewall/trail-text.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import type { FilterStep } from './apply-filter.ts';
import type { Filter } from './filter.ts';
import type { KindPorts } from './filter-kind.ts';
import type { FilterMismatch } from './match-filter.ts';
import { scopesOf } from './scope.ts';

export function renderFilterStep(step: FilterStep, packet: Packet): string {
  if (!step.matched) return renderFilterMismatch(step.mismatch, step.filter, packet);
  const { filter, effect, why, meter } = step;
  const rate = filter.rateLimitMegabitsPerSecond;
  const limit = rate === undefined ? '' : `; of what passes, what exceeds ${rate} Mbit/s is dropped`;
  switch (effect) {
    case 'passed':
      return `the packet passes: ${why}${limit}`;
    case 'discarded':
      return `the packet is dropped: ${why}`;
    case 'challenged':
      return `the router answers the packet and keeps it: ${why}`;
    case 'undecided':
      return `the packet goes on, too little of it is given: ${why}`;
    case 'discarded_over_meter': {
      const bound = meter ? ` of ${meter.packetsPerSecond} packets/s of one ${meter.of}` : '';
      return `the packet is dropped, above the limit${bound}: ${why}`;
    }
    case 'discarded_over_limit':
      return `the packet is dropped, above the limit of ${rate} Mbit/s: ${why}`;
  }
}

function renderFilterMismatch(mismatch: FilterMismatch, filter: Filter, packet: Packet): string {
  const transports = filter.kind.transports.join(' or ');
  switch (mismatch) {
    case 'destination':
      return `destination is ${addressText(packet, packet.destination)}, filter looks at ${formatPrefix(filter.dst)}`;
    case 'packet_type':
      return `packet type is ${packet.packetType}, filter looks at host`;
    case 'source':
      return `source is ${addressText(packet, packet.source)}, filter looks at ${filter.src ? rangeText(filter.src) : 'any'}`;
    case 'protocol':
      return `protocol is ${protocolText(packet.upperProtocol ?? 0)}, filter looks at ${transports}`;
    case 'protocol_unknown':
      return `protocol is not given, filter looks at ${transports}`;
    case 'ports_not_visible':
      return 'packet is a later fragment, which shows no ports; filter looks at ports';
    case 'source_port':
      return `source port is ${packet.sourcePort}, filter looks at ${lookedAt(filter, packet, 'src')}`;
    case 'source_port_unknown':
      return `source port is not given, filter looks at ${lookedAt(filter, packet, 'src')}`;
    case 'destination_port':
      return `destination port is ${packet.destinationPort}, filter looks at ${lookedAt(filter, packet, 'dst')}`;
    case 'destination_port_unknown':
      return `destination port is not given, filter looks at ${lookedAt(filter, packet, 'dst')}`;
  }
}

/** Of the packet's transport. */
function lookedAt(filter: Filter, packet: Packet, side: KindPorts['side']): string {
  const scope = scopesOf(filter).find(({ transport }) => transport === protocolText(packet.upperProtocol ?? 0));
  const ranges = side === 'src' ? scope?.sourcePorts : scope?.destinationPorts;
  return ranges?.map(portsText).join(', ') ?? 'any';
}
