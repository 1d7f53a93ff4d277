/**
 * Owns the way from a request's unknown fields to a trusted filter: every check that needs no database, all problems at
 * once. Never decides who may write the filter, never knows when it expires (`expires_at` is the command's field: hand
 * over the filter's fields only).
 */
import { canonicalPorts, canonicalSource, checkOneFamily, readPorts, readSource } from '../firewall/traffic-fields.ts';
import { defaultPriority, priorityBounds } from '../firewall/wire.ts';
import { type Fields, fieldOf, readInteger, readObject, refuseUnknownFields } from '../firewall/wire-values.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { readPrefix } from '../net/read.ts';
import { type Path, type Problem, problem, showReceived } from '../problem.ts';
import { filterKind, filterKindNamed, filterKinds } from './catalogue.ts';
import { type CanonicalFilter, type Filter, filterFields, filterRateBounds, requiredFilterFields } from './filter.ts';
import type { FilterKind } from './filter-kind.ts';

export interface FilterIdentity {
  readonly uuid: string;
  readonly sequence: number;
}

export type ParsedFilter =
  | { readonly ok: true; readonly filter: Filter; readonly canonical: CanonicalFilter }
  /** At least one; their pointers lead into what was received. */
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * `wire`: a JSON value, from anyone. A canonical filter parses to itself. Never throws. `besides`: fields of the request
 * that are not the filter's and were taken out, for the sentence that says what is allowed.
 */
export function parseFilter(wire: unknown, identity: FilterIdentity, besides: readonly string[] = []): ParsedFilter {
  const problems: Problem[] = [];
  const fields = readObject(wire, [], problems);
  if (fields === undefined) return { ok: false, problems };
  refuseUnknownFields(fields, filterFields, [], problems, besides);
  const read = readFields(fields, problems);
  checkAgainstKind(read, fields, problems);
  checkOneFamily(read.dst, read.source, problems);
  const { dst, kind } = read;
  if (problems.length > 0 || dst === undefined || kind === undefined) return { ok: false, problems };
  const complete = { ...read, dst, kind };
  return { ok: true, filter: toFilter(complete, identity), canonical: toCanonical(complete) };
}

/** What could be read of each field; undefined is absent or wrong (then a problem says so). */
type ReadFields = ReturnType<typeof readFields>;
type CompleteFields = ReadFields & {
  readonly dst: NonNullable<ReadFields['dst']>;
  readonly kind: FilterKind;
};

function readFields(fields: Fields, problems: Problem[]) {
  const read = <T>(name: (typeof filterFields)[number], reader: (value: unknown, path: Path) => T | undefined) => {
    const value = fieldOf(fields, name);
    if (value !== undefined) return reader(value, [name]);
    if (isRequired(name)) problems.push(problem([name], 'required', requiredSentences[name]));
    return undefined;
  };
  return {
    dst: read('dst', (value, path) => readPrefix(value, path, problems)),
    kind: read('filter', (value, path) => readKind(value, path, problems)),
    priority: read('priority', (value, path) => readInteger(value, priorityBounds, path, problems)),
    source: read('src', (value, path) => readSource(value, path, problems)),
    ports: read('port', (value, path) => readPorts(value, path, problems)),
    rateLimit: read('ratelimit', (value, path) => readInteger(value, filterRateBounds, path, problems)),
  };
}

type RequiredField = (typeof requiredFilterFields)[number];

function isRequired(name: string): name is RequiredField {
  return requiredFilterFields.some((field) => field === name);
}

const whereKindsStand = 'GET /filter/kind describes the kinds';

const requiredSentences: Readonly<Record<RequiredField, string>> = {
  dst: 'is required: the address or subnet that the filter protects, such as 203.0.113.7 or 2001:db8::/48',
  filter: `is required: the id of a kind of filter; ${whereKindsStand}`,
};

function readKind(value: unknown, path: Path, problems: Problem[]): FilterKind | undefined {
  const kind = typeof value === 'number' ? filterKind(value) : undefined;
  if (kind !== undefined) return kind;
  const meant = typeof value === 'string' ? kindMeant(value) : undefined;
  const hint = meant === undefined ? whereKindsStand : `did you mean ${meant.id} (${meant.name})?`;
  const ids = filterKinds.map(({ id }) => id).join(', ');
  const code = typeof value === 'number' ? 'unknown_kind' : 'wrong_type';
  problems.push(
    problem(path, code, `must be the id of a kind, one of ${ids}, received ${showReceived(value)}; ${hint}`),
  );
  return undefined;
}

/** A kind's name, or its id in quotes. */
function kindMeant(text: string): FilterKind | undefined {
  const word = text.length < 64 ? text.trim().toLowerCase() : '';
  return filterKindNamed(word) ?? (/^\d{1,5}$/.test(word) ? filterKind(Number(word)) : undefined);
}

/** What the kind cannot do. `fields` tells a wrong field (already reported) from an absent one. */
function checkAgainstKind(read: ReadFields, fields: Fields, problems: Problem[]): void {
  const { dst, kind, ports } = read;
  if (kind === undefined) return;
  const named = `${kind.name} (${kind.id})`;
  if (dst !== undefined && !kind.families.includes(dst.family)) {
    const families = kind.families.map((family) => `IPv${family}`).join(' and ');
    const sentence = `${formatPrefix(dst)} is IPv${dst.family}; ${named} protects ${families} only`;
    problems.push(problem(['dst'], 'family_not_supported', sentence));
  } else if (dst !== undefined) {
    const shortest = kind.shortestPrefix?.[dst.family] ?? 0;
    if (dst.length < shortest) {
      const sentence = `${formatPrefix(dst)} holds too many addresses for ${named}; it takes a /${shortest} or longer`;
      problems.push(problem(['dst'], 'prefix_too_short', sentence));
    }
  }
  const port = fieldOf(fields, 'port');
  if (port !== undefined && kind.destinationPorts === 'none') {
    const sentence = `is not used by ${named}: ${kind.transports.join(' and ')} has no ports; leave it out`;
    problems.push(problem(['port'], 'kind_without_ports', sentence));
  }
  // A port that could not be read has been reported, and may have had what is missed here.
  const missed = port === undefined || (ports !== undefined && fieldOf(port as Fields, 'dst') === undefined);
  if (kind.destinationPorts === 'required' && missed) {
    const sentence = `is required by ${named}, which has no port of its own: the destination's ports to look at`;
    problems.push(problem(['port', 'dst'], 'required', sentence));
  }
}

function toFilter(read: CompleteFields, identity: FilterIdentity): Filter {
  const { ports } = read;
  return {
    uuid: identity.uuid,
    sequence: identity.sequence,
    priority: read.priority ?? defaultPriority,
    dst: read.dst,
    kind: read.kind,
    ...(read.source && { src: read.source.range }),
    ...(ports?.source && { sourcePorts: ports.source.range }),
    ...(ports?.destination && { destinationPorts: ports.destination.range }),
    ...(read.rateLimit !== undefined && { rateLimitMegabitsPerSecond: read.rateLimit }),
  };
}

/** Keys in the order of `filterFields`, so that equal filters have equal JSON text. */
function toCanonical(read: CompleteFields): CanonicalFilter {
  const { source, ports, rateLimit } = read;
  return {
    dst: formatPrefix(read.dst),
    filter: read.kind.id,
    priority: read.priority ?? defaultPriority,
    ...(source && { src: canonicalSource(source) }),
    ...(ports && { port: canonicalPorts(ports) }),
    ...(rateLimit !== undefined && { ratelimit: rateLimit }),
  };
}
