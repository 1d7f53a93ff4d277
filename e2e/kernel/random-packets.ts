/**
 * Random packets over the small world, most of them aimed at some rule and then, often, just off it.
 * Must never ask the evaluator: what a packet meets is not this file's matter.
 */
import { type ProtocolName, protocolNumbers } from '@levee/contract/protocols.ts';
import { isExtensionHeader } from '@levee/core/firewall/protocol-traits.ts';
import type { Rule } from '@levee/core/firewall/rule.ts';
import type { AddressRange, Family, Prefix } from '@levee/core/net/prefix.ts';
import { leastLength } from '@levee/lab/packet-build.ts';
import { type ExtensionHeader, type PacketSpec, protocolNumber, type Transport } from '@levee/lab/packet-spec.ts';
import type { Random } from '@levee/lab/random.ts';
import { hardwareAddress } from '@levee/lab/router-path.ts';
import { covers, neighbour, truncate } from './random-rules.ts';
import { hosts, lengths, ports, sources, tcpFlagSets, trackedZone, wireMtu } from './world.ts';

const protectedSpace = {
  4: [truncate(4, 0x0a100000n, 12), truncate(4, 0xcb007100n, 24)],
  6: [truncate(6, 0x20010db8n << 96n, 32)],
};

/** IPv6 next headers that are no transports: as bare numbers they would be walked into, over bytes at random. */
const walkedNumbers: readonly number[] = [
  protocolNumber.hopByHop,
  protocolNumber.routing,
  protocolNumber.fragment,
  protocolNumber.authentication,
  protocolNumber.destinationOptions,
];

const otherHardware = {
  broadcast: 'ff:ff:ff:ff:ff:ff',
  multicast: '33:33:00:00:00:01',
  other: '02:00:00:00:ee:ee',
} as const;

/**
 * `id` 1 … 65535. `ingress`: the table hooks in at ingress, where the kernel itself drops every later IPv6 fragment
 * whose fragment header names another extension header (nft_do_chain_inet_ingress): none of these is made then.
 */
export function randomPacket(random: Random, rules: readonly Rule[], id: number, ingress: boolean): PacketSpec {
  const rule = rules.length > 0 && random.chance(0.85) ? random.pick(rules) : undefined;
  const family: Family = rule?.dst.family ?? (random.chance(0.5) ? 4 : 6);
  const extensions = extensionsFor(random, family, rule);
  let spec: PacketSpec = {
    family,
    source: sourceFor(random, family, rule?.src),
    destination: destinationFor(random, family, rule),
    sourceHardware: hardwareAddress.attacker,
    destinationHardware: hardwareFor(random, rule),
    id,
    transport: transportFor(random, family, rule, id),
    ...(extensions.length > 0 && { extensions }),
  };
  const aboutHeaders = rule !== undefined && isExtensionHeader(rule.protocol);
  if (random.chance(aboutHeaders ? 0.4 : 0.1)) {
    const behind = family === 6 && extensions.some(({ kind }) => kind !== 'hop-by-hop' && kind !== 'routing');
    const offset = ingress && behind ? 0 : random.pick([0, 0, 8, 64, 1480]);
    spec = { ...spec, fragment: { offset, more: offset === 0 || random.chance(0.5) } };
  }
  return withLength(random, spec, rule);
}

function withLength(random: Random, spec: PacketSpec, rule: Rule | undefined): PacketSpec {
  const least = leastLength(spec);
  const wanted = rule?.packetLengthBytes;
  const near = wanted !== undefined && random.chance(0.8) ? wanted + random.pick([0, 0, 0, 1, -1]) : undefined;
  const totalLength = near ?? (random.chance(0.3) ? random.pick(lengths) : least + random.integer(0, 64));
  if (spec.transport.kind !== 'raw' && spec.fragment?.offset !== 0 && spec.fragment !== undefined) {
    return { ...spec, totalLength: Math.min(wireMtu, Math.max(least, totalLength)) };
  }
  const whole = { ...spec, totalLength: Math.min(wireMtu, Math.max(least, totalLength)) };
  // A transport header that ends early: a first fragment may hold eight bytes of it (RFC 1858).
  const mayEnd = spec.transport.kind === 'tcp' || spec.transport.kind === 'udp';
  return mayEnd && random.chance(0.03)
    ? { ...whole, keepPayloadBytes: random.pick([0, 1, 2, 3, 4, 8, 13, 14, 16]) }
    : whole;
}

