/**
 * Owns what one rule becomes: a line for the chains that hold it, and the small chains of its own. Every part comes
 * from numbers, formatted addresses and names of names.ts; no text of a user enters.
 * Never looks at other rules: order, merging and sharing are the layout's.
 */
import { protocolNumbers } from '@levee/contract/protocols.ts';
import { mptcpOptionKind } from '../firewall/protocol-traits.ts';
import { burstPackets, type ConnectionState, type PacketType, type PortRange, type Rule } from '../firewall/rule.ts';
import type { AddressRange } from '../net/prefix.ts';
import { prefixOfRange } from '../net/range.ts';
import { portTransportsSet, refuseChain, ruleChain } from './names.ts';

/** Whose address or port in the packet. */
export type Side = 'src' | 'dst';

/** The hook at which a line runs. */
export type Plane = 'forward' | 'ingress';

export interface OwnChain {
  readonly name: string;
  readonly lines: readonly string[];
  /** Whether its first line counts for the rule. */
  readonly counted: boolean;
}

/**
 * Set on a packet that conntrack put together from IPv6 fragments: reassembly removes the header that `ipv6-frag`
 * looks for. One bit of the packet mark, which routing policy and other tables can see.
 */
export const fragmentMark = 0x08000000;

/** linux/if_packet.h */
const packetTypeNumbers: Record<PacketType, number> = { host: 0, broadcast: 1, multicast: 2, other: 3 };

/**
 * nf_conntrack_common.h: the bits that nft gives these names. The rule's destination is tracked: the packets of it that are not,
 * bit 64, are the SYNs that a SYN proxy wants kept from conntrack, and begin a connection as well.
 */
const stateBits: Record<ConnectionState, number> = { invalid: 1, established: 2, related: 4, new: 8 | 64 };

const ipv6HeaderBytes = 40;

/**
 * Whether a packet that meets this hook can match. The forward hook sees packets to this host's hardware address only,
 * the ingress chain is asked for the others only; and those never get as far as conntrack, so they have no state.
 */
export function canMatch(rule: Rule, plane: Plane): boolean {
  if (rule.disabled) return false;
  if (rule.dst.family === 6 && (rule.packetLengthBytes ?? ipv6HeaderBytes) < ipv6HeaderBytes) return false;
  if (plane === 'forward') return rule.packetType === undefined || rule.packetType === 'host';
  return rule.packetType !== 'host' && rule.connectionState === undefined;
}

/**
 * Whether the rule is about packets that only an ingress hook sees. Without ingress devices it is compiled to nothing:
 * who loads the table has to say so.
 */
export function needsIngress(rule: Rule): boolean {
  return rule.packetType !== undefined && rule.packetType !== 'host' && canMatch(rule, 'ingress');
}

/** Whether no packet gets past: what stands behind it in a chain is never reached. */
export function endsEvaluation(rule: Rule): boolean {
  if (rule.action === 'continue') return false;
  if (rule.rateLimitPacketsPerSecond !== undefined && rule.action !== 'accept') return false;
  return conditions(rule).length === 0 && alternatives(rule) === undefined;
}

/** Whether the line of the rule counts; if not, one of its own chains does. */
export function lineCounts(rule: Rule): boolean {
  return alternatives(rule) === undefined;
}

/** One line for each chain in which the rule stands. */
export function ruleLine(rule: Rule, plane: Plane): string {
  const conds = conditions(rule);
  if (alternatives(rule) !== undefined) return [...conds, `jump ${ruleChain('either', rule.uuid)}`].join(' ');
  return [...conds, outcome(rule, plane)].join(' ');
}

/**
 * The chains that belong to the rule alone, wherever it stands: copies share one bucket, and the bucket outlives
 * changes of the rules around it.
 */
export function ownChains(rule: Rule): OwnChain[] {
  const chains: OwnChain[] = [];
  const either = alternatives(rule);
  if (either !== undefined) {
    const verdict = ruleChain('verdict', rule.uuid);
    // goto, not jump: whatever the outcome, no second alternative may count the packet again.
    const lines = either.map((alternative) => `${alternative} goto ${verdict}`);
    chains.push({ name: ruleChain('either', rule.uuid), lines, counted: false });
    chains.push({ name: verdict, lines: [outcome(rule, 'forward')], counted: true });
  }
  if (rule.rateLimitPacketsPerSecond !== undefined) {
    chains.push({ name: ruleChain('limit', rule.uuid), lines: limitLines(rule), counted: false });
  }
  return chains;
}

function outcome(rule: Rule, plane: Plane): string {
  if (rule.rateLimitPacketsPerSecond !== undefined) return `counter jump ${ruleChain('limit', rule.uuid)}`;
  switch (rule.action) {
    case 'continue':
      return 'counter';
    case 'reject':
      // RFC 1122, 3.2.2: a frame that was not addressed to this host's hardware is never answered.
      return plane === 'forward' ? `counter jump ${refuseChain}` : 'counter drop';
    default:
      return `counter ${rule.action}`;
  }
}

/** A packet that returns from these goes on to the next rule. */
function limitLines(rule: Rule): string[] {
  const rate = rule.rateLimitPacketsPerSecond ?? 0;
  const limit = `${rate}/second burst ${burstPackets(rate)} packets`;
  if (rule.action === 'reject') {
    const host = packetTypeNumbers.host;
    return [`limit rate ${limit} return`, `meta pkttype ${host} limit rate ${limit} jump ${refuseChain}`, 'drop'];
  }
  // `limit rate N accept` would police nothing: the excess would go on to the next rule.
  const excess = `limit rate over ${limit} drop`;
  return rule.action === 'accept' ? [excess, 'accept'] : [excess];
}

