/**
 * Owns what FlowSpec can do about each vector: sets of flowrules, the most precise first, the last of which always catches
 * all of it. Never chooses among them, never knows policies or budgets.
 *
 * What harms only floods is discarded; what looks like a customer's own traffic is limited: SYNs always, since a service
 * without any is as good as down. Sources are matched only where they are few and real.
 */
import type { VectorProfile } from '@levee/contract/detector.ts';
import { amplifierPorts, type Vector } from '../detection/vector.ts';
import type { FlowComponent } from '../flowspec/flowrule.ts';
import type { Family } from '../net/prefix.ts';
import { type Band, fewestValues, fewSources, narrowLengths, otherProtocolShares } from './profile-shape.ts';

export interface FlowCandidate {
  /** What of the vector it is about. */
  readonly aim: string;
  readonly components: Readonly<Partial<Record<FlowComponent, string>>>;
  readonly action: 'discard' | 'rate-limit';
}

/** Told beside the profile: what the whole attack shows. */
export interface Surroundings {
  readonly family: Family;
  /** UDP arrives in fragments too, and they are no vector of their own. */
  readonly hasUdpFragments: boolean;
  /** The destination has traffic of this vector in quiet times. */
  readonly isUsual: boolean;
}

type Components = FlowCandidate['components'];

const discard = (aim: string, components: Components): FlowCandidate => ({ aim, components, action: 'discard' });
const limit = (components: Components): FlowCandidate => ({ aim: 'rate', components, action: 'rate-limit' });

/** Short lengths tell nothing: no packet of theirs is much shorter. */
const TELLING_LENGTH = 64;
/** Destination ports that a flood goes to; with more it goes to all. */
const FEW_PORTS = 4;
const FEW_PROTOCOLS = 8;

export function flowCandidates(profile: VectorProfile, about: Surroundings): readonly (readonly FlowCandidate[])[] {
  switch (profile.vector as Vector) {
    case 'udp-amplification':
      return amplification(profile, about);
    case 'tcp-syn':
      return [[limit({ protocol: '6', 'tcp-flags': 'syn&!ack' })]];
    case 'tcp-syn-ack':
      return whole(profile, about, { protocol: '6', 'tcp-flags': 'syn&ack' });
    case 'tcp-rst':
      return whole(profile, about, { protocol: '6', 'tcp-flags': 'rst&!syn' });
    case 'tcp-ack':
      // No connection of the destination's is without them.
      return [...bySource(profile, { protocol: '6' }), [limit({ protocol: '6', 'tcp-flags': 'ack&!syn&!rst' })]];
    case 'tcp-other':
      // No packet of a connection has such flags.
      return [[discard('flags', { protocol: '6', 'tcp-flags': '!syn&!rst&!ack,fin&syn&!ack,syn&rst&!ack' })]];
    case 'icmp':
      return icmp(profile, about);
    case 'gre':
      return whole(profile, about, { protocol: '47' });
    case 'esp':
      return whole(profile, about, { protocol: '50' });
    case 'ip-fragment':
      return fragments(profile);
    case 'udp-other':
      return otherUdp(profile);
    case 'ip-other':
      return otherProtocols(profile, about);
    default:
      return [...bySource(profile, {}), [limit({})]];
  }
}

/** One rule for each of a few real sources. */
function bySource(profile: VectorProfile, components: Components): FlowCandidate[][] {
  const sources = fewSources(profile);
  if (sources === undefined) return [];
  return [sources.map((source) => discard(`source ${source}`, { 'source-prefix': source, ...components }))];
}

/** All of a kind of packets that a destination hardly needs; where it has some of its own, they are limited. */
function whole(profile: VectorProfile, { isUsual }: Surroundings, components: Components): FlowCandidate[][] {
  if (!isUsual) return [[discard('all', components)]];
  return [...bySource(profile, components), [limit(components)]];
}

