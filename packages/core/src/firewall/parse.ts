/**
 * Owns the way from a request's unknown fields to a trusted rule: every check that needs no database, all problems at
 * once. Never decides who may write the rule, never knows when it expires (`expires_at` and `confirm_within` are the
 * commands' fields: hand over the rule's fields only).
 */
import { type ProtocolName, protocolNames } from '@levee/contract/protocols.ts';
import type { Prefix } from '../net/prefix.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { readPrefix } from '../net/read.ts';
import { type Path, type Problem, problem } from '../problem.ts';
import { acceptsTcpFlags, familyOfProtocol, hasPorts, portProtocolNames } from './protocol-traits.ts';
import type { Rule } from './rule.ts';
import { canonicalPorts, canonicalSource, checkOneFamily, readPorts, readSource } from './traffic-fields.ts';
import {
  type CanonicalRule,
  connectionStates,
  defaultPriority,
  measurePriority,
  packetLengthBounds,
  packetTypes,
  priorityBounds,
  rateLimitBounds,
  requiredRuleFields,
  ruleActions,
  ruleFields,
  tcpFlagBits,
  tcpFlagNames,
} from './wire.ts';
import {
  type Fields,
  fieldOf,
  readBoolean,
  readDescription,
  readInteger,
  readObject,
  readTcpFlags,
  readWord,
  refuseUnknownFields,
} from './wire-values.ts';

export type { Problem } from '../problem.ts';

export interface RuleIdentity {
  readonly uuid: string;
  readonly sequence: number;
}

export type ParsedRule =
  | { readonly ok: true; readonly rule: Rule; readonly canonical: CanonicalRule }
  /** At least one; their pointers lead into what was received. */
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * `wire`: a JSON value, from anyone. A canonical rule parses to itself. Never throws. `besides`: fields of the request
 * that are not the rule's and were taken out, for the sentence that says what is allowed.
 */
export function parseRule(wire: unknown, identity: RuleIdentity, besides: readonly string[] = []): ParsedRule {
  return parseWithin(priorityBounds, wire, identity, besides);
}

/** A rule of the control plane's own rows: of a measure against an attack the priority lies beyond what anybody may give. */
export function parseStoredRule(wire: unknown, identity: RuleIdentity): ParsedRule {
  return parseWithin({ ...priorityBounds, maximum: measurePriority }, wire, identity, []);
}

type Bounds = { readonly minimum: number; readonly maximum: number };

function parseWithin(
  priorities: Bounds,
  wire: unknown,
  identity: RuleIdentity,
  besides: readonly string[],
): ParsedRule {
  const problems: Problem[] = [];
  const fields = readObject(wire, [], problems);
  if (fields === undefined) return { ok: false, problems };
  refuseUnknownFields(fields, ruleFields, [], problems, besides);
  const read = readFields(fields, priorities, problems);
  checkTogether(read, fields, problems);
  if (problems.length > 0 || read.dst === undefined || read.protocol === undefined || read.action === undefined) {
    return { ok: false, problems };
  }
  const { dst, protocol, action } = read;
  return {
    ok: true,
    rule: toRule({ ...read, dst, protocol, action }, identity),
    canonical: toCanonical({ ...read, dst, protocol, action }),
  };
}

/**
 * A change of a stored rule. Each field that `patch` gives replaces the stored one whole (`port` and `src` too); null
 * takes an optional field away (`priority` and `disabled` go back to their defaults); absent fields stay. The outcome
 * is checked as a whole, so that a problem may point at a field that only the stored rule has.
 */
export function parsePatch(
  existing: CanonicalRule,
  patch: unknown,
  identity: RuleIdentity,
  besides: readonly string[] = [],
): ParsedRule {
  const problems: Problem[] = [];
  const changes = readObject(patch, [], problems);
  if (changes === undefined) return { ok: false, problems };
  // Without a prototype, a field named __proto__ is a field like any other (and refused as unknown).
  const merged: Record<string, unknown> = Object.assign(Object.create(null), existing);
  for (const [name, value] of Object.entries(changes)) {
    const removes = value === null && ruleFields.some((field) => field === name);
    if (!removes) merged[name] = value;
    else if (isRequired(name)) problems.push(problem([name], 'required', 'cannot be removed, received null'));
    else delete merged[name];
  }
  const parsed = parseRule(merged, identity, besides);
  if (problems.length === 0) return parsed;
  return { ok: false, problems: parsed.ok ? problems : [...problems, ...parsed.problems] };
}

function isRequired(name: string): boolean {
  return requiredRuleFields.some((field) => field === name);
}

/** What could be read of each field; undefined is absent or wrong (then a problem says so). */
type ReadFields = ReturnType<typeof readFields>;
type CompleteFields = ReadFields & {
  readonly dst: NonNullable<ReadFields['dst']>;
  readonly protocol: NonNullable<ReadFields['protocol']>;
  readonly action: NonNullable<ReadFields['action']>;
};

