/**
 * What the packets of an attack look like, for each vector: sources, ports, flags, lengths as such floods have them. Owns the
 * recipes. Must never know of thresholds, or when something counts as an attack.
 */
import { buildFrame } from '../packet-build.ts';
import type { PacketSpec } from '../packet-spec.ts';
import type { Random } from '../random.ts';
import { hardwareAddress } from '../router-path.ts';
import { anyOf, forged, outsider } from './place.ts';
import type { Schedule, TrafficStream } from './schedule.ts';

export interface Attack {
  readonly vector: AttackVector;
  /** An address; a subnet is attacked all over. */
  readonly dst: string;
  readonly fromMs: number;
  readonly forMs: number;
  readonly packetsPerSecond: number;
}

type Shape = Pick<PacketSpec, 'transport' | 'totalLength' | 'fragment' | 'payload'> & { readonly reflector?: true };

const FIN = 1;
const SYN = 2;
const RST = 4;
const PSH = 8;
const ACK = 16;
const URG = 32;

/** Reflectors are real machines, a few hundred; all other sources are forged anew for each packet. */
const reflectors = 300;

/** What `total` is made of, in equal parts. */
export const partsOfTotal = [
  'esp',
  'gre',
  'icmp',
  'ip-other',
  'tcp-ack',
  'tcp-other',
  'tcp-rst',
  'udp-other',
] as const satisfies readonly (keyof typeof recipes)[];

const recipes = {
  /** Answers to `monlist`, or of open resolvers over IPv6. */
  'udp-amplification': (random, family): Shape => ({
    transport: { kind: 'udp', sourcePort: family === 4 ? 123 : 53, destinationPort: random.integer(1024, 65535) },
    totalLength: family === 4 ? 468 : random.integer(1180, 1240),
    reflector: true,
  }),
  'tcp-syn': (random, family): Shape => ({
    transport: {
      kind: 'tcp',
      sourcePort: random.integer(1024, 65535),
      destinationPort: 443,
      flags: SYN,
      sequence: random.word(),
      options: Uint8Array.of(2, 4, 5, 180),
    },
    totalLength: family === 4 ? 44 : 64,
  }),
  'tcp-syn-ack': (random): Shape => ({
    transport: {
      kind: 'tcp',
      sourcePort: random.pick([80, 443, 22]),
      destinationPort: random.integer(1024, 65535),
      flags: SYN | ACK,
    },
    reflector: true,
  }),
  'tcp-ack': (random): Shape => ({
    transport: {
      kind: 'tcp',
      sourcePort: random.integer(1024, 65535),
      destinationPort: 443,
      flags: random.chance(0.3) ? ACK | PSH : ACK,
      sequence: random.word(),
    },
  }),
  'tcp-rst': (random): Shape => ({
    transport: {
      kind: 'tcp',
      sourcePort: random.integer(1024, 65535),
      destinationPort: random.integer(1024, 65535),
      flags: RST,
      sequence: random.word(),
    },
  }),
  /** What no connection has: no flag at all, a lone FIN, a tree with all its lights. */
  'tcp-other': (random): Shape => ({
    transport: {
      kind: 'tcp',
      sourcePort: random.integer(1024, 65535),
      destinationPort: 80,
      flags: random.pick([0, FIN, FIN | PSH | URG]),
    },
  }),
  icmp: (random, family): Shape => ({
    transport: { kind: 'icmp', type: family === 4 ? 8 : 128, code: 0, identifier: random.integer(0, 65535) },
    totalLength: 1028,
  }),
  gre: (_random, family): Shape => ({
    transport: { kind: 'raw', protocol: 47 },
    payload: Uint8Array.of(0, 0, 0x08, 0),
    totalLength: family === 4 ? 536 : 556,
  }),
  esp: (random): Shape => ({
    transport: { kind: 'raw', protocol: 50 },
    payload: Uint8Array.from({ length: 8 }, () => random.integer(0, 255)),
    totalLength: 520,
  }),
  /** Pieces of datagrams that never come whole. */
  'ip-fragment': (random): Shape => ({
    transport: { kind: 'udp', sourcePort: random.integer(1024, 65535), destinationPort: random.integer(1, 65535) },
    totalLength: 1068,
    fragment: random.chance(0.05) ? { offset: 0, more: true } : { offset: 8 * random.integer(130, 4000), more: true },
  }),
  'udp-other': (random): Shape => ({
    transport: { kind: 'udp', sourcePort: random.integer(40_000, 65535), destinationPort: 27015 },
    totalLength: 200,
  }),
  'ip-other': (): Shape => ({ transport: { kind: 'raw', protocol: 253 }, totalLength: 300 }),
  /** No part of it is much; together it is. */
  total: (random, family): Shape => recipes[random.pick(partsOfTotal)](random, family),
} satisfies Record<string, (random: Random, family: 4 | 6) => Shape>;

export type AttackVector = keyof typeof recipes;
export const attackVectors = Object.keys(recipes) as AttackVector[];

/** So many different packets are made of each attack, and sent in turn. */
const distinctFrames = 2048;

export function addAttack(schedule: Schedule, attack: Attack, random: Random): TrafficStream {
  const stream = schedule.stream(attack.vector, attack.dst, true);
  const wanted = Math.round((attack.packetsPerSecond * attack.forMs) / 1000);
  const frames = Array.from({ length: Math.min(wanted, distinctFrames) }, () => attackFrame(attack, random));
  const step = attack.forMs / wanted;
  for (let sent = 0; sent < wanted; sent++) {
    // Not in step with a sampler that takes each sixteenth packet.
    const atMs = attack.fromMs + (sent + random.integer(0, 999) / 1000) * step;
    schedule.add(stream, atMs, frames[sent % frames.length] as Uint8Array);
  }
  return stream;
}

function attackFrame({ vector, dst }: Attack, random: Random): Uint8Array {
  const { family, value } = anyOf(dst, random);
  const { reflector, ...shape } = recipes[vector](random, family);
  return buildFrame({
    family,
    source: reflector ? outsider(family, random.integer(0, reflectors - 1)) : forged(family, random),
    destination: value,
    sourceHardware: hardwareAddress.attacker,
    destinationHardware: hardwareAddress.routerOutside,
    id: random.integer(0, 65535),
    hops: random.integer(40, 120),
    ...shape,
  });
}
