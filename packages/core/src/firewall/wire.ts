/**
 * Owns the wire's names and bounds of a firewall rule's fields and the canonical form that is stored and answered.
 * Never checks anything: that is `parse.ts`.
 */
import type { ProtocolName } from '@levee/contract/protocols.ts';
import type { ConnectionState, PacketType, RuleAction } from './rule.ts';

/** In the order in which a canonical rule lists them. */
export const ruleFields = [
  'dst',
  'protocol',
  'action',
  'priority',
  'descr',
  'src',
  'port',
  'disabled',
  'tcpflags',
  'ratelimit',
  'packetlength',
  'packettype',
  'statetype',
] as const;

export const requiredRuleFields = ['dst', 'protocol', 'action'] as const;

export const ruleActions = ['accept', 'continue', 'drop', 'reject'] as const satisfies readonly RuleAction[];
export const packetTypes = ['broadcast', 'host', 'multicast', 'other'] as const satisfies readonly PacketType[];
export const connectionStates = [
  'established',
  'invalid',
  'new',
  'related',
] as const satisfies readonly ConnectionState[];

/** The wire's flag words by their bit in the TCP header's 14th octet (RFC 9293, 3.1). */
export const tcpFlagBits = {
  fin: 0x01,
  syn: 0x02,
  rst: 0x04,
  psh: 0x08,
  ack: 0x10,
  urg: 0x20,
  ece: 0x40,
  cwr: 0x80,
} as const;

export type TcpFlagName = keyof typeof tcpFlagBits;
export const tcpFlagNames = Object.keys(tcpFlagBits) as readonly TcpFlagName[];

export const defaultPriority = 1000;
export const priorityBounds = { minimum: 1, maximum: 2147483647 } as const;
/**
 * Beyond what anybody may give: a measure against an attack comes after all rules of customers, whatever their priority and
 * whenever they were made.
 */
export const measurePriority = priorityBounds.maximum + 1;
export const rateLimitBounds = { minimum: 0, maximum: 4294967295 } as const;
export const packetLengthBounds = { minimum: 1, maximum: 65535 } as const;
export const portBounds = { minimum: 0, maximum: 65535 } as const;
/** In Unicode code points. */
export const descriptionMaximum = 255;

/** As the client wrote it: `end` is there only when it was given. */
export interface CanonicalPortRange {
  readonly start: number;
  readonly end?: number;
}

export interface CanonicalPorts {
  readonly src?: CanonicalPortRange;
  readonly dst?: CanonicalPortRange;
}

/** One address or subnet, or the first and the last address. */
export interface CanonicalSource {
  readonly start: string;
  readonly end?: string;
}

/** A rule on the wire: canonical texts, keys in the order of `ruleFields`, absent what is not set. */
export interface CanonicalRule {
  readonly dst: string;
  readonly protocol: ProtocolName;
  readonly action: RuleAction;
  readonly priority: number;
  readonly descr?: string;
  readonly src?: CanonicalSource;
  readonly port?: CanonicalPorts;
  readonly disabled: boolean;
  readonly tcpflags?: TcpFlagName[];
  readonly ratelimit?: number;
  readonly packetlength?: number;
  readonly packettype?: PacketType;
  readonly statetype?: ConnectionState;
}
