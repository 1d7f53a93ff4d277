/**
 * Owns what a protocol word implies for a rule's other fields and for what it looks at in a packet.
 * Never the numbers: those are contract's.
 */
import { type ProtocolName, protocolNames, protocolNumbers } from '@levee/contract/protocols.ts';
import type { Family } from '../net/prefix.ts';

/** The transports whose first four octets are source and destination port. */
export const portTransports = ['tcp', 'udp', 'udplite', 'sctp', 'dccp'] as const satisfies readonly ProtocolName[];

export const portTransportNumbers: readonly number[] = portTransports.flatMap((name) => protocolNumbers[name] ?? []);

/** The words that a rule with ports may have: a transport, or no protocol condition (then: those five transports). */
export const portProtocolNames = [...portTransports, 'any', 'ip'] as const satisfies readonly ProtocolName[];

/** Carried by TCP with this option's kind (RFC 8684, 3). */
export const mptcpOptionKind = 30;

/** Words that for IPv6 mean the presence of an extension header, wherever it stands before the payload. */
export const extensionHeaderNames = [
  'hopopt',
  'ipv6-route',
  'ipv6-frag',
  'ipv6-opts',
  'ah',
  'mobility-header',
] as const satisfies readonly ProtocolName[];

/** `mptcp` is not among them, although TCP carries it: the list is the interface's. */
export function hasPorts(protocol: ProtocolName): boolean {
  return portProtocolNames.some((name) => name === protocol);
}

export function acceptsTcpFlags(protocol: ProtocolName): boolean {
  return protocol === 'tcp';
}

/** The only family of which a rule with that word may be; undefined: either. */
export function familyOfProtocol(protocol: ProtocolName): Family | undefined {
  if (protocol === 'ip' || protocol === 'icmp') return 4;
  return protocol === 'ipv6-icmp' ? 6 : undefined;
}

export function isExtensionHeader(protocol: ProtocolName): boolean {
  return extensionHeaderNames.some((name) => name === protocol);
}

/** Extension headers behind which a router looks for the upper protocol: all but `ah` and `mobility-header`. */
export function isSkippedHeader(protocol: ProtocolName): boolean {
  return isExtensionHeader(protocol) && protocol !== 'ah' && protocol !== 'mobility-header';
}

/** The word for a number, or the number itself as text. */
export function protocolText(number: number): string {
  return protocolNames.find((name) => protocolNumbers[name] === number) ?? String(number);
}
