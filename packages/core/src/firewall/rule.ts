/**
 * What a firewall rule is, inside: every value parsed, canonical and trusted. The wire's words (`descr`, `tcpflags`)
 * stop at the parser; nothing here knows how a rule is stored or compiled.
 */
import type { ProtocolName } from '@levee/contract/protocols.ts';
import type { AddressRange, Prefix } from '../net/prefix.ts';

export type RuleAction = 'accept' | 'continue' | 'drop' | 'reject';
export type PacketType = 'broadcast' | 'host' | 'multicast' | 'other';
export type ConnectionState = 'established' | 'invalid' | 'new' | 'related';

/** Inclusive, 0 … 65535. */
export interface PortRange {
  readonly start: number;
  readonly end: number;
}

export interface Rule {
  readonly uuid: string;
  /** Creation order over the whole installation: decides between rules of equal priority. */
  readonly sequence: number;
  /** 1 is evaluated first; at most 2147483647. */
  readonly priority: number;
  readonly dst: Prefix;
  readonly protocol: ProtocolName;
  readonly action: RuleAction;
  readonly src?: AddressRange;
  readonly sourcePorts?: PortRange;
  readonly destinationPorts?: PortRange;
  /** Bits of the TCP flags octet (RFC 9293) that must be set; the others are ignored. Never 0. */
  readonly tcpFlags?: number;
  /** Over all traffic that the rule matches; at least 1 (the wire's 0 is absence). */
  readonly rateLimitPacketsPerSecond?: number;
  /** IP total length: for IPv6 the payload length plus 40. */
  readonly packetLengthBytes?: number;
  readonly packetType?: PacketType;
  readonly connectionState?: ConnectionState;
  readonly disabled: boolean;
  /** Of a measure against an attack, where it is known; packets are judged without it. */
  readonly attackUuid?: string;
  /** What that attack is on; canonical. */
  readonly attackDst?: string;
}

/** Packets that may pass at once under a limit: a tenth of a second's worth, at least five. */
export function burstPackets(packetsPerSecond: number): number {
  return Math.max(5, Math.ceil(packetsPerSecond / 10));
}

/** Evaluation order: priority, then creation. */
export function compareRules(a: Rule, b: Rule): number {
  return a.priority - b.priority || a.sequence - b.sequence;
}
