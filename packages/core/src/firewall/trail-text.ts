/**
 * Owns the sentences in which a trail tells people of a rule: what it wanted, what the packet had, what was done.
 * Never decides a match.
 */
import { formatAddress } from '../net/address.ts';
import type { AddressRange } from '../net/prefix.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { prefixOfRange } from '../net/range.ts';
import type { Effect } from './evaluate.ts';
import type { Mismatch } from './match.ts';
import type { Packet } from './packet.ts';
import { portTransports, protocolText } from './protocol-traits.ts';
import { burstPackets, type PortRange, type Rule } from './rule.ts';
import { tcpFlagBits, tcpFlagNames } from './wire.ts';

export function renderMismatch(mismatch: Mismatch, rule: Rule, packet: Packet): string {
  const protocol = packet.upperProtocol === undefined ? 'not given' : protocolText(packet.upperProtocol);
  switch (mismatch) {
    case 'disabled':
      return 'the rule is disabled';
    case 'destination':
      return `destination is ${addressText(packet, packet.destination)}, rule wants ${formatPrefix(rule.dst)}`;
    case 'source':
      return `source is ${addressText(packet, packet.source)}, rule wants ${rule.src ? rangeText(rule.src) : 'any'}`;
    case 'packet_type':
      return `packet type is ${packet.packetType}, rule wants ${rule.packetType}`;
    case 'protocol':
      return `protocol is ${protocol}, rule wants ${rule.protocol === 'mptcp' ? 'mptcp (tcp with option 30)' : rule.protocol}`;
    case 'protocol_unknown':
      return rule.protocol === 'any' || rule.protocol === 'ip'
        ? `protocol is not given, rule wants ports of ${portTransports.join(', ')}`
        : `protocol is not given, rule wants ${rule.protocol}`;
    case 'extension_header_absent':
      return `packet has no extension header ${rule.protocol}, rule wants one`;
    case 'mptcp_option_absent':
      return 'packet is tcp without option 30, rule wants mptcp';
    case 'mptcp_option_unknown':
      return 'tcp options are not given, rule wants option 30 (mptcp)';
    case 'mptcp_option_not_visible':
      return 'packet is a later fragment, which shows no tcp options; rule wants option 30 (mptcp)';
    case 'protocol_without_ports':
      return `protocol is ${protocol}, which has no ports; rule wants ports of ${portTransports.join(', ')}`;
    case 'ports_not_visible':
      return 'packet is a later fragment, which shows no ports; rule wants ports';
    case 'source_port':
      return `source port is ${packet.sourcePort}, rule wants ${portsText(rule.sourcePorts)}`;
    case 'source_port_unknown':
      return `source port is not given, rule wants ${portsText(rule.sourcePorts)}`;
    case 'destination_port':
      return `destination port is ${packet.destinationPort}, rule wants ${portsText(rule.destinationPorts)}`;
    case 'destination_port_unknown':
      return `destination port is not given, rule wants ${portsText(rule.destinationPorts)}`;
    case 'tcp_flags':
      return `tcp flags are ${flagsText(packet.tcpFlags)}, rule wants ${flagsText(rule.tcpFlags)} set`;
    case 'tcp_flags_unknown':
      return `tcp flags are not given, rule wants ${flagsText(rule.tcpFlags)} set`;
    case 'tcp_flags_not_visible':
      return `packet is a later fragment, which shows no tcp flags; rule wants ${flagsText(rule.tcpFlags)} set`;
    case 'packet_length':
      return `packet length is ${packet.totalLengthBytes}, rule wants ${rule.packetLengthBytes}`;
    case 'packet_length_unknown':
      return `packet length is not given, rule wants ${rule.packetLengthBytes}`;
    case 'connection_state':
      return `connection state is ${packet.connectionState}, rule wants ${rule.connectionState}`;
    case 'connection_state_unknown':
      return `connection state is not given, rule wants ${rule.connectionState}`;
  }
}

export function renderEffect(effect: Effect, rule: Rule): string {
  const rate = rule.rateLimitPacketsPerSecond;
  const limit =
    rate === undefined
      ? ''
      : ` within the limit of ${rate} packets/s (burst ${burstPackets(rate)}); what exceeds it is dropped`;
  switch (effect) {
    case 'accepted':
      return `the packet matches and is accepted${limit}`;
    case 'dropped':
      return 'the packet matches and is dropped';
    case 'rejected':
      return 'the packet matches and is rejected, with an answer to its sender';
    case 'counted':
      return `the packet matches, is counted and goes on${limit}`;
    case 'passed_within_limit':
      return `the packet matches and goes on within the limit of ${rate} packets/s; what exceeds it is ${rule.action === 'reject' ? 'rejected' : 'dropped'}`;
    case 'dropped_over_limit':
      return `the packet matches and is dropped, above the limit of ${rate} packets/s`;
    case 'rejected_over_limit':
      return `the packet matches and is rejected, above the limit of ${rate} packets/s`;
  }
}

export function addressText(packet: Packet, value: bigint): string {
  return formatAddress({ family: packet.family, value });
}

export function rangeText(range: AddressRange): string {
  const prefix = prefixOfRange(range);
  if (prefix) return formatPrefix(prefix);
  const { family, start, end } = range;
  return `${formatAddress({ family, value: start })} to ${formatAddress({ family, value: end })}`;
}

export function portsText(range: PortRange | undefined): string {
  if (range === undefined) return 'any';
  return range.start === range.end ? String(range.start) : `${range.start} to ${range.end}`;
}

function flagsText(bits: number | undefined): string {
  const names = tcpFlagNames.filter((name) => ((bits ?? 0) & tcpFlagBits[name]) !== 0);
  return names.length === 0 ? 'none' : names.join('+');
}
