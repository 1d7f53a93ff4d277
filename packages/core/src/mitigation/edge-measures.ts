/**
 * Owns what the edge does about each vector: firewall rules of the wire's form, evaluated behind all rules of customers.
 * The edge knows connections, and counts packets; it does not see lengths as ranges, types of ICMP or fragments. Never
 * discards SYNs, nor what the destination may have a use for, and matches nothing by its source (decision 0141).
 */
import type { VectorProfile } from '@levee/contract/detector.ts';
import { type ProtocolName, protocolNames, protocolNumbers } from '@levee/contract/protocols.ts';
import { amplifierPorts, type Vector } from '../detection/vector.ts';
import type { CanonicalRule } from '../firewall/wire.ts';
import type { Family } from '../net/prefix.ts';
import type { MeasureNote } from './measure.ts';
import { fewestValues, longAnswer, otherProtocolShares } from './profile-shape.ts';

/** Fields of a rule but `dst`, `priority` and `disabled`. */
export type EdgeFields = Pick<CanonicalRule, 'protocol' | 'action'> & Partial<CanonicalRule>;

export interface EdgeCandidate {
  readonly aim: string;
  readonly fields: EdgeFields;
}

export interface EdgeSurroundings {
  readonly family: Family;
  /**
   * Whether the router may look at connections: what passes then takes a place in its table each, and a vector that only gets
   * limited would fill it.
   */
  readonly mayTrack: boolean;
  /** The destination is known to have next to nothing of this vector in quiet times. */
  readonly isHardlyUsed: boolean;
  /** Packets a second that may pass. */
  readonly allowedPps: number;
}

export interface EdgeAnswer {
  readonly measures: readonly EdgeCandidate[];
  readonly notes: readonly MeasureNote[];
}

/** Vectors whose measures leave next to nothing that a table of connections would keep. */
export const vectorsThatMayTrack: readonly string[] = [
  'udp-amplification',
  'tcp-syn-ack',
  'tcp-ack',
  'tcp-rst',
  'tcp-other',
];

/** Connections a second that the router may take over half-way: each has a place in its table for minutes. */
const TAKEN_OVER_PPS = 500;
const MOST_PORTS = 8;

export function edgeMeasures(profile: VectorProfile, about: EdgeSurroundings): EdgeAnswer {
  const { vector } = profile;
  const { allowedPps: ratelimit, family, mayTrack, isHardlyUsed } = about;
  const note = (text: string): MeasureNote => ({ vector, where: 'edge', text });
  const drop = (aim: string, fields: Omit<EdgeFields, 'action'>): EdgeCandidate => ({
    aim,
    fields: { ...fields, action: 'drop' },
  });
  const limited = (fields: Omit<EdgeFields, 'action'>, pps = ratelimit, aim = 'rate'): EdgeCandidate =>
    drop(aim, { ...fields, ratelimit: pps });
  const stop: Make = (aim, fields) => (isHardlyUsed ? drop(aim, fields) : limited(fields, ratelimit, aim));
  const flags = (names: NonNullable<CanonicalRule['tcpflags']>, isNeeded: boolean): EdgeAnswer => {
    if (!mayTrack) return { measures: [limited({ protocol: 'tcp', tcpflags: names })], notes: [] };
    const invalid = drop('no connection', { protocol: 'tcp', tcpflags: names, statetype: 'invalid' });
    const begun = { protocol: 'tcp', tcpflags: names, statetype: 'new' } as const;
    const rest = isNeeded ? limited(begun, Math.min(ratelimit, TAKEN_OVER_PPS)) : drop('unasked', begun);
    return { measures: [invalid, rest], notes: [] };
  };
  switch (vector as Vector) {
    case 'udp-amplification':
      return { measures: amplification(profile, mayTrack, drop, stop), notes: [] };
    case 'tcp-syn':
      return { measures: [limited({ protocol: 'tcp', tcpflags: ['syn'] })], notes: [] };
    case 'tcp-syn-ack':
      return flags(['syn', 'ack'], false);
    case 'tcp-ack':
      return flags(['ack'], true);
    case 'tcp-rst':
      return flags(['rst'], false);
    case 'tcp-other':
      return otherTcp(mayTrack, drop, note);
    case 'icmp':
      return {
        measures: [limited({ protocol: family === 6 ? 'ipv6-icmp' : 'icmp' })],
        notes: [note('A rule does not tell types of ICMP apart: all of it is limited.')],
      };
    case 'gre':
    case 'esp':
      return { measures: [stop('all', { protocol: vector as ProtocolName })], notes: [] };
    case 'ip-fragment':
      if (family === 6) return { measures: [limited({ protocol: 'ipv6-frag' })], notes: [] };
      return {
        measures: [],
        notes: [note('A rule does not tell fragments of IPv4 apart: they are left to FlowSpec.')],
      };
    case 'udp-other':
      return { measures: otherUdp(profile, stop, limited), notes: [] };
    case 'ip-other':
      return otherProtocols(profile, family, stop, note);
    default:
      return { measures: [limited({ protocol: 'any' })], notes: [] };
  }
}