function destinationFor(random: Random, family: Family, rule: Rule | undefined): bigint {
  for (;;) {
    const host = random.pick(hosts[family]);
    const wanted =
      rule !== undefined && random.chance(0.8)
        ? inside(random, rule.dst)
        : random.chance(0.7)
          ? host
          : neighbour(random, family, host);
    const address = { family, value: wanted, length: family === 4 ? 32 : 128 };
    if (covers(trackedZone[family], address)) {
      // Connections' zone: a stateless packet there would be a flow of its own.
      if (rule !== undefined && covers(trackedZone[family], rule.dst)) return random.pick(hosts[family]);
      continue;
    }
    if (protectedSpace[family].some((space) => covers(space, address))) return wanted;
  }
}

/** Undefined: nothing of the prefix is both protected and outside of connections' zone. */
export function destinationWithin(random: Random, prefix: Prefix): bigint | undefined {
  const { family } = prefix;
  if (covers(trackedZone[family], prefix)) return undefined;
  for (let tries = 0; tries < 20; tries++) {
    const value = inside(random, prefix);
    const address = { family, value, length: family === 4 ? 32 : 128 };
    if (covers(trackedZone[family], address)) continue;
    if (protectedSpace[family].some((space) => covers(space, address))) return value;
  }
  return undefined;
}

/** First, last, a known host or any address of the prefix. */
function inside(random: Random, { family, value, length }: Prefix): bigint {
  const free = (family === 4 ? 32 : 128) - length;
  const known = hosts[family].filter((host) => truncate(family, host, length).value === value);
  if (known.length > 0 && random.chance(0.6)) return random.pick(known);
  return (
    random.pick([value, value + (1n << BigInt(free)) - 1n, value | random.bits(Math.max(1, free))]) &
    (2n ** (family === 4 ? 32n : 128n) - 1n)
  );
}

/** `range`: aimed at, and at its edges. */
export function sourceFor(random: Random, family: Family, range: AddressRange | undefined): bigint {
  if (range && random.chance(0.8)) {
    const edges = [range.start, range.end, range.start - 1n, range.end + 1n].filter((value) => isSender(family, value));
    if (edges.length > 0) return random.pick(edges);
  }
  return random.pick(sources[family]);
}

/** Unicast, not the router's or customer's own, routed back to the attacker's side. */
function isSender(family: Family, value: bigint): boolean {
  const spaces =
    family === 4
      ? [truncate(4, 0x64400000n, 10), truncate(4, 0xc6336400n, 24)]
      : [truncate(6, 0xfd77n << 112n, 16), truncate(6, 0xfd78n << 112n, 16), truncate(6, 0x20010db9n << 96n, 32)];
  return spaces.some((space) => covers(space, { family, value, length: family === 4 ? 32 : 128 }));
}

function hardwareFor(random: Random, rule: Rule | undefined): string {
  const wanted = rule?.packetType;
  if (wanted !== undefined && wanted !== 'host' && random.chance(0.7)) return otherHardware[wanted];
  return random.chance(0.03) ? random.pick(Object.values(otherHardware)) : hardwareAddress.routerOutside;
}

function extensionsFor(random: Random, family: Family, rule: Rule | undefined): ExtensionHeader[] {
  if (family === 4) {
    return random.chance(rule?.protocol === 'ah' ? 0.6 : 0.02) ? [{ kind: 'authentication' }] : [];
  }
  const wanted: Partial<Record<ProtocolName, ExtensionHeader['kind']>> = {
    hopopt: 'hop-by-hop',
    'ipv6-route': 'routing',
    'ipv6-opts': 'destination-options',
    ah: 'authentication',
  };
  const chosen = new Set<ExtensionHeader['kind']>();
  const kind = rule && wanted[rule.protocol];
  if (kind && random.chance(0.8)) chosen.add(kind);
  if (random.chance(0.12)) chosen.add(random.pick(['hop-by-hop', 'routing', 'destination-options', 'authentication']));
  if (random.chance(0.04)) chosen.add(random.pick(['hop-by-hop', 'routing', 'destination-options', 'authentication']));
  // The order of RFC 8200, 4.1; hop-by-hop anywhere else is refused by every stack.
  return (['hop-by-hop', 'routing', 'authentication', 'destination-options'] as const)
    .filter((each) => chosen.has(each))
    .map((each) => ({ kind: each }));
}

