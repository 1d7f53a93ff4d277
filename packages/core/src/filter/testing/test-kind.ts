/** A kind whose finding a test writes, with filters of it. Never used outside tests. */
import type { Packet } from '../../firewall/packet.ts';
import type { Filter } from '../filter.ts';
import { bothFamilies, type FilterKind, type KindEnforcement, to } from '../filter-kind.ts';

export function testKind(enforcement: Partial<KindEnforcement>, fields: Partial<FilterKind> = {}): FilterKind {
  return {
    id: 65_000,
    name: 'test',
    label: 'Test',
    description: 'Passes what a test wants.',
    limits: ['It is only for tests.'],
    families: bothFamilies,
    transports: ['udp'],
    destinationPorts: 'optional',
    defaultPorts: [to('udp', 7)],
    memory: 'source',
    needsReturnPath: false,
    enforcement: {
      tracking: 'nothing',
      settles: false,
      meters: [],
      judge: () => ({ outcome: 'pass', why: 'test' }),
      compile: () => ({}),
      vectors: [],
      ...enforcement,
    },
    ...fields,
  };
}

export function testFilter(kind: FilterKind, fields: Partial<Filter> = {}): Filter {
  return {
    uuid: 'filter',
    sequence: 1,
    priority: 1000,
    dst: { family: 4, value: 0xcb007107n, length: 32 },
    kind,
    ...fields,
  };
}

/** To the filter's destination and port. */
export function testPacket(fields: Partial<Packet> = {}): Packet {
  return {
    family: 4,
    source: 0xc6336401n,
    destination: 0xcb007107n,
    upperProtocol: 17,
    extensionHeaders: [],
    sourcePort: 40_000,
    destinationPort: 7,
    totalLengthBytes: 100,
    packetType: 'host',
    payload: new Uint8Array(72),
    ...fields,
  };
}
