/**
 * Owns the one question whether a packet meets all of a rule's conditions, and the first that it does not meet.
 * Written from the meaning of the fields alone. Never knows how the kernel is told, never applies an action.
 */
import { protocolNumbers } from '@levee/contract/protocols.ts';
import { prefixContainsAddress } from '../net/prefix.ts';
import { rangeContainsAddress } from '../net/range.ts';
import { type Packet, showsTransportHeader } from './packet.ts';
import { isExtensionHeader, mptcpOptionKind, portTransportNumbers } from './protocol-traits.ts';
import type { PortRange, Rule } from './rule.ts';

/**
 * Why a rule does not match. `…_unknown`: the packet's fact is not known. `…_not_visible`: it is a later fragment,
 * which does not carry it.
 */
export type Mismatch =
  | 'disabled'
  | 'destination'
  | 'source'
  | 'packet_type'
  | 'protocol'
  | 'protocol_unknown'
  | 'extension_header_absent'
  | 'mptcp_option_absent'
  | 'mptcp_option_unknown'
  | 'mptcp_option_not_visible'
  | 'protocol_without_ports'
  | 'ports_not_visible'
  | 'source_port'
  | 'source_port_unknown'
  | 'destination_port'
  | 'destination_port_unknown'
  | 'tcp_flags'
  | 'tcp_flags_unknown'
  | 'tcp_flags_not_visible'
  | 'packet_length'
  | 'packet_length_unknown'
  | 'connection_state'
  | 'connection_state_unknown';

/** The first condition that fails, in the order above; undefined when the rule matches. */
export function findMismatch(rule: Rule, packet: Packet): Mismatch | undefined {
  if (rule.disabled) return 'disabled';
  if (!prefixContainsAddress(rule.dst, { family: packet.family, value: packet.destination })) return 'destination';
  if (rule.src && !rangeContainsAddress(rule.src, { family: packet.family, value: packet.source })) return 'source';
  if (rule.packetType !== undefined && rule.packetType !== packet.packetType) return 'packet_type';
  return (
    protocolMismatch(rule, packet) ??
    portMismatch(rule, packet) ??
    flagMismatch(rule, packet) ??
    lengthMismatch(rule, packet) ??
    stateMismatch(rule, packet)
  );
}

function protocolMismatch(rule: Rule, packet: Packet): Mismatch | undefined {
  if (rule.protocol === 'any' || rule.protocol === 'ip') return undefined;
  if (rule.protocol === 'mptcp') return mptcpMismatch(packet);
  const number = protocolNumbers[rule.protocol];
  // For IPv4 these words are the protocol field's numbers like all others (hopopt: 0), for IPv6 a header's presence.
  if (packet.family === 6 && isExtensionHeader(rule.protocol)) {
    const present = packet.extensionHeaders.some((header) => header === number) || packet.upperProtocol === number;
    return present ? undefined : 'extension_header_absent';
  }
  if (packet.upperProtocol === undefined) return 'protocol_unknown';
  return packet.upperProtocol === number ? undefined : 'protocol';
}

function mptcpMismatch(packet: Packet): Mismatch | undefined {
  if (packet.upperProtocol === undefined) return 'protocol_unknown';
  if (packet.upperProtocol !== protocolNumbers.tcp) return 'protocol';
  if (!showsTransportHeader(packet)) return 'mptcp_option_not_visible';
  if (packet.tcpOptionKinds === undefined) return 'mptcp_option_unknown';
  return packet.tcpOptionKinds.includes(mptcpOptionKind) ? undefined : 'mptcp_option_absent';
}

function portMismatch(rule: Rule, packet: Packet): Mismatch | undefined {
  if (rule.sourcePorts === undefined && rule.destinationPorts === undefined) return undefined;
  if (packet.upperProtocol === undefined) return 'protocol_unknown';
  if (!portTransportNumbers.includes(packet.upperProtocol)) return 'protocol_without_ports';
  if (!showsTransportHeader(packet)) return 'ports_not_visible';
  if (rule.sourcePorts) {
    if (packet.sourcePort === undefined) return 'source_port_unknown';
    if (!inRange(rule.sourcePorts, packet.sourcePort)) return 'source_port';
  }
  if (rule.destinationPorts) {
    if (packet.destinationPort === undefined) return 'destination_port_unknown';
    if (!inRange(rule.destinationPorts, packet.destinationPort)) return 'destination_port';
  }
  return undefined;
}

function inRange(range: PortRange, port: number): boolean {
  return range.start <= port && port <= range.end;
}

function flagMismatch(rule: Rule, packet: Packet): Mismatch | undefined {
  if (rule.tcpFlags === undefined) return undefined;
  if (!showsTransportHeader(packet)) return 'tcp_flags_not_visible';
  if (packet.tcpFlags === undefined) return 'tcp_flags_unknown';
  return (packet.tcpFlags & rule.tcpFlags) === rule.tcpFlags ? undefined : 'tcp_flags';
}

function lengthMismatch(rule: Rule, packet: Packet): Mismatch | undefined {
  if (rule.packetLengthBytes === undefined) return undefined;
  if (packet.totalLengthBytes === undefined) return 'packet_length_unknown';
  return rule.packetLengthBytes === packet.totalLengthBytes ? undefined : 'packet_length';
}

function stateMismatch(rule: Rule, packet: Packet): Mismatch | undefined {
  if (rule.connectionState === undefined) return undefined;
  if (packet.connectionState === undefined) return 'connection_state_unknown';
  return rule.connectionState === packet.connectionState ? undefined : 'connection_state';
}
