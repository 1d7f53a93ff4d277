/**
 * Owns the answer to "what would happen to this packet": the request's unknown fields to a packet, the evaluation to
 * the wire. Never finds rules and filters: the caller hands over those that routers enforce for the destination.
 *
 * What the request leaves out is not known, and a rule that needs it is passed with a code ending in `_unknown` and
 * the words "not given". Two facts have a default: `packettype` is host (routers forward nothing else) and a packet is
 * no fragment. `any` and `ip` as protocol leave the protocol open. `tcp` is TCP without option 30, `mptcp` with it. For
 * IPv6 an extension header's word says that the header is there and leaves open what follows it (behind `ah` and
 * `mobility-header` a router does not look).
 * Rate limits and filters' meters are taken as not exceeded; the sentence says what happens beyond. To a filter the source
 * is unknown and the filter has settled: only `statetype` established says that the router saw the flow in both directions.
 */
import { type ProtocolName, protocolNames, protocolNumbers } from '@levee/contract/protocols.ts';
import { type Entry, isFilter } from '../filter/entry.ts';
import { hasSynProxy } from '../filter/filter-kind.ts';
import { renderFilterStep } from '../filter/filter-trail-text.ts';
import { isOpening, tcpFlag } from '../filter/tcp-segment.ts';
import { formatAddress } from '../net/address.ts';
import { prefixContainsAddress } from '../net/prefix.ts';
import { readAddress } from '../net/read.ts';
import { type Path, type Problem, problem, showReceived } from '../problem.ts';
import { decidedByDefault, entryOf, evaluate, type TrailEntry, type Verdict } from './evaluate.ts';
import type { Packet } from './packet.ts';
import { familyOfProtocol, hasPorts, isSkippedHeader, mptcpOptionKind, portProtocolNames } from './protocol-traits.ts';
import type { Rule } from './rule.ts';
import { renderEffect, renderMismatch } from './trail-text.ts';
import { connectionStates, packetLengthBounds, packetTypes, portBounds } from './wire.ts';
import {
  type Fields,
  fieldOf,
  readInteger,
  readObject,
  readTcpFlags,
  readWord,
  refuseUnknownFields,
} from './wire-values.ts';

const requestFields = [
  'dst',
  'src',
  'protocol',
  'port',
  'packetlength',
  'tcpflags',
  'icmp',
  'packettype',
  'statetype',
  'payload',
] as const;

export type ParsedPacket =
  | { readonly ok: true; readonly packet: Packet }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** A JSON value, from anyone. Never throws. */
export function parsePacket(wire: unknown): ParsedPacket {
  const problems: Problem[] = [];
  const fields = readObject(wire, [], problems);
  if (fields === undefined) return { ok: false, problems };
  refuseUnknownFields(fields, requestFields, [], problems);
  const optional = <T>(name: (typeof requestFields)[number], reader: (value: unknown, path: Path) => T | undefined) => {
    const value = fieldOf(fields, name);
    return value === undefined ? undefined : reader(value, [name]);
  };
  const required = <T>(name: 'dst' | 'src' | 'protocol', reader: (value: unknown, path: Path) => T | undefined) => {
    if (fieldOf(fields, name) === undefined) problems.push(problem([name], 'required', 'is required'));
    return optional(name, reader);
  };
  const destination = required('dst', (value, path) => readAddress(value, path, problems));
  const source = required('src', (value, path) => readAddress(value, path, problems));
  const protocol = required('protocol', (value, path) => readWord(value, protocolNames, path, problems));
  const ports = optional('port', (value, path) => readPorts(value, path, problems));
  const length = optional('packetlength', (value, path) => readInteger(value, packetLengthBounds, path, problems));
  const flags = optional('tcpflags', (value, path) =>
    // A packet may well have no flag set; a rule may not ask for none.
    Array.isArray(value) && value.length === 0 ? 0 : readTcpFlags(value, path, problems),
  );
  const icmp = optional('icmp', (value, path) => readIcmp(value, path, problems));
  const packetType = optional('packettype', (value, path) => readWord(value, packetTypes, path, problems));
  const state = optional('statetype', (value, path) => readWord(value, connectionStates, path, problems));
  const payload = optional('payload', (value, path) => readBase64(value, path, problems));
  checkTogether(fields, destination, source, protocol, problems);
  if (problems.length > 0 || destination === undefined || source === undefined || protocol === undefined) {
    return { ok: false, problems };
  }
  return {
    ok: true,
    packet: {
      family: destination.family,
      source: source.value,
      destination: destination.value,
      ...protocolFacts(protocol, destination.family),
      ...ports,
      ...(flags !== undefined && { tcpFlags: flags }),
      ...icmp,
      ...(length !== undefined && { totalLengthBytes: length }),
      packetType: packetType ?? 'host',
      ...(state !== undefined && { connectionState: state }),
      ...(payload !== undefined && { payload }),
    },
  };
}

