/**
 * What a vector's steps are as packets, and the filter that they are sent through. Never sends or judges anything. Never
 * used outside tests.
 */
import type { Packet } from '../../firewall/packet.ts';
import { formatAddress } from '../../net/address.ts';
import type { Address, Family } from '../../net/prefix.ts';
import type { Filter } from '../filter.ts';
import type { FilterKind, KindEnforcement } from '../filter-kind.ts';
import type { FilterVector, VectorStep } from '../filter-vector.ts';
import { parseFilter } from '../parse-filter.ts';

const portWithoutDefault = 4000;

/** Where every vector is played: each family, unless it is about one. */
export function familiesOf(kind: FilterKind, { family }: FilterVector): readonly Family[] {
  return family === undefined ? kind.families : [family];
}

const firstClient: Readonly<Record<Family, bigint>> = { 4: 0x64400000n, 6: 0xfd77n << 112n };

/** Addresses of sources that no meter or memory takes for one. */
export function clientAddress(family: Family, number: bigint): bigint {
  return firstClient[family] + (family === 4 ? number : (number << 64n) + number);
}

/** A filter with nothing narrowed. `number`: no two filters of a table share it. */
export function vectorFilter(kind: FilterKind, dst: Address, number: number): Filter {
  const port = kind.destinationPorts === 'required' ? { port: { dst: { start: portWithoutDefault } } } : {};
  const uuid = `00000000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;
  const parsed = parseFilter({ dst: formatAddress(dst), filter: kind.id, ...port }, { uuid, sequence: number });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return { ...parsed.filter, kind };
}

/** The same filter with meters that no test exhausts: for runs that are about form and memory. */
export function withWideMeters(filter: Filter): Filter {
  return withEnforcement(filter, ({ meters }) => ({
    meters: meters.map((meter) => ({ ...meter, packetsPerSecond: 1_000_000, burst: 1_000_000 })),
  }));
}

/** The same filter with room for one source, or one flow, in its memory and in each of its meters. */
export function withRoomForOne(filter: Filter): Filter {
  return withEnforcement(filter, ({ meters, remembers }) => ({
    meters: meters.map((meter) => ({ ...meter, most: 1 })),
    ...(remembers && {
      remembers: { seconds: remembers.seconds, ...('flows' in remembers ? { flows: 1 } : { sources: 1 }) },
    }),
  }));
}

function withEnforcement(filter: Filter, change: (is: KindEnforcement) => Partial<KindEnforcement>): Filter {
  const { kind } = filter;
  return { ...filter, kind: { ...kind, enforcement: { ...kind.enforcement, ...change(kind.enforcement) } } };
}

function payloadOf(step: VectorStep, family: Family, client: bigint, server: bigint): Uint8Array {
  const octets = (value: bigint) => value.toString(16).padStart(family === 4 ? 8 : 32, '0');
  const digits = (step.payload ?? '')
    .replaceAll('{client}', octets(client))
    .replaceAll('{server}', octets(server))
    .replaceAll(/\s/g, '');
  if (!/^([0-9a-f]{2})*$/i.test(digits)) throw new Error(`not whole octets in hexadecimal: ${step.payload}`);
  return Uint8Array.from(Buffer.from(digits, 'hex'));
}

/** `client`: the address of the step's client. */
export function packetOf(step: VectorStep, filter: Filter, client: bigint): Packet {
  const { family, value: server } = filter.dst;
  const { from, transport } = step;
  const payload = payloadOf(step, family, client, server);
  const defaults = filter.kind.defaultPorts.find((each) => each.side === 'dst' && each.transport === transport);
  const ports = [step.clientPort ?? 40_000, step.serverPort ?? defaults?.start ?? portWithoutDefault] as const;
  const [sourcePort, destinationPort] = from === 'client' ? ports : [ports[1], ports[0]];
  return {
    family,
    source: from === 'client' ? client : server,
    destination: from === 'client' ? server : client,
    upperProtocol: transport === 'icmp' ? (family === 4 ? 1 : 58) : transport === 'tcp' ? 6 : 17,
    extensionHeaders: [],
    ...(transport !== 'icmp' && { sourcePort, destinationPort }),
    ...(transport === 'tcp' && { tcpFlags: step.flags ?? 0x10, tcpOptionKinds: [] }),
    ...(step.icmp && { icmpType: step.icmp.type, icmpCode: step.icmp.code }),
    totalLengthBytes: (family === 4 ? 20 : 40) + (transport === 'tcp' ? 20 : 8) + payload.length,
    packetType: 'host',
    payload,
  };
}
