/**
 * Owns the traffic that a firewall rule or a flowrule is about, in one form for both: sets of values a field, absent where
 * any will do. Says rather too much than too little: what cannot be put into sets (connection states, options, code points) is
 * left out. Never says what becomes of the traffic.
 */
import { protocolNumbers } from '@levee/contract/protocols.ts';
import { isExtensionHeader, portTransportNumbers } from '../firewall/protocol-traits.ts';
import type { PortRange, Rule } from '../firewall/rule.ts';
import type { FlagExpression } from '../flowspec/flag-expression.ts';
import type { Flowrule } from '../flowspec/flowrule.ts';
import type { NumberSet } from '../flowspec/number-set.ts';
import type { AddressRange, Prefix } from '../net/prefix.ts';
import { rangeOfPrefix } from '../net/range.ts';

export interface TrafficMatch {
  readonly dst: Prefix;
  readonly source?: AddressRange;
  /** Numbers of the upper protocol. */
  readonly protocols?: NumberSet;
  readonly sourcePorts?: NumberSet;
  readonly destinationPorts?: NumberSet;
  /** One of the two. */
  readonly eitherPort?: NumberSet;
  /** IP total length. */
  readonly lengths?: NumberSet;
  readonly tcpFlags?: FlagExpression;
  readonly icmpTypes?: NumberSet;
  readonly icmpCodes?: NumberSet;
  /** By the bits of a flow component. */
  readonly fragment?: FlagExpression;
}

export function matchOfRule(rule: Rule): TrafficMatch {
  const { dst, src, sourcePorts, destinationPorts, tcpFlags, packetLengthBytes: length } = rule;
  const protocols = protocolsOf(rule);
  return {
    dst,
    ...(src && { source: src }),
    ...(protocols && { protocols }),
    ...(sourcePorts && { sourcePorts: [sourcePorts] }),
    ...(destinationPorts && { destinationPorts: [destinationPorts] }),
    ...(length !== undefined && { lengths: [{ start: length, end: length }] }),
    ...(tcpFlags !== undefined && { tcpFlags: [{ set: tcpFlags, unset: 0 }] }),
  };
}

/** Undefined: any; also for the words that mean an IPv6 extension header, whatever is behind it. */
function protocolsOf({ dst, protocol, sourcePorts, destinationPorts }: Rule): NumberSet | undefined {
  if (protocol === 'mptcp') return [{ start: 6, end: 6 }];
  const number = protocolNumbers[protocol];
  if (number === null) {
    if (sourcePorts === undefined && destinationPorts === undefined) return undefined;
    return portTransportNumbers.toSorted((a, b) => a - b).map((each): PortRange => ({ start: each, end: each }));
  }
  if (dst.family === 6 && isExtensionHeader(protocol)) return undefined;
  return [{ start: number, end: number }];
}

export function matchOfFlowrule({ dst, source, numbers, flags }: Flowrule): TrafficMatch {
  const fields = {
    protocols: numbers.protocol,
    sourcePorts: numbers['source-port'],
    destinationPorts: numbers['destination-port'],
    eitherPort: numbers.port,
    lengths: numbers['packet-length'],
    tcpFlags: flags['tcp-flags'],
    icmpTypes: numbers['icmp-type'],
    icmpCodes: numbers['icmp-code'],
    fragment: flags.fragment,
  };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return { dst, ...(source && { source: rangeOfPrefix(source) }), ...Object.fromEntries(given) };
}
