/**
 * Owns the names under which addresses stand in the reverse DNS, and what a reverse zone covers: in-addr.arpa
 * (RFC 1035, 3.5), ip6.arpa (RFC 3596, 2.5) and classless zones (RFC 2317). Names are lower case, without the final
 * dot. Knows no records and no servers.
 */
import { type Address, type AddressRange, familyBits, prefixOf } from '../net/prefix.ts';
import { parsePrefix } from '../net/prefix-text.ts';
import { rangeContainsAddress, rangeOfPrefix } from '../net/range.ts';
import { quote } from '../problem.ts';

const ipv4Root = 'in-addr.arpa';
const ipv6Root = 'ip6.arpa';

export interface ReverseZone {
  readonly name: string;
  readonly range: AddressRange;
  /** One below a /24 (RFC 2317): its names are a last octet and the zone's own. */
  readonly classless: boolean;
}

export type ReverseZoneResult =
  | { readonly ok: true; readonly zone: ReverseZone }
  /** `sentence` says what was received and what is allowed. */
  | { readonly ok: false; readonly code: 'not_a_reverse_zone'; readonly sentence: string };

/** The name whose PTR record a resolver asks for: `7.113.0.203.in-addr.arpa`. */
export function reverseName(address: Address): string {
  return address.family === 4
    ? `${octetsOf(address.value).reverse().join('.')}.${ipv4Root}`
    : `${nibblesOf(address.value).reverse().join('.')}.${ipv6Root}`;
}

/** The inverse; undefined when the name is none of a whole address. */
export function addressOfReverseName(name: string): Address | undefined {
  const zone = parseReverseZone(name);
  if (!zone.ok || zone.zone.range.start !== zone.zone.range.end || zone.zone.classless) return undefined;
  return { family: zone.zone.range.family, value: zone.zone.range.start };
}

/** The name in the zone that carries the address' PTR record; the zone must cover the address. */
export function ownerName(zone: ReverseZone, address: Address): string {
  return zone.classless ? `${address.value & 0xffn}.${zone.name}` : reverseName(address);
}

/** The address whose PTR record the name carries in the zone; undefined when there is none. */
export function addressOfOwner(zone: ReverseZone, name: string): Address | undefined {
  if (!zone.classless) {
    const address = addressOfReverseName(name);
    return address !== undefined && rangeContainsAddress(zone.range, address) ? address : undefined;
  }
  if (!name.toLowerCase().endsWith(`.${zone.name}`)) return undefined;
  const octet = readOctet(name.slice(0, -zone.name.length - 1));
  if (octet === undefined) return undefined;
  const address: Address = { family: 4, value: (zone.range.start & ~0xffn) | BigInt(octet) };
  return rangeContainsAddress(zone.range, address) ? address : undefined;
}

/**
 * Reads the name of a reverse zone. Classless forms: `128/25.2.0.192.in-addr.arpa` (first octet and prefix length) and
 * `128-255.2.0.192.in-addr.arpa` (first and last octet). With a dash the second number is always the last octet: read
 * as a length too, `0-31` would be two zones.
 */
export function parseReverseZone(text: string): ReverseZoneResult {
  const name = (text.endsWith('.') ? text.slice(0, -1) : text).toLowerCase();
  const labels = name.split('.', 40);
  const root = labels.slice(-2).join('.');
  const below = labels.slice(0, -2);
  const range = root === ipv4Root ? ipv4Range(below) : root === ipv6Root ? ipv6Range(below) : undefined;
  if (range !== undefined) return { ok: true, zone: { name, range, classless: false } };
  const classless = root === ipv4Root && below.length === 4 ? classlessRange(below) : undefined;
  if (classless !== undefined) return { ok: true, zone: { name, range: classless, classless: true } };
  return { ok: false, code: 'not_a_reverse_zone', sentence: notAZone(text) };
}

/** For names that the program itself stored: one that is no zone is a bug. */
export function reverseZoneFromTrusted(name: string): ReverseZone {
  const read = parseReverseZone(name);
  if (!read.ok) throw new Error(read.sentence);
  return read.zone;
}

/** The zone for exactly this prefix, where the reverse DNS has one. */
export function zoneNameOfPrefix(prefix: AddressRange & { readonly length: number }): string | undefined {
  const { family, start, length } = prefix;
  const name = reverseName({ family, value: start });
  const step = family === 4 ? 8 : 4;
  if (length > 0 && length % step === 0) {
    return name
      .split('.')
      .slice((familyBits(family) - length) / step)
      .join('.');
  }
  if (family === 6 || length <= 24) return undefined;
  const [last, ...rest] = name.split('.');
  return `${last}/${length}.${rest.join('.')}`;
}

function octetsOf(value: bigint): number[] {
  return [24n, 16n, 8n, 0n].map((shift) => Number((value >> shift) & 0xffn));
}

function nibblesOf(value: bigint): string[] {
  return [...value.toString(16).padStart(32, '0')];
}

/** Without leading zeros: `07` is another name than `7`. */
function readOctet(text: string): number | undefined {
  if (!/^(0|[1-9][0-9]{0,2})$/.test(text)) return undefined;
  const octet = Number(text);
  return octet <= 255 ? octet : undefined;
}

function ipv4Range(labels: readonly string[]): AddressRange | undefined {
  if (labels.length < 1 || labels.length > 4) return undefined;
  let value = 0n;
  for (const label of labels.toReversed()) {
    const octet = readOctet(label);
    if (octet === undefined) return undefined;
    value = (value << 8n) | BigInt(octet);
  }
  return rangeOf(4, value, labels.length * 8);
}

function ipv6Range(labels: readonly string[]): AddressRange | undefined {
  if (labels.length < 1 || labels.length > 32 || !labels.every((label) => /^[0-9a-f]$/.test(label))) return undefined;
  return rangeOf(6, BigInt(`0x${labels.toReversed().join('')}`), labels.length * 4);
}

function rangeOf(family: 4 | 6, leading: bigint, length: number): AddressRange {
  return rangeOfPrefix(prefixOf({ family, value: leading << BigInt(familyBits(family) - length) }, length));
}

/** `labels`: the classless one and three octets. */
function classlessRange(labels: readonly string[]): AddressRange | undefined {
  const [own = '', ...octets] = labels;
  const parent = ipv4Range(octets);
  const match = /^(\d{1,3})([/-])(\d{1,3})$/.exec(own);
  const first = readOctet(match?.[1] ?? '');
  const second = readOctet(match?.[3] ?? '');
  if (parent === undefined || first === undefined || second === undefined) return undefined;
  if (match?.[2] === '-') {
    if (second <= first) return undefined;
    return { family: 4, start: parent.start | BigInt(first), end: parent.start | BigInt(second) };
  }
  if (second < 25 || second > 32 || first % 2 ** (32 - second) !== 0) return undefined;
  return rangeOf(4, (parent.start | BigInt(first)) >> BigInt(32 - second), second);
}

const allowed =
  'must be a reverse zone: 113.0.203.in-addr.arpa, 8.b.d.0.1.0.0.2.ip6.arpa, or a classless one such as ' +
  '128/25.2.0.192.in-addr.arpa (first octet, prefix length) or 128-255.2.0.192.in-addr.arpa (first, last octet)';

/** Who gives a prefix is told the zone's name. */
function notAZone(text: string): string {
  const prefix = parsePrefix(text);
  const meant = prefix.ok
    ? zoneNameOfPrefix({ ...rangeOfPrefix(prefix.prefix), length: prefix.prefix.length })
    : undefined;
  return `${allowed}; received ${quote(text)}${meant === undefined ? '' : `, did you mean ${meant}?`}`;
}
