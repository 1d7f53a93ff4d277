/**
 * Owns what a few sampled packets say of an attack: where most of them came from, and by which ports. Never more than
 * ten of each: a list of forged sources helps nobody.
 */
import { formatAddress, parseAddress } from '../net/address.ts';
import type { Address } from '../net/prefix.ts';

export interface SampledPacket {
  readonly source: string;
  readonly destination: string;
  /** 0: the protocol has none, or it is not known. */
  readonly sourcePort: number;
  readonly destinationPort: number;
  /** How many packets it stands for. */
  readonly packets: number;
}

export interface Tally {
  readonly topSources: readonly { readonly source: string; readonly share: number }[];
  readonly topSourcePorts: readonly { readonly port: number; readonly share: number }[];
  readonly topDestinationPorts: readonly { readonly port: number; readonly share: number }[];
}

/** Beyond them a dump is not looked at. */
export const mostPackets = 2000;
const listed = 10;

/** Only packets to the target count. Undefined: there are none. Shares are of all that count, to four places. */
export function tallyPackets(packets: readonly SampledPacket[], target: Address): Tally | undefined {
  const aimed = formatAddress(target);
  const sources = new Map<string, number>();
  const sourcePorts = new Map<number, number>();
  const destinationPorts = new Map<number, number>();
  let total = 0;
  const add = <Key>(counts: Map<Key, number>, key: Key, by: number) => counts.set(key, (counts.get(key) ?? 0) + by);
  for (const packet of packets) {
    const source = parseAddress(packet.source);
    const destination = parseAddress(packet.destination);
    if (!source.ok || !destination.ok || formatAddress(destination.address) !== aimed) continue;
    total += packet.packets;
    add(sources, formatAddress(source.address), packet.packets);
    if (packet.sourcePort > 0) add(sourcePorts, packet.sourcePort, packet.packets);
    if (packet.destinationPort > 0) add(destinationPorts, packet.destinationPort, packet.packets);
  }
  if (total === 0) return undefined;
  const top = <Key, Name extends string>(counts: Map<Key, number>, name: Name) =>
    [...counts]
      .sort((a, b) => b[1] - a[1])
      .slice(0, listed)
      .map(([key, count]) => ({ [name]: key, share: Math.round((count / total) * 10_000) / 10_000 })) as unknown as ({
      readonly [each in Name]: Key;
    } & { readonly share: number })[];
  return {
    topSources: top(sources, 'source'),
    topSourcePorts: top(sourcePorts, 'port'),
    topDestinationPorts: top(destinationPorts, 'port'),
  };
}

/** FastNetMon's `packet_dump_detailed`, of any type as it was received; what is no packet is left out. */
export function readPacketDump(dump: unknown): SampledPacket[] {
  if (!Array.isArray(dump)) return [];
  return dump.slice(0, mostPackets).flatMap((entry: unknown) => {
    const { source_ip, destination_ip, source_port, destination_port, packets } = (entry ?? {}) as Record<
      string,
      unknown
    >;
    if (typeof source_ip !== 'string' || typeof destination_ip !== 'string') return [];
    return [
      {
        source: source_ip,
        destination: destination_ip,
        sourcePort: portOf(source_port),
        destinationPort: portOf(destination_port),
        packets:
          typeof packets === 'number' && Number.isInteger(packets) && packets > 0 && packets < 2 ** 32 ? packets : 1,
      },
    ];
  });
}

function portOf(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= 65535 ? value : 0;
}
