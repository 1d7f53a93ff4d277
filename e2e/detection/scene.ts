/**
 * The traffic that detection is held to end to end: which prefixes there are, who lives a normal life in them, what is
 * attacked when and how. Owns addresses, rates and thresholds. Must never know how detection works.
 */
import { type Vector, vectors } from '@levee/core/detection/vector.ts';
import type { Attack } from '@levee/lab/traffic/attack.ts';
import type { TrafficOptions } from '@levee/lab/traffic/labelled-traffic.ts';

export const prefixes = {
  /** A few attacks beside each other: more than four in a /24 would be one on the /24. */
  near: '203.0.113.0/24',
  /** Attacks far from each other, and on a whole /24. */
  wide: '198.18.0.0/15',
  /** A part of it that is guarded by the router itself. */
  edge: '198.18.128.0/17',
  innocent: '198.51.100.0/24',
  six: '2001:db8:1::/48',
} as const;

export const allPrefixes = [prefixes.near, prefixes.wide, prefixes.innocent, prefixes.six];

/** An attack is five times that, so that it is found when a busy machine sends it at half its speed. */
const perVector = 1200;
/** Attacks that consist of all kinds have less than that of each. */
export const thresholds: Readonly<Record<Vector, { readonly pps: number }>> = {
  ...(Object.fromEntries(vectors.map((vector) => [vector, { pps: perVector }])) as Record<Vector, { pps: number }>),
  // The crowd's acknowledgements are more than what is an attack elsewhere.
  'tcp-ack': { pps: 2200 },
  total: { pps: 2500 },
};
/** Of a whole /24, where it is attacked all over. */
export const aggregateThresholds = { 'udp-other': { pps: 2500 } };

const attackRate = 6000;
const attackMs = 2500;

/** The customer lets HTTPS in whatever happens: a measure that would touch it is only proposed. */
export const withAccept = '198.18.40.10';
/** Somebody's web server that is attacked while people visit it. */
export const visited = '203.0.113.10';
export const edgeGuarded = '198.18.128.140';

/** Each vector on an address of its own, a whole subnet, and one that the edge is to stop. */
const targets: readonly (readonly [vector: Vector, dst: string])[] = [
  ['udp-amplification', visited],
  ['tcp-syn', '203.0.113.11'],
  ['tcp-syn-ack', '2001:db8:1:12::1'],
  ['tcp-ack', '203.0.113.13'],
  ['tcp-rst', '198.18.14.10'],
  ['tcp-other', '2001:db8:1:15::1'],
  ['icmp', '198.18.16.10'],
  ['gre', '198.18.17.10'],
  ['esp', '2001:db8:1:18::1'],
  ['ip-fragment', '198.18.19.10'],
  ['udp-other', '198.18.20.10'],
  ['ip-other', '198.18.21.10'],
  ['total', '198.18.22.10'],
  ['udp-other', '198.19.7.0/24'],
  ['tcp-syn', withAccept],
  ['udp-amplification', edgeGuarded],
  ['udp-amplification', '2001:db8:1:53::1'],
];

function spaced(chosen: readonly (readonly [Vector, string])[], everyMs: number): Attack[] {
  return chosen.map(([vector, dst], number) => ({
    vector,
    dst,
    fromMs: 1500 + everyMs * number,
    forMs: attackMs,
    packetsPerSecond: attackRate,
  }));
}

const hosts = [
  ...Array.from({ length: 9 }, (_, number) => `198.51.100.${number + 1}`),
  '2001:db8:1:ff::1',
  '2001:db8:1:ff::2',
  visited,
];

export const everyVector: TrafficOptions = {
  seed: 'every vector',
  forMs: 17_500,
  background: { hosts, packetsPerSecond: 1800 },
  crowd: { host: '198.51.100.80', fromMs: 3000, packetsPerSecond: 1600 },
  attacks: spaced(targets, 800),
};

/** For exporters that tell flows when they are over. */
export const byFlows: TrafficOptions = {
  seed: 'by flows',
  forMs: 7000,
  background: { hosts, packetsPerSecond: 1800 },
  attacks: spaced(
    [
      ['udp-amplification', '198.18.30.10'],
      ['tcp-syn', '2001:db8:1:31::1'],
      ['icmp', '198.18.32.10'],
    ],
    600,
  ).map((attack) => ({ ...attack, forMs: 4000 })),
};

/** The detector is killed when the last of them begins, the BGP speaker later. */
export const throughCrashes: TrafficOptions = {
  seed: 'through crashes',
  forMs: 13_000,
  background: { hosts, packetsPerSecond: 1800 },
  attacks: spaced(
    [
      ['udp-amplification', '198.18.50.10'],
      ['udp-other', '198.18.51.10'],
      ['icmp', '198.18.52.10'],
    ],
    700,
  ).map((attack) => ({ ...attack, forMs: 9000, packetsPerSecond: 4000 })),
};
