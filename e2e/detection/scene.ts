/**
 * The traffic that detection is held to end to end: which prefixes there are, who lives a normal life in them, what is
 * attacked when and how. Owns addresses, rates and thresholds. Must never know how detection works.
 */
import { type Vector, vectors } from '@levee/core/detection/vector.ts';
import type { Attack } from '@levee/lab/traffic/attack.ts';
import type { TrafficOptions } from '@levee/lab/traffic/labelled-traffic.ts';

export const prefixes = {
  /** Attacks on single addresses. */
  attacked: '203.0.113.0/24',
  /** The upper half of those: guarded by the router itself. */
  edge: '203.0.113.128/25',
  innocent: '198.51.100.0/24',
  /** Attacked as a whole. */
  carpet: '198.18.7.0/24',
  six: '2001:db8:1::/48',
} as const;

export const allPrefixes = [prefixes.attacked, prefixes.innocent, prefixes.carpet, prefixes.six];

/** An attack is three times that. */
const perVector = 2000;
/** The crowd's acknowledgements are more than an attack's threshold elsewhere, as a web server's may be. */
export const thresholds: Readonly<Record<Vector, { readonly pps: number }>> = {
  ...(Object.fromEntries(vectors.map((vector) => [vector, { pps: perVector }])) as Record<Vector, { pps: number }>),
  'tcp-ack': { pps: 3500 },
  total: { pps: 4000 },
};

const attackRate = 6000;
const attackMs = 2500;

/** The customer lets HTTPS in whatever happens: a measure that would touch it is only proposed. */
export const withAccept = '203.0.113.12';
/** Somebody's web server that is attacked while people visit it. */
export const visited = '203.0.113.10';
export const edgeGuarded = '203.0.113.140';

/** Each vector on an address of its own, a whole subnet, and one that the edge is to stop. */
const targets: readonly (readonly [vector: Vector, dst: string])[] = [
  ['udp-amplification', visited],
  ['tcp-syn', '203.0.113.11'],
  ['tcp-syn-ack', '2001:db8:1::12'],
  ['tcp-ack', '203.0.113.13'],
  ['tcp-rst', '203.0.113.14'],
  ['tcp-other', '2001:db8:1::15'],
  ['icmp', '203.0.113.16'],
  ['gre', '203.0.113.17'],
  ['esp', '2001:db8:1::18'],
  ['ip-fragment', '203.0.113.19'],
  ['udp-other', '203.0.113.20'],
  ['ip-other', '203.0.113.21'],
  ['total', '203.0.113.22'],
  ['udp-other', prefixes.carpet],
  ['tcp-syn', withAccept],
  ['udp-amplification', edgeGuarded],
  ['udp-amplification', '2001:db8:1::53'],
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
  forMs: 21_000,
  background: { hosts, packetsPerSecond: 1800 },
  crowd: { host: '198.51.100.80', fromMs: 3000, packetsPerSecond: 2500 },
  attacks: spaced(targets, 1000),
};

/** For exporters that tell flows when they are over. */
export const byFlows: TrafficOptions = {
  seed: 'by flows',
  forMs: 8000,
  background: { hosts, packetsPerSecond: 1800 },
  attacks: spaced(
    [
      ['udp-amplification', '203.0.113.30'],
      ['tcp-syn', '2001:db8:1::31'],
      ['icmp', '203.0.113.32'],
    ],
    1000,
  ).map((attack) => ({ ...attack, forMs: 4000 })),
};

/** The detector is killed when the last of them begins, the BGP speaker later. */
export const throughCrashes: TrafficOptions = {
  seed: 'through crashes',
  forMs: 13_000,
  background: { hosts, packetsPerSecond: 1800 },
  attacks: spaced(
    [
      ['udp-amplification', '203.0.113.40'],
      ['udp-other', '203.0.113.41'],
      ['icmp', '203.0.113.42'],
    ],
    700,
  ).map((attack) => ({ ...attack, forMs: 9000, packetsPerSecond: 4000 })),
};