type Make = (aim: string, fields: Omit<EdgeFields, 'action'>) => EdgeCandidate;
type Limit = (fields: Omit<EdgeFields, 'action'>) => EdgeCandidate;
type Note = (text: string) => MeasureNote;

function lengthOf({ length, samples }: VectorProfile): Pick<CanonicalRule, 'packetlength'> {
  return samples > 0 && length.min === length.max && length.min > 0 ? { packetlength: length.min } : {};
}

/** Where connections may be looked at, an answer that the destination asked for passes; else the length has to tell. */
function amplification(profile: VectorProfile, mayTrack: boolean, drop: Make, stop: Make): EdgeCandidate[] {
  const ports = (fewestValues(profile.source_ports, MOST_PORTS) ?? [...amplifierPorts]).toSorted((a, b) => a - b);
  const { packetlength = 0, ...rest } = { ...lengthOf(profile), ...(mayTrack && { statetype: 'new' as const }) };
  return ports.map((port) => {
    const make = mayTrack || packetlength >= longAnswer([port]) ? drop : stop;
    const length = packetlength > 0 && { packetlength };
    return make(`port ${port}`, { protocol: 'udp', port: { src: { start: port } }, ...length, ...rest });
  });
}

function otherTcp(mayTrack: boolean, drop: Make, note: Note): EdgeAnswer {
  const impossible = [
    drop('syn and fin', { protocol: 'tcp', tcpflags: ['fin', 'syn'] }),
    drop('syn and rst', { protocol: 'tcp', tcpflags: ['syn', 'rst'] }),
  ];
  if (mayTrack)
    return { measures: [...impossible, drop('no connection', { protocol: 'tcp', statetype: 'invalid' })], notes: [] };
  return {
    measures: impossible,
    notes: [note('A rule does not ask for flags that are not set: segments without any are left to FlowSpec.')],
  };
}

function otherUdp(profile: VectorProfile, stop: Make, limited: Limit): EdgeCandidate[] {
  const length = lengthOf(profile);
  const to = fewestValues(profile.destination_ports, MOST_PORTS)?.toSorted((a, b) => a - b);
  if (to === undefined) return [limited({ protocol: 'udp', ...length })];
  const from = fewestValues(profile.source_ports, 1)?.[0];
  return to.map((port) => {
    const ports = { ...(from !== undefined && { src: { start: from } }), dst: { start: port } };
    const isShape = from !== undefined || length.packetlength !== undefined;
    if (isShape) return stop(`port ${port}`, { protocol: 'udp', port: ports, ...length });
    return { ...limited({ protocol: 'udp', port: ports }), aim: `rate port ${port}` };
  });
}

function otherProtocols(profile: VectorProfile, family: Family, stop: Make, note: Note): EdgeAnswer {
  const measures: EdgeCandidate[] = [];
  const notes: MeasureNote[] = [];
  const shares = otherProtocolShares(profile);
  for (const number of fewestValues(shares, MOST_PORTS) ?? shares.slice(0, MOST_PORTS).map(({ value }) => value)) {
    const word = protocolNames.find((name) => protocolNumbers[name] === number && !(family === 6 && name === 'icmp'));
    if (word === undefined) notes.push(note(`A rule has no word for protocol ${number}: it is left to FlowSpec.`));
    else measures.push(stop(word, { protocol: word }));
  }
  return { measures, notes };
}