function readPorts(value: unknown, path: Path, problems: Problem[]) {
  const fields = readObject(value, path, problems);
  if (fields === undefined) return undefined;
  refuseUnknownFields(fields, ['src', 'dst'], path, problems);
  const read = (name: 'src' | 'dst') => {
    const port = fieldOf(fields, name);
    return port === undefined ? undefined : readInteger(port, portBounds, [...path, name], problems);
  };
  const [source, destination] = [read('src'), read('dst')];
  return {
    ...(source !== undefined && { sourcePort: source }),
    ...(destination !== undefined && { destinationPort: destination }),
  };
}

const octetBounds = { minimum: 0, maximum: 255 } as const;

function readIcmp(value: unknown, path: Path, problems: Problem[]) {
  const fields = readObject(value, path, problems);
  if (fields === undefined) return undefined;
  refuseUnknownFields(fields, ['type', 'code'], path, problems);
  const read = (name: 'type' | 'code') => {
    const octet = fieldOf(fields, name);
    return octet === undefined ? undefined : readInteger(octet, octetBounds, [...path, name], problems);
  };
  const [type, code] = [read('type'), read('code')];
  return { ...(type !== undefined && { icmpType: type }), ...(code !== undefined && { icmpCode: code }) };
}

/** RFC 4648, 4, with padding. */
function readBase64(value: unknown, path: Path, problems: Problem[]): Uint8Array | undefined {
  const wellFormed = typeof value === 'string' && value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(value);
  if (wellFormed) return Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
  const code = typeof value === 'string' ? 'not_allowed' : 'wrong_type';
  problems.push(problem(path, code, `must be base64 with padding (RFC 4648), received ${showReceived(value)}`));
  return undefined;
}

function checkTogether(
  fields: Fields,
  destination: { readonly family: 4 | 6; readonly value: bigint } | undefined,
  source: { readonly family: 4 | 6; readonly value: bigint } | undefined,
  protocol: ProtocolName | undefined,
  problems: Problem[],
): void {
  if (destination && source && destination.family !== source.family) {
    const sentence = `${formatAddress(source)} is IPv${source.family} and dst ${formatAddress(destination)} is IPv${destination.family}; both must be of one family`;
    problems.push(problem(['src'], 'mixed_families', sentence));
  }
  if (protocol === undefined) return;
  const family = familyOfProtocol(protocol);
  if (destination && family !== undefined && family !== destination.family) {
    const sentence = `${protocol} needs an IPv${family} dst, received ${formatAddress(destination)}`;
    problems.push(problem(['protocol'], 'protocol_family', sentence));
  }
  // Of a packet, unlike of a rule, ports and flags are known for mptcp too.
  if (fieldOf(fields, 'port') !== undefined && !hasPorts(protocol) && protocol !== 'mptcp') {
    const sentence = `is allowed only with ${[...portProtocolNames, 'mptcp'].join(', ')}, received the protocol ${protocol}`;
    problems.push(problem(['port'], 'ports_without_transport', sentence));
  }
  if (fieldOf(fields, 'tcpflags') !== undefined && protocol !== 'tcp' && protocol !== 'mptcp') {
    const sentence = `is allowed only with the protocols tcp and mptcp, received the protocol ${protocol}`;
    problems.push(problem(['tcpflags'], 'tcpflags_without_tcp', sentence));
  }
  if (fieldOf(fields, 'icmp') !== undefined && protocol !== 'icmp' && protocol !== 'ipv6-icmp') {
    const sentence = `is allowed only with the protocols icmp and ipv6-icmp, received the protocol ${protocol}`;
    problems.push(problem(['icmp'], 'icmp_without_icmp', sentence));
  }
}

function protocolFacts(
  protocol: ProtocolName,
  family: 4 | 6,
): Pick<Packet, 'upperProtocol' | 'extensionHeaders' | 'tcpOptionKinds'> {
  if (protocol === 'mptcp') return { upperProtocol: 6, extensionHeaders: [], tcpOptionKinds: [mptcpOptionKind] };
  const number = protocolNumbers[protocol];
  if (number === null) return { extensionHeaders: [] };
  if (family === 6 && isSkippedHeader(protocol)) return { extensionHeaders: [number] };
  return {
    upperProtocol: number,
    extensionHeaders: [],
    ...(protocol === 'tcp' && { tcpOptionKinds: [] }),
  };
}