function transportFor(random: Random, family: Family, rule: Rule | undefined, id: number): Transport {
  const number = rule ? protocolNumbers[rule.protocol] : null;
  const tcp = rule?.protocol === 'mptcp' || number === protocolNumber.tcp;
  if (rule && random.chance(0.85)) {
    if (tcp) return tcpFor(random, rule, id);
    if (rule.sourcePorts || rule.destinationPorts || (number !== null && number in portKinds)) {
      const kind =
        number !== null && number in portKinds
          ? portKinds[number as keyof typeof portKinds]
          : random.pick(Object.values(portKinds));
      if (kind === 'tcp') return tcpFor(random, rule, id);
      return {
        kind,
        sourcePort: portFor(random, rule, 'sourcePorts'),
        destinationPort: portFor(random, rule, 'destinationPorts'),
      };
    }
    if (number === (family === 4 ? protocolNumber.icmp : protocolNumber.icmp6)) return icmpFor(random, family);
    if (number !== null && !(family === 6 && walkedNumbers.includes(number))) return { kind: 'raw', protocol: number };
  }
  switch (random.pick(['tcp', 'udp', 'udp', 'udplite', 'sctp', 'dccp', 'icmp', 'raw'] as const)) {
    case 'tcp':
      return tcpFor(random, rule, id);
    case 'icmp':
      return icmpFor(random, family);
    case 'raw':
      return rawFor(random, family);
    case 'udplite':
      return { kind: 'udplite', sourcePort: random.pick(ports), destinationPort: random.pick(ports) };
    case 'sctp':
      return { kind: 'sctp', sourcePort: random.pick(ports), destinationPort: random.pick(ports) };
    case 'dccp':
      return { kind: 'dccp', sourcePort: random.pick(ports), destinationPort: random.pick(ports) };
    default:
      return {
        kind: 'udp',
        sourcePort: portFor(random, rule, 'sourcePorts'),
        destinationPort: portFor(random, rule, 'destinationPorts'),
      };
  }
}

const portKinds = { 6: 'tcp', 17: 'udp', 33: 'dccp', 132: 'sctp', 136: 'udplite' } as const;

function rawFor(random: Random, family: Family): Transport {
  for (;;) {
    const protocol = random.integer(0, 255);
    if (protocol in portKinds || (family === 6 && walkedNumbers.includes(protocol))) continue;
    if (protocol === (family === 4 ? protocolNumber.icmp : protocolNumber.icmp6)) continue;
    return { kind: 'raw', protocol };
  }
}

function icmpFor(random: Random, family: Family): Transport {
  return { kind: 'icmp', type: family === 4 ? random.pick([0, 3, 8, 11, 13]) : random.pick([1, 3, 128, 129]), code: 0 };
}

function tcpFor(random: Random, rule: Rule | undefined, id: number): Transport {
  const wanted = rule?.tcpFlags;
  let flags: number = random.pick(tcpFlagSets);
  if (wanted !== undefined && random.chance(0.8)) flags |= wanted;
  if (wanted !== undefined && random.chance(0.2)) flags &= ~(1 << random.integer(0, 7));
  return {
    kind: 'tcp',
    sourcePort: portFor(random, rule, 'sourcePorts'),
    destinationPort: portFor(random, rule, 'destinationPorts'),
    flags,
    // A reset acknowledges one of the two: either way it tells which packet it answers.
    sequence: id << 14,
    acknowledgement: id << 14,
    options: random.chance(rule?.protocol === 'mptcp' ? 0.8 : 0.2) ? optionsFor(random) : new Uint8Array(),
  };
}

/** With option 30, without it, behind others, and its number as another option's content. */
function optionsFor(random: Random): Uint8Array {
  return Uint8Array.from(
    random.pick([
      [30, 4, 0, 1],
      [2, 4, 5, 180, 30, 4, 0, 1],
      [1, 1, 30, 12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
      [2, 4, 30, 30],
      [8, 10, 30, 4, 0, 1, 30, 4, 0, 1],
      [1, 1, 1, 1],
    ]),
  );
}

function portFor(random: Random, rule: Rule | undefined, side: 'sourcePorts' | 'destinationPorts'): number {
  const range = rule?.[side];
  if (range === undefined || random.chance(0.15)) return random.pick(ports);
  const edges = [range.start, range.end, range.start, range.end, range.start - 1, range.end + 1];
  return random.pick(edges.filter((port) => port >= 0 && port <= 65535));
}
