/**
 * Compiles a flowrule into the BGP route that announces it: its family, its octets, which are what tells it from others,
 * and its attributes (RFC 4271, RFC 8955, RFC 7999, RFC 8092). And reads what a speaker has back into the same form, so that
 * both can be compared. Never decides whether a route may be announced.
 */
import { parseAddress } from '../net/address.ts';
import type { Address } from '../net/prefix.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { flowOctets, longestFlow, prefixOctets } from './flow-octets.ts';
import type { Flowrule, FlowTreatment } from './flowrule.ts';

export const routeFamilies = ['flow4', 'flow6', 'unicast4', 'unicast6'] as const;
export type RouteFamily = (typeof routeFamilies)[number];

/** `203.0.113.7/32`'s is `unicast4 20cb007107`: a family and the octets that an update carries. */
export type RouteKey = `${RouteFamily} ${string}`;

export interface BgpRoute {
  readonly key: RouteKey;
  readonly family: RouteFamily;
  /** As an update has it, lengths included. */
  readonly nlri: Uint8Array;
  readonly flowrule: Flowrule;
  /** All attributes that a speaker hands on, each with its header, ascending by type; the next hop among them. */
  readonly attributes: readonly Uint8Array[];
  /** What the attributes say, for comparison with `routeContent`. */
  readonly content: string;
}

/** A large community (RFC 8092), by which routes are known as ours. */
export interface LargeCommunity {
  readonly administrator: number;
  readonly first: number;
  readonly second: number;
}

export interface RouteOptions {
  readonly mark: LargeCommunity;
  /** Of blackhole routes: what peers discard (RFC 7999, RFC 6666). */
  readonly nextHopIpv4: Address;
  readonly nextHopIpv6: Address;
  /** Blackhole routes stay in the AS that has them first. */
  readonly noExport: boolean;
}

export type CompiledRoute =
  | { readonly ok: true; readonly route: BgpRoute }
  /** `reason`: a sentence for the flowrule's owner. */
  | { readonly ok: false; readonly reason: string };

const afiSafi = {
  flow4: { afi: 1, safi: 133 },
  flow6: { afi: 2, safi: 133 },
  unicast4: { afi: 1, safi: 1 },
  unicast6: { afi: 2, safi: 1 },
} as const satisfies Record<RouteFamily, { afi: number; safi: number }>;

export function afiSafiOf(family: RouteFamily): { readonly afi: number; readonly safi: number } {
  return afiSafi[family];
}

const attributeTypes = { origin: 1, asPath: 2, nextHop: 3, communities: 8, mpReach: 14, extended: 16, large: 32 };

/** RFC 7999, 5; RFC 1997. */
const blackholeCommunity = 0xffff029a;
const noExportCommunity = 0xffffff01;

export function compileRoute(flowrule: Flowrule, options: RouteOptions): CompiledRoute {
  const { dst, treatment } = flowrule;
  const isBlackhole = treatment.action === 'blackhole';
  const family: RouteFamily = `${isBlackhole ? 'unicast' : 'flow'}${dst.family}`;
  const nlri = isBlackhole ? Uint8Array.from([dst.length, ...prefixOctets(dst)]) : flowOctets(flowrule);
  if (nlri === undefined) {
    const reason = `The rule on ${formatPrefix(dst)} takes more than the ${longestFlow} octets that a FlowSpec route may have.`;
    return { ok: false, reason };
  }
  const communities = isBlackhole ? [blackholeCommunity, ...(options.noExport ? [noExportCommunity] : [])] : [];
  const extended = extendedCommunities(treatment);
  const { administrator, first, second } = options.mark;
  const attributes = [
    // IGP: it is the operator's own.
    attribute(0x40, attributeTypes.origin, [0]),
    attribute(0x40, attributeTypes.asPath, []),
    ...(family === 'unicast6' ? [] : [attribute(0x40, attributeTypes.nextHop, nextHopOf(family, options))]),
    ...(communities.length === 0 ? [] : [attribute(0xc0, attributeTypes.communities, communities.flatMap(fourOctets))]),
    ...(family === 'unicast6' ? [mpReach(nlri, options)] : []),
    ...(extended.length === 0 ? [] : [attribute(0xc0, attributeTypes.extended, extended)]),
    attribute(0xc0, attributeTypes.large, [administrator, first, second].flatMap(fourOctets)),
  ];
  const key: RouteKey = `${family} ${hex(nlri)}`;
  return { ok: true, route: { key, family, nlri, flowrule, attributes, content: routeContent(family, attributes) } };
}

/** A FlowSpec route has none that matters; speakers want one all the same. */
function nextHopOf(family: RouteFamily, { nextHopIpv4 }: RouteOptions): number[] {
  return family === 'unicast4' ? addressOctets(nextHopIpv4) : [0, 0, 0, 0];
}

