/**
 * Packets aimed at filters: what the kinds' vectors hold, and what is just beside it, to ports that a filter looks at and
 * others. Must never ask the evaluator.
 */
import type { Filter } from '@levee/core/filter/filter.ts';
import type { VectorStep } from '@levee/core/filter/filter-vector.ts';
import { clientAddress, familiesOf, packetOf } from '@levee/core/filter/testing/vector-run.ts';
import type { Packet } from '@levee/core/firewall/packet.ts';
import type { PacketSpec, Transport } from '@levee/lab/packet-spec.ts';
import type { Random } from '@levee/lab/random.ts';
import { hardwareAddress } from '@levee/lab/router-path.ts';
import { neighboursOf } from '../filters/neighbours.ts';
import type { Turn } from '../filters/play.ts';
import { destinationWithin, sourceFor } from './random-packets.ts';
import { covers } from './random-rules.ts';
import { ports, trackedHosts } from './world.ts';

const fragmentHeaderBytes = 8;

/** One packet of one of the kind's vectors, from a source of few, so that what is remembered of it is met again. */
export function randomFilterPacket(random: Random, filter: Filter, id: number): PacketSpec | undefined {
  const steps = random.pick(vectorsOf(filter)).steps.filter(({ from }) => from === 'client');
  const step = random.pick(steps);
  const { family } = filter.dst;
  const destination = destinationWithin(random, filter.dst);
  if (destination === undefined) return undefined;
  const packet = perhapsBeside(random, aimed(random, filter, step, sourceFor(random, family, filter.src), destination));
  const fragment = random.chance(0.03) ? { offset: random.pick([0, 8]), more: true } : undefined;
  return {
    family,
    source: packet.source,
    destination,
    sourceHardware: hardwareAddress.attacker,
    destinationHardware: hardwareAddress.routerOutside,
    id,
    transport: transportOf(packet, id),
    payload: packet.payload ?? new Uint8Array(),
    totalLength: (packet.totalLengthBytes ?? 0) + (fragment && family === 6 ? fragmentHeaderBytes : 0),
    ...(fragment && { fragment }),
  };
}

/** One of the kind's vectors between a client of its own and a tracked host; at times with a packet that differs. `before`: so many clients have been. */
export function randomConversation(random: Random, filter: Filter, before: bigint): Turn[] {
  const { family } = filter.dst;
  const reachable = trackedHosts[family].filter((value) =>
    covers(filter.dst, { family, value, length: family === 4 ? 32 : 128 }),
  );
  if (reachable.length === 0) return [];
  const host = random.pick(reachable);
  const port = portFor(random, filter);
  const differs = random.chance(0.4);
  return random.pick(vectorsOf(filter)).steps.map((step): Turn => {
    const to = port === undefined || step.serverPort !== undefined ? step : { ...step, serverPort: port };
    const packet = packetOf(to, at(filter, host), clientAddress(family, before + BigInt(step.client ?? 1)));
    return { from: step.from, packet: differs && step.from === 'client' ? perhapsBeside(random, packet) : packet };
  });
}

function vectorsOf({ kind, dst }: Filter) {
  const vectors = kind.enforcement.vectors.filter((vector) => familiesOf(kind, vector).includes(dst.family));
  if (vectors.length === 0) throw new Error(`${kind.name} has no vectors for IPv${dst.family}`);
  return vectors;
}

function at(filter: Filter, host: bigint): Filter {
  const { family } = filter.dst;
  return { ...filter, dst: { family, value: host, length: family === 4 ? 32 : 128 } };
}

/** A port of the filter's own; undefined: the kind's. */
function portFor(random: Random, { destinationPorts }: Filter): number | undefined {
  return destinationPorts && random.pick([destinationPorts.start, destinationPorts.end]);
}

function aimed(random: Random, filter: Filter, step: VectorStep, source: bigint, destination: bigint): Packet {
  const port = random.chance(0.1) ? random.pick(ports) : portFor(random, filter);
  const to = port === undefined || step.transport === 'icmp' ? step : { ...step, serverPort: port };
  return packetOf(to, at(filter, destination), source);
}

function perhapsBeside(random: Random, packet: Packet): Packet {
  if (random.chance(0.6)) return packet;
  const before = packet.payload ?? new Uint8Array();
  const [payload] = neighboursOf(before, random, 1);
  if (payload === undefined) return packet;
  const totalLengthBytes = (packet.totalLengthBytes ?? 0) + payload.length - before.length;
  return { ...packet, payload, totalLengthBytes };
}

function transportOf(packet: Packet, id: number): Transport {
  const { upperProtocol, sourcePort = 0, destinationPort = 0, tcpFlags, icmpType = 0, icmpCode = 0 } = packet;
  if (upperProtocol === 17) return { kind: 'udp', sourcePort, destinationPort };
  if (tcpFlags === undefined) return { kind: 'icmp', type: icmpType, code: icmpCode };
  // The router's answer tells by these which packet it answers.
  return { kind: 'tcp', sourcePort, destinationPort, flags: tcpFlags, sequence: id << 14, acknowledgement: id << 14 };
}