/** One rule or filter on the way, on the wire. Of one that the caller may not read, only that it was passed. */
export type ExplainedEntry =
  | {
      readonly uuid: string;
      readonly priority: number;
      readonly action: Rule['action'];
      /** It is a measure against this attack. */
      readonly attack_uuid?: string;
      readonly matched: boolean;
      /** A mismatch or an effect, for programs. */
      readonly code: string;
      readonly message: string;
    }
  | {
      readonly uuid: string;
      readonly priority: number;
      /** The kind's id and name. */
      readonly filter: number;
      readonly kind: string;
      readonly matched: boolean;
      readonly code: string;
      readonly message: string;
    }
  | { readonly matched: boolean; readonly code: 'other'; readonly message: string };

export interface Explanation {
  readonly verdict: Verdict;
  /** A uuid, `default`, or `other`: a rule or filter that the caller may not read. */
  readonly decided_by: string;
  readonly trail: readonly ExplainedEntry[];
}

/**
 * `entries`: those in force; the ones whose destination does not cover the packet's are left out of the trail.
 * `mayRead`: whether the caller may see what they are; absent: all.
 */
export function explain(
  entries: readonly Entry[],
  packet: Packet,
  mayRead: (entry: Entry) => boolean = () => true,
): Explanation {
  const destination = { family: packet.family, value: packet.destination };
  const covering = entries.filter((entry) => prefixContainsAddress(entry.dst, destination));
  const { verdict, decidedBy, trail } = evaluate(covering, packet);
  const last = trail.at(-1);
  const past = filterPassedBy(covering, packet, verdict);
  const hidden = decidedBy !== decidedByDefault && last !== undefined && !mayRead(entryOf(last));
  return {
    verdict,
    decided_by: hidden ? 'other' : decidedBy,
    trail: trail.map((step): ExplainedEntry => {
      if (mayRead(entryOf(step))) {
        const explained = explainStep(step, packet);
        return step === last && past !== undefined
          ? { ...explained, message: `${explained.message}; ${handshakeWarning(past, mayRead)}` }
          : explained;
      }
      return { matched: step.matched, code: 'other', message: hiddenName(step) };
    }),
  };
}

/** What another has there is not told; that the service acts against an attack is. */
function hiddenName(step: TrailEntry): string {
  if ('filter' in step) return 'a filter that is not yours to read';
  const { attackDst } = step.rule;
  return attackDst === undefined ? 'a rule that is not yours to read' : `a measure against an attack on ${attackDst}`;
}

/** The filter to which a client's ACK goes when a rule has let its SYN past the same filter. */
function filterPassedBy(entries: readonly Entry[], packet: Packet, verdict: Verdict): Entry | undefined {
  const { tcpFlags } = packet;
  if (verdict !== 'accept' || tcpFlags === undefined || !isOpening(tcpFlags)) return undefined;
  if (!entries.some((entry) => isFilter(entry) && hasSynProxy(entry.kind))) return undefined;
  const { totalLengthBytes: _, ...header } = packet;
  const answer = { ...header, tcpFlags: tcpFlag.ack, connectionState: 'new', payload: new Uint8Array() } as const;
  const next = evaluate(entries, answer);
  const deciding = next.trail.at(-1);
  return next.verdict === 'challenge' && deciding ? entryOf(deciding) : undefined;
}

function handshakeWarning(filter: Entry, mayRead: (entry: Entry) => boolean): string {
  const name = mayRead(filter) ? `filter ${filter.uuid}` : 'a filter that is not yours to read';
  return `the ACK that ends its handshake goes to ${name}, which did not answer the SYN: no connection comes about`;
}

function explainStep(step: TrailEntry, packet: Packet): ExplainedEntry {
  const { matched } = step;
  const code = matched ? step.effect : step.mismatch;
  if ('filter' in step) {
    const { uuid, priority, kind } = step.filter;
    return { uuid, priority, filter: kind.id, kind: kind.name, matched, code, message: renderFilterStep(step, packet) };
  }
  const { uuid, priority, action, attackUuid } = step.rule;
  const message = step.matched
    ? renderEffect(step.effect, step.rule)
    : renderMismatch(step.mismatch, step.rule, packet);
  const rule = { uuid, priority, action, matched, code, message };
  if (attackUuid === undefined) return rule;
  return { ...rule, attack_uuid: attackUuid, message: `${message}; a measure against the attack ${attackUuid}` };
}