/** RFC 4760, 3. */
function mpReach(nlri: Uint8Array, { nextHopIpv6 }: RouteOptions): Uint8Array {
  const { afi, safi } = afiSafi.unicast6;
  return attribute(0x80, attributeTypes.mpReach, [0, afi, safi, 16, ...addressOctets(nextHopIpv6), 0, ...nlri]);
}

/** RFC 8955, 7: rates in octets a second as a float of 32 bits; a rate of 0 discards. */
function extendedCommunities(treatment: FlowTreatment): number[] {
  switch (treatment.action) {
    case 'blackhole':
      return [];
    case 'discard':
      return [0x80, 0x06, 0, 0, ...floatOctets(0)];
    case 'rate-limit':
      return [0x80, 0x06, 0, 0, ...floatOctets(treatment.bytesPerSecond)];
    case 'redirect':
      return redirectOctets(treatment.routeTarget);
    case 'mark':
      return [0x80, 0x09, 0, 0, 0, 0, 0, treatment.dscp];
  }
}

/** RFC 8955, 7.4: by an AS of two octets, an IPv4 address, or an AS of four. */
function redirectOctets(routeTarget: string): number[] {
  const at = routeTarget.indexOf(':');
  const administrator = routeTarget.slice(0, at);
  const number = Number(routeTarget.slice(at + 1));
  if (administrator.includes('.')) {
    const read = parseAddress(administrator);
    if (!read.ok) throw new Error(`a parsed route target is none: ${routeTarget}`);
    return [0x81, 0x08, ...addressOctets(read.address), ...fourOctets(number).slice(2)];
  }
  const asn = Number(administrator);
  if (asn <= 0xffff) return [0x80, 0x08, ...fourOctets(asn).slice(2), ...fourOctets(number)];
  return [0x82, 0x08, ...fourOctets(asn), ...fourOctets(number).slice(2)];
}

function addressOctets({ family, value }: Address): number[] {
  return prefixOctets({ family, value, length: family === 4 ? 32 : 128 });
}

function fourOctets(value: number): number[] {
  return [value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
}

function floatOctets(value: number): number[] {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  return fourOctets(view.getUint32(0));
}

const extendedLength = 0x10;

function attribute(flags: number, type: number, value: readonly number[]): Uint8Array {
  const { length } = value;
  const header = length > 255 ? [flags | extendedLength, type, length >> 8, length & 0xff] : [flags, type, length];
  return Uint8Array.from([...header, ...value]);
}

/**
 * What attributes say of what is done with the packets, in one text: communities of all kinds, sorted, and a unicast
 * route's next hop. What a speaker adds of its own makes no difference.
 */
export function routeContent(family: RouteFamily, attributes: readonly Uint8Array[]): string {
  const found: string[] = [];
  for (const each of attributes) {
    const read = readAttribute(each);
    if (read === undefined) return 'unreadable';
    const { type, value } = read;
    if (type === attributeTypes.communities) found.push(...pieces('community', value, 4));
    else if (type === attributeTypes.extended) found.push(...pieces('extended', value, 8));
    else if (type === attributeTypes.large) found.push(...pieces('large', value, 12));
    else if (type === attributeTypes.nextHop && family === 'unicast4') found.push(`nexthop:${hex(value)}`);
    else if (type === attributeTypes.mpReach && family.startsWith('unicast')) {
      found.push(`nexthop:${hex(value.subarray(4, 4 + (value[3] ?? 0)))}`);
    }
  }
  return found.sort().join(' ');
}

/** Whether the route bears the mark, and so is ours to change and withdraw. */
export function bearsMark(content: string, mark: LargeCommunity): boolean {
  return ` ${content} `.includes(` large:${hex([mark.administrator, mark.first, mark.second].flatMap(fourOctets))} `);
}

function pieces(name: string, value: Uint8Array, length: number): string[] {
  const found: string[] = [];
  for (let at = 0; at < value.length; at += length) found.push(`${name}:${hex(value.subarray(at, at + length))}`);
  return found;
}

function readAttribute(octets: Uint8Array): { type: number; value: Uint8Array } | undefined {
  const [flags, type, first, second] = octets;
  if (flags === undefined || type === undefined || first === undefined) return undefined;
  const isLong = (flags & extendedLength) !== 0;
  const start = isLong ? 4 : 3;
  const length = isLong ? first * 256 + (second ?? 0) : first;
  return octets.length === start + length ? { type, value: octets.subarray(start) } : undefined;
}

function hex(octets: Iterable<number>): string {
  let text = '';
  for (const octet of octets) text += octet.toString(16).padStart(2, '0');
  return text;
}

/** Of a speaker's list. */
export function routeKey(family: RouteFamily, nlri: Uint8Array): RouteKey {
  return `${family} ${hex(nlri)}`;
}
