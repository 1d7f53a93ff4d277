/**
 * Owns what FlowSpec can do about each vector: sets of flowrules, the most precise first, the last of which always catches
 * all of it. Never chooses among them, never knows policies or budgets.
 *
 * Discarded is what no connection has, answers that are longer than what clients get all the time, and what the destination is
 * known to have no use for; all else is limited: it may be a customer's own traffic. SYNs always are, since a service without
 * any is as good as down. Nothing is matched by its source (decision 0141).
 */
import type { VectorProfile } from '@levee/contract/detector.ts';
import { amplifierPorts, type Vector } from '../detection/vector.ts';
import type { FlowComponent } from '../flowspec/flowrule.ts';
import type { Family } from '../net/prefix.ts';
import { type Band, fewestValues, longAnswer, narrowLengths, otherProtocolShares } from './profile-shape.ts';

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
  /** The destination is known to have next to nothing of this vector in quiet times. */
  readonly isHardlyUsed: boolean;
}

type Components = FlowCandidate['components'];

const discard = (aim: string, components: Components): FlowCandidate => ({ aim, components, action: 'discard' });
const limit = (components: Components, aim = 'rate'): FlowCandidate => ({ aim, components, action: 'rate-limit' });

/** What is of a kind that the destination may have a use for. */
function stop(aim: string, components: Components, { isHardlyUsed }: Surroundings): FlowCandidate {
  return isHardlyUsed ? discard(aim, components) : limit(components, aim);
}

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
      return [[stop('all', { protocol: '6', 'tcp-flags': 'syn&ack' }, about)]];
    case 'tcp-rst':
      return [[stop('all', { protocol: '6', 'tcp-flags': 'rst&!syn' }, about)]];
    case 'tcp-ack':
      // No connection of the destination's is without them.
      return [[limit({ protocol: '6', 'tcp-flags': 'ack&!syn&!rst' })]];
    case 'tcp-other':
      // No packet of a connection has such flags.
      return [[discard('flags', { protocol: '6', 'tcp-flags': '!syn&!rst&!ack,fin&syn&!ack,syn&rst&!ack' })]];
    case 'icmp':
      return icmp(profile, about);
    case 'gre':
      return [[stop('all', { protocol: '47' }, about)]];
    case 'esp':
      return [[stop('all', { protocol: '50' }, about)]];
    case 'ip-fragment':
      return fragments(profile, about);
    case 'udp-other':
      return otherUdp(profile, about);
    case 'ip-other':
      return otherProtocols(profile, about);
    default:
      return [[limit({})]];
  }
}

/** With as many of all ports as it needs that nine tenths are certain, be the length's twentieth missed. */
const WITH_LENGTH = 0.95;

function amplification(profile: VectorProfile, about: Surroundings): FlowCandidate[][] {
  const few = fewestValues(profile.source_ports, amplifierPorts.length);
  const more = fewestValues(profile.source_ports, amplifierPorts.length, WITH_LENGTH);
  // What else arrives in pieces is not known.
  const rest = about.hasUdpFragments ? [limit({ protocol: '17', fragment: 'is-fragment' }, 'fragments')] : [];
  return [few, more, amplifierPorts]
    .filter((ports) => ports !== undefined)
    .map((ports) => [answers(ports, profile, about), ...rest]);
}

/** From nine tenths of the shortest on; where that is an ordinary answer's length, of the shortest but a twentieth. */
function answers(ports: readonly number[], { length }: VectorProfile, about: Surroundings): FlowCandidate {
  const components: Components = { protocol: '17', 'source-port': portsText(ports) };
  const bounds = [length.min, length.p5].map((shortest) => Math.floor(shortest * 0.9));
  const from = (bound: number): Components => (bound >= TELLING_LENGTH ? { 'packet-length': `${bound}-65535` } : {});
  const long = bounds.find((bound) => bound >= longAnswer(ports));
  if (long !== undefined) return discard('ports', { ...components, ...from(long) });
  const [shortest = 0, most = 0] = bounds;
  return stop('ports', { ...components, ...from(about.isHardlyUsed ? shortest : most) }, about);
}

function fragments({ protocols, later_fragments }: VectorProfile, about: Surroundings): FlowCandidate[][] {
  // Without the pieces behind it, a first one is worth nothing to the destination either.
  const fragment = later_fragments >= 0.9 ? 'is-fragment' : 'first-fragment,is-fragment';
  const few = fewestValues(protocols, FEW_PROTOCOLS);
  const all = [stop('fragments', { fragment }, about)];
  return few === undefined ? [all] : [[stop('fragments', { protocol: few.join(','), fragment }, about)], all];
}

/** What an error message tells of a path's MTU, and what IPv6 finds neighbours by, has to arrive (RFC 4890, 4.3). */
const neededTypes: Readonly<Record<Family, readonly number[]>> = { 4: [3], 6: [1, 2, 3, 4, 133, 134, 135, 136, 137] };

function icmp(profile: VectorProfile, about: Surroundings): FlowCandidate[][] {
  const { family } = about;
  const protocol = family === 6 ? '58' : '1';
  const byType = new Map<number, number>();
  for (const { value, share } of profile.icmp) byType.set(value >> 8, (byType.get(value >> 8) ?? 0) + share);
  const shares = [...byType].map(([value, share]) => ({ value, share }));
  const types = fewestValues(shares, FEW_PORTS);
  const all = [limit({ protocol })];
  if (types === undefined) return [all];
  const components = { protocol, 'icmp-type': types.toSorted((a, b) => a - b).join(',') };
  if (types.some((type) => neededTypes[family].includes(type))) return [[limit(components)], all];
  return [[stop('types', components, about)], all];
}

/** A port alone is a service of the destination's; together with a length or the port that it all comes from it is a flood. */
function otherUdp(profile: VectorProfile, about: Surroundings): FlowCandidate[][] {
  const protocol = '17';
  const to = fewestValues(profile.destination_ports, FEW_PORTS);
  const from = fewestValues(profile.source_ports, FEW_PORTS);
  const band = narrowLengths(profile);
  const destination: Components = to === undefined ? {} : { 'destination-port': portsText(to) };
  const length: Components = band === undefined ? {} : { 'packet-length': bandText(band) };
  const source: Components = from === undefined ? {} : { 'source-port': portsText(from) };
  const candidates: FlowCandidate[][] = [];
  const shape = (components: Components) => candidates.push([stop('shape', { protocol, ...components }, about)]);
  if (from !== undefined && band !== undefined) shape({ ...source, ...length });
  if (to !== undefined && band !== undefined) shape({ ...destination, ...length });
  if (to !== undefined && from !== undefined) shape({ ...destination, ...source });
  if (to !== undefined) candidates.push([limit({ protocol, ...destination })]);
  return [...candidates, [limit({ protocol })]];
}

function otherProtocols(profile: VectorProfile, about: Surroundings): FlowCandidate[][] {
  const few = fewestValues(otherProtocolShares(profile), FEW_PROTOCOLS);
  if (few === undefined) return [[limit({ protocol: '0,2-5,7-16,18-46,48,49,51-57,59-255' })]];
  return [[stop('all', { protocol: few.toSorted((a, b) => a - b).join(',') }, about)]];
}

function portsText(ports: readonly number[]): string {
  return ports.toSorted((a, b) => a - b).join(',');
}

function bandText({ start, end }: Band): string {
  return start === end ? String(start) : `${start}-${end}`;
}