function amplification(profile: VectorProfile, { hasUdpFragments }: Surroundings): FlowCandidate[][] {
  const shortest = Math.floor(profile.length.min * 0.9);
  const length: Components = shortest >= TELLING_LENGTH ? { 'packet-length': `${shortest}-65535` } : {};
  const ports = fewestValues(profile.source_ports, amplifierPorts.length);
  const rule = (numbers: readonly number[]) =>
    discard('ports', { protocol: '17', 'source-port': portsText(numbers), ...length });
  const rest = hasUdpFragments ? [discard('fragments', { protocol: '17', fragment: 'is-fragment' })] : [];
  const all = [rule(amplifierPorts), ...rest];
  return ports === undefined ? [all] : [[rule(ports), ...rest], all];
}

function fragments({ protocols, later_fragments }: VectorProfile): FlowCandidate[][] {
  // Without the pieces behind it, a first one is worth nothing to the destination either.
  const fragment = later_fragments >= 0.9 ? 'is-fragment' : 'first-fragment,is-fragment';
  const few = fewestValues(protocols, FEW_PROTOCOLS);
  const all = [discard('fragments', { fragment })];
  return few === undefined ? [all] : [[discard('fragments', { protocol: few.join(','), fragment })], all];
}

/** What an error message tells of a path's MTU, and what IPv6 finds neighbours by, has to arrive (RFC 4890, 4.3). */
const neededTypes: Readonly<Record<Family, readonly number[]>> = { 4: [3], 6: [1, 2, 3, 4, 133, 134, 135, 136, 137] };

function icmp(profile: VectorProfile, { family }: Surroundings): FlowCandidate[][] {
  const protocol = family === 6 ? '58' : '1';
  const byType = new Map<number, number>();
  for (const { value, share } of profile.icmp) byType.set(value >> 8, (byType.get(value >> 8) ?? 0) + share);
  const shares = [...byType].map(([value, share]) => ({ value, share }));
  const types = fewestValues(shares, FEW_PORTS);
  const all = [...bySource(profile, { protocol }), [limit({ protocol })]];
  if (types === undefined) return all;
  const components = { protocol, 'icmp-type': types.toSorted((a, b) => a - b).join(',') };
  if (types.some((type) => neededTypes[family].includes(type)))
    return [...bySource(profile, components), [limit(components)], ...all];
  return [[discard('types', components)], ...all];
}

/** A port alone is a service of the destination's; together with a length or the port that it all comes from it is a flood. */
function otherUdp(profile: VectorProfile): FlowCandidate[][] {
  const protocol = '17';
  const to = fewestValues(profile.destination_ports, FEW_PORTS);
  const from = fewestValues(profile.source_ports, FEW_PORTS);
  const band = narrowLengths(profile);
  const destination: Components = to === undefined ? {} : { 'destination-port': portsText(to) };
  const length: Components = band === undefined ? {} : { 'packet-length': bandText(band) };
  const source: Components = from === undefined ? {} : { 'source-port': portsText(from) };
  const candidates = bySource(profile, { protocol });
  if (from !== undefined && band !== undefined) candidates.push([discard('shape', { protocol, ...source, ...length })]);
  if (to !== undefined && band !== undefined)
    candidates.push([discard('shape', { protocol, ...destination, ...length })]);
  if (to !== undefined && from !== undefined)
    candidates.push([discard('shape', { protocol, ...destination, ...source })]);
  if (to !== undefined) candidates.push([limit({ protocol, ...destination })]);
  return [...candidates, [limit({ protocol })]];
}

function otherProtocols(profile: VectorProfile, { isUsual }: Surroundings): FlowCandidate[][] {
  const few = fewestValues(otherProtocolShares(profile), FEW_PROTOCOLS);
  if (few === undefined)
    return [...bySource(profile, {}), [limit({ protocol: '0,2-5,7-16,18-46,48,49,51-57,59-255' })]];
  return whole(
    profile,
    { family: 4, hasUdpFragments: false, isUsual },
    { protocol: few.toSorted((a, b) => a - b).join(',') },
  );
}

function portsText(ports: readonly number[]): string {
  return ports.toSorted((a, b) => a - b).join(',');
}

function bandText({ start, end }: Band): string {
  return start === end ? String(start) : `${start}-${end}`;
}
