/**
 * Owns the one question whether a filter looks at a packet, and the first condition that keeps it from that. Written from
 * the meaning of scopes alone. Never knows how the kernel is told, never judges a packet's content.
 */
import { protocolNumbers } from '@levee/contract/protocols.ts';
import { type Packet, showsTransportHeader } from '../firewall/packet.ts';
import type { PortRange } from '../firewall/rule.ts';
import { type Family, prefixContainsAddress } from '../net/prefix.ts';
import { rangeContainsAddress } from '../net/range.ts';
import type { Filter } from './filter.ts';
import type { FilterTransport } from './filter-kind.ts';
import { type FilterScope, scopesOf } from './scope.ts';

/**
 * Why a filter does not look at a packet. `packet_type`: routers forward frames for themselves only, and filters stand
 * where packets are forwarded. `…_unknown` and `ports_not_visible` are as of rules.
 */
export type FilterMismatch =
  | 'destination'
  | 'packet_type'
  | 'source'
  | 'protocol'
  | 'protocol_unknown'
  | 'ports_not_visible'
  | 'source_port'
  | 'source_port_unknown'
  | 'destination_port'
  | 'destination_port_unknown';

export type FilterMatch =
  | { readonly matched: true; readonly transport: FilterTransport }
  | { readonly matched: false; readonly mismatch: FilterMismatch };

const seen = (transport: FilterTransport): FilterMatch => ({ matched: true, transport });
const passedBy = (mismatch: FilterMismatch): FilterMatch => ({ matched: false, mismatch });

/** The first condition that fails, in the order above. */
export function matchFilter(filter: Filter, packet: Packet): FilterMatch {
  if (!prefixContainsAddress(filter.dst, { family: packet.family, value: packet.destination })) {
    return passedBy('destination');
  }
  if (packet.packetType !== 'host') return passedBy('packet_type');
  if (filter.src && !rangeContainsAddress(filter.src, { family: packet.family, value: packet.source })) {
    return passedBy('source');
  }
  if (packet.upperProtocol === undefined) return passedBy('protocol_unknown');
  for (const scope of scopesOf(filter)) {
    if (transportNumber(scope.transport, packet.family) !== packet.upperProtocol) continue;
    const mismatch = portMismatch(scope, packet);
    return mismatch === undefined ? seen(scope.transport) : passedBy(mismatch);
  }
  return passedBy('protocol');
}

function transportNumber(transport: FilterTransport, family: Family): number | null {
  return protocolNumbers[transport === 'icmp' && family === 6 ? 'ipv6-icmp' : transport];
}

function portMismatch({ sourcePorts, destinationPorts }: FilterScope, packet: Packet): FilterMismatch | undefined {
  if (sourcePorts === undefined && destinationPorts === undefined) return undefined;
  if (!showsTransportHeader(packet)) return 'ports_not_visible';
  if (sourcePorts) {
    if (packet.sourcePort === undefined) return 'source_port_unknown';
    if (!isAmong(sourcePorts, packet.sourcePort)) return 'source_port';
  }
  if (destinationPorts) {
    if (packet.destinationPort === undefined) return 'destination_port_unknown';
    if (!isAmong(destinationPorts, packet.destinationPort)) return 'destination_port';
  }
  return undefined;
}

function isAmong(ranges: readonly PortRange[], port: number): boolean {
  return ranges.some(({ start, end }) => start <= port && port <= end);
}