/** All of them must hold. */
function conditions(rule: Rule): string[] {
  const all = [...protocolConditions(rule)];
  if (rule.sourcePorts) all.push(sourcePortCondition(rule.sourcePorts));
  if (rule.destinationPorts) all.push(destinationPortCondition(rule.destinationPorts));
  if (rule.tcpFlags !== undefined) all.push(flagsCondition(rule.tcpFlags));
  if (rule.src) all.push(...addressConditions(rule.src, 'src'));
  if (rule.packetLengthBytes !== undefined) {
    // The header's own field (raw, see the source), not `meta length`: at ingress the frame's padding is still there.
    all.push(
      rule.dst.family === 4
        ? `@nh,16,16 ${rule.packetLengthBytes}`
        : `@nh,32,16 ${rule.packetLengthBytes - ipv6HeaderBytes}`,
    );
  }
  if (rule.packetType !== undefined) all.push(`meta pkttype ${packetTypeNumbers[rule.packetType]}`);
  if (rule.connectionState !== undefined) all.push(`ct state ${stateBits[rule.connectionState]}`);
  return all;
}

/** Numbers, because nft 1.0.6 reads some protocol names as others (mptcp as tcp). */
function protocolConditions(rule: Rule): string[] {
  const { protocol } = rule;
  if (protocol === 'mptcp') return [`meta l4proto 6 tcp option ${mptcpOptionKind} exists`];
  const number = protocolNumbers[protocol];
  if (number === null) return rule.sourcePorts || rule.destinationPorts ? [`meta l4proto @${portTransportsSet}`] : [];
  if (rule.dst.family === 6) {
    const header = extensionHeader[protocol];
    if (header !== undefined) return [`exthdr ${header} exists`];
    if (alternatives(rule) !== undefined) return [];
  }
  return [`meta l4proto ${number}`];
}

/**
 * The kernel steps over these to find the transport, so that its number is never theirs. Not over the mobility header
 * nor over AH: those are the numbers found. (`exthdr mh` finds nothing in a later fragment; a search for who names AH as
 * the next header misses it behind a second destination-options header, the order that RFC 8200, 4.1 recommends.)
 */
const extensionHeader: Partial<Record<Rule['protocol'], string>> = {
  hopopt: 'hbh',
  'ipv6-route': 'rt',
  'ipv6-opts': 'dst',
};

/**
 * Conditions of which one must hold, where one does not say it all.
 * `ah`: a later fragment shows it only in what its fragment header names, where the kernel does not look for it.
 * `ipv6-frag`: reassembled packets bear the mark instead of the header.
 */
function alternatives(rule: Rule): string[] | undefined {
  if (rule.dst.family !== 6) return undefined;
  if (rule.protocol === 'ah') return ['meta l4proto 51', 'frag frag-off != 0 frag nexthdr 51'];
  if (rule.protocol === 'ipv6-frag') return ['exthdr frag exists', `meta mark & ${fragmentMark} == ${fragmentMark}`];
  return undefined;
}

/**
 * Ports and flags are loaded with a neighbour, as three octets. Loads of one, two or four octets of the transport
 * header take a short cut through the kernel that does not ask whether the packet is a later fragment, and reads its
 * data as ports (measured: 6.18, `th dport` matched 3 of 3 fragments of a datagram); a load of three asks (since 5.17),
 * and fails. In a packet cut off inside its ports, the source port is seen from three octets on.
 */
export function sourcePortCondition({ start, end }: PortRange): string {
  // The neighbour is masked for one port, as which nft lists it, and left free by a range, which so needs no mask.
  if (start === end) return `@th,0,24 & 0xffff00 == ${hexadecimal(start * 256)}`;
  return `@th,0,24 ${hexadecimal(start * 256)}-${hexadecimal(end * 256 + 255)}`;
}

export function destinationPortCondition({ start, end }: PortRange): string {
  return `@th,8,24 & 0xffff ${start === end ? `== ${start}` : `${start}-${end}`}`;
}

/** Octet 13 (RFC 9293, 3.1), the last of three. */
function flagsCondition(flags: number): string {
  return `@th,88,24 & ${flags} == ${flags}`;
}

/**
 * As raw octets of the network header: `ip saddr` makes nft add a check of the family to every rule, which the choice
 * of the chain has made already, and the kernel pays for each expression by name when it loads it.
 */
export function addressConditions(range: AddressRange, side: Side): string[] {
  const bits = range.family === 4 ? 32 : 128;
  const offset = (range.family === 4 ? 96 : 64) + (side === 'src' ? 0 : bits);
  const prefix = prefixOfRange(range);
  if (prefix?.length === 0) return [];
  if (prefix !== undefined && prefix.length % 8 === 0) {
    return [`@nh,${offset},${prefix.length} ${hexadecimal(prefix.value >> BigInt(bits - prefix.length))}`];
  }
  return [`@nh,${offset},${bits} ${hexadecimal(range.start)}-${hexadecimal(range.end)}`];
}

function hexadecimal(value: bigint | number): string {
  return `0x${value.toString(16)}`;
}