function readFields(fields: Fields, priorities: Bounds, problems: Problem[]) {
  const read = <T>(name: (typeof ruleFields)[number], reader: (value: unknown, path: Path) => T | undefined) => {
    const value = fieldOf(fields, name);
    if (value !== undefined) return reader(value, [name]);
    if (isRequired(name)) problems.push(problem([name], 'required', requiredSentences[name] ?? 'is required'));
    return undefined;
  };
  return {
    dst: read('dst', (value, path) => readPrefix(value, path, problems)),
    protocol: read('protocol', (value, path) => readWord(value, protocolNames, path, problems)),
    action: read('action', (value, path) => readWord(value, ruleActions, path, problems)),
    priority: read('priority', (value, path) => readInteger(value, priorities, path, problems)),
    description: read('descr', (value, path) => readDescription(value, path, problems)),
    source: read('src', (value, path) => readSource(value, path, problems)),
    ports: read('port', (value, path) => readPorts(value, path, problems)),
    disabled: read('disabled', (value, path) => readBoolean(value, path, problems)),
    tcpFlags: read('tcpflags', (value, path) => readTcpFlags(value, path, problems)),
    // 0 is no limit, the same as none.
    rateLimit: read('ratelimit', (value, path) => readInteger(value, rateLimitBounds, path, problems)) || undefined,
    packetLength: read('packetlength', (value, path) => readInteger(value, packetLengthBounds, path, problems)),
    packetType: read('packettype', (value, path) => readWord(value, packetTypes, path, problems)),
    connectionState: read('statetype', (value, path) => readWord(value, connectionStates, path, problems)),
  };
}

const requiredSentences: Readonly<Record<string, string>> = {
  dst: 'is required: the address or subnet that the rule is for, such as 203.0.113.7 or 2001:db8::/48',
  protocol: 'is required: any, tcp, udp, icmp, or another of the protocol words',
  action: `is required: one of ${ruleActions.join(', ')}`,
};

/** Fields that do not go together. `fields` tells a wrong field (already reported) from an absent one. */
function checkTogether(read: ReadFields, fields: Fields, problems: Problem[]): void {
  const { dst, protocol, source } = read;
  checkOneFamily(dst, source, problems);
  if (protocol === undefined) return;
  const family = familyOfProtocol(protocol);
  if (dst !== undefined && family !== undefined && family !== dst.family) {
    problems.push(problem(['protocol'], 'protocol_family', familySentence(protocol, family, dst)));
  }
  if (fieldOf(fields, 'port') !== undefined && !hasPorts(protocol)) {
    const sentence = `is allowed only with ${portProtocolNames.join(', ')}, received the protocol ${protocol}`;
    problems.push(problem(['port'], 'ports_without_transport', sentence));
  }
  // Clients that always send all fields send an empty list where no flag is meant.
  const flags = fieldOf(fields, 'tcpflags');
  const namesFlags = flags !== undefined && !(Array.isArray(flags) && flags.length === 0);
  if (namesFlags && !acceptsTcpFlags(protocol)) {
    const sentence = `is allowed only with the protocol tcp, received the protocol ${protocol}`;
    problems.push(problem(['tcpflags'], 'tcpflags_without_tcp', sentence));
  }
}

function familySentence(protocol: ProtocolName, family: 4 | 6, dst: Prefix): string {
  const instead = protocol === 'ip' ? 'any' : protocol === 'icmp' ? 'ipv6-icmp' : 'icmp';
  return `${protocol} needs an IPv${family} dst, received ${formatPrefix(dst)}; for IPv${dst.family} use ${instead}`;
}

function toRule(read: CompleteFields, identity: RuleIdentity): Rule {
  const { ports } = read;
  return {
    uuid: identity.uuid,
    sequence: identity.sequence,
    priority: read.priority ?? defaultPriority,
    dst: read.dst,
    protocol: read.protocol,
    action: read.action,
    disabled: read.disabled ?? false,
    ...(read.source && { src: read.source.range }),
    ...(ports?.source && { sourcePorts: ports.source.range }),
    ...(ports?.destination && { destinationPorts: ports.destination.range }),
    ...(read.tcpFlags !== undefined && { tcpFlags: read.tcpFlags }),
    ...(read.rateLimit !== undefined && { rateLimitPacketsPerSecond: read.rateLimit }),
    ...(read.packetLength !== undefined && { packetLengthBytes: read.packetLength }),
    ...(read.packetType && { packetType: read.packetType }),
    ...(read.connectionState && { connectionState: read.connectionState }),
  };
}

/** Keys in the order of `ruleFields`, so that equal rules have equal JSON text. */
function toCanonical(read: CompleteFields): CanonicalRule {
  const { source, ports, tcpFlags } = read;
  return {
    dst: formatPrefix(read.dst),
    protocol: read.protocol,
    action: read.action,
    priority: read.priority ?? defaultPriority,
    ...(read.description !== undefined && { descr: read.description }),
    ...(source && { src: canonicalSource(source) }),
    ...(ports && { port: canonicalPorts(ports) }),
    disabled: read.disabled ?? false,
    ...(tcpFlags !== undefined && { tcpflags: tcpFlagNames.filter((name) => (tcpFlags & tcpFlagBits[name]) !== 0) }),
    ...(read.rateLimit !== undefined && { ratelimit: read.rateLimit }),
    ...(read.packetLength !== undefined && { packetlength: read.packetLength }),
    ...(read.packetType && { packettype: read.packetType }),
    ...(read.connectionState && { statetype: read.connectionState }),
  };
}
