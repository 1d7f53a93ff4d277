/**
 * Owns the way from a request's unknown fields to a canonical tunnel: every check that needs no database, all problems
 * at once. Never asks who holds the subnets nor which locations there are. Knows nothing of `expires_at`, which is the
 * command's: hand over the tunnel's fields only.
 */
import { parseSubnets } from '../account/subnets.ts';
import { formatAddress } from '../net/address.ts';
import { type Address, type Prefix, prefixContainsAddress } from '../net/prefix.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { readAddress } from '../net/read.ts';
import { specialPurposeOf } from '../net/special-purpose.ts';
import { type Problem, pointer, problem, quote, showReceived } from '../problem.ts';
import {
  type CanonicalTunnel,
  changeableTunnelFields,
  type TunnelType,
  tunnelLocationMaximum,
  tunnelSubnetBounds,
  tunnelTypes,
} from './tunnel.ts';

export type ParsedTunnel =
  | { readonly ok: true; readonly canonical: CanonicalTunnel }
  /** At least one; their pointers lead into what was received. */
  | { readonly ok: false; readonly problems: readonly Problem[] };

type Fields = Readonly<Record<string, unknown>>;

/** `fields`: JSON values, from anyone; unknown names are the schema's to refuse. Never throws. */
export function parseTunnel(fields: Fields): ParsedTunnel {
  const problems: Problem[] = [];
  const ips = readIps(fields, problems);
  const endpoint = readEndpoint(fields.endpoint, problems);
  const type = readType(fields.type, problems);
  const keyed = readKeyed(fields.keyed, type, problems);
  const locations = readLocations(fields.locations, problems);
  checkOutside(ips, endpoint, problems);
  if (problems.length > 0 || ips === undefined || endpoint === undefined || type === undefined) {
    return { ok: false, problems };
  }
  const canonical: CanonicalTunnel = {
    ips: ips.map(formatPrefix),
    endpoint: formatAddress(endpoint),
    type,
    ...(keyed === false && { keyed }),
    ...(locations !== undefined && { locations }),
  };
  return { ok: true, canonical };
}

/**
 * A change of a stored tunnel: what `patch` gives replaces the stored field, null takes `locations` away, absent fields
 * stay. Names that cannot be changed are the schema's to refuse.
 */
export function parseTunnelChange(existing: CanonicalTunnel, patch: Fields): ParsedTunnel {
  const merged: Record<string, unknown> = { ...existing };
  for (const name of changeableTunnelFields) {
    if (Object.hasOwn(patch, name)) merged[name] = patch[name];
  }
  if (merged.locations === null) delete merged.locations;
  return parseTunnel(merged);
}

/** What is wrong with a change by itself, whatever is stored; empty when nothing is. */
export function judgeTunnelChange(patch: Fields): readonly Problem[] {
  const problems: Problem[] = [];
  const ips = patch.ips === undefined ? undefined : readIps(patch, problems);
  const endpoint = patch.endpoint === undefined ? undefined : readEndpoint(patch.endpoint, problems);
  if (patch.locations !== null) readLocations(patch.locations, problems);
  checkOutside(ips, endpoint, problems);
  return problems;
}

/** A tunnel whose own packets go into it carries nothing. */
function checkOutside(ips: readonly Prefix[] | undefined, endpoint: Address | undefined, problems: Problem[]): void {
  if (ips === undefined || endpoint === undefined) return;
  for (const [index, prefix] of ips.entries()) {
    if (!prefixContainsAddress(prefix, endpoint)) continue;
    const sentence =
      `${formatAddress(endpoint)} lies inside ${formatPrefix(prefix)} at ${pointer(['ips', index])}: the tunnel's own ` +
      'packets would be routed into it; it must be an address outside ips';
    problems.push(problem(['endpoint'], 'inside_ips', sentence));
  }
}

function readIps(fields: Fields, problems: Problem[]): readonly Prefix[] | undefined {
  if (fields.ips === undefined) {
    problems.push(problem(['ips'], 'required', 'is required'));
    return undefined;
  }
  const parsed = parseSubnets(fields.ips, ['ips'], tunnelSubnetBounds);
  if (parsed.ok) return parsed.subnets;
  problems.push(...parsed.problems);
  return undefined;
}

function readEndpoint(value: unknown, problems: Problem[]): Address | undefined {
  if (value === undefined) {
    problems.push(problem(['endpoint'], 'required', 'is required'));
    return undefined;
  }
  const address = readAddress(value, ['endpoint'], problems);
  if (address === undefined) return undefined;
  const special = specialPurposeOf(address);
  if (special === undefined) return address;
  const sentence = `${formatAddress(address)} is ${special}; it must be a public unicast address that the routers reach`;
  problems.push(problem(['endpoint'], 'not_public', sentence));
  return undefined;
}

function readType(value: unknown, problems: Problem[]): TunnelType | undefined {
  if (value === undefined) {
    problems.push(problem(['type'], 'required', 'is required'));
    return undefined;
  }
  const word = typeof value === 'string' && value.length < 16 ? value.toLowerCase() : undefined;
  const type = tunnelTypes.find((each) => each.toLowerCase() === word);
  if (type !== undefined) return type;
  const code = typeof value === 'string' ? 'not_allowed' : 'wrong_type';
  problems.push(problem(['type'], code, `must be one of ${tunnelTypes.join(', ')}, received ${showReceived(value)}`));
  return undefined;
}

function readKeyed(value: unknown, type: TunnelType | undefined, problems: Problem[]): boolean | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'boolean') {
    problems.push(problem(['keyed'], 'wrong_type', `must be true or false, received ${showReceived(value)}`));
  } else if (type === 'Geneve' && !value) {
    const sentence = 'false is for GRE alone, received with type Geneve, which always carries its VNI; leave it out';
    problems.push(problem(['keyed'], 'not_allowed', sentence));
  } else {
    return value;
  }
  return undefined;
}

/** None restrict nothing, as though the list were absent. */
function readLocations(value: unknown, problems: Problem[]): readonly string[] | undefined {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return undefined;
  const allowed = `must be an array of up to ${tunnelLocationMaximum} names of locations`;
  if (!Array.isArray(value) || value.length > tunnelLocationMaximum) {
    const code = Array.isArray(value) ? 'out_of_range' : 'wrong_type';
    problems.push(problem(['locations'], code, `${allowed}, received ${showReceived(value)}`));
    return undefined;
  }
  const names: string[] = [];
  for (const [index, name] of value.entries()) {
    const at = ['locations', index];
    if (typeof name !== 'string' || name === '' || name.length > 64) {
      problems.push(problem(at, 'wrong_type', `must be the name of a location, received ${showReceived(name)}`));
    } else if (names.includes(name)) {
      problems.push(problem(at, 'duplicate', `${quote(name)} is listed already`));
    } else {
      names.push(name);
    }
  }
  return names;
}
