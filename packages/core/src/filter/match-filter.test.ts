import assert from 'node:assert/strict';
import { test } from 'node:test';
import { to } from './filter-kind.ts';
import { type FilterMismatch, matchFilter } from './match-filter.ts';
import { testFilter, testKind, testPacket } from './testing/test-kind.ts';

const seven = testKind({});
const everyPort = testKind({}, { defaultPorts: [] });
const web = testKind(
  {},
  { transports: ['tcp', 'udp'], defaultPorts: [to('tcp', 80, 81), to('udp', 443), to('tcp', 443)] },
);
const echoes = testKind({}, { transports: ['icmp'], defaultPorts: [], destinationPorts: 'none' });
const reflectors = testKind({}, { defaultPorts: [{ side: 'src', transport: 'udp', start: 53, end: 53 }] });
const later = { fragment: { offsetBytes: 8, more: true } } as const;

/** [what, kind, filter, packet, mismatch; none: it is looked at] */
for (const [what, kind, fields, packet, mismatch] of [
  ['its port', seven, {}, {}, undefined],
  ['another port', seven, {}, { destinationPort: 8 }, 'destination_port'],
  ['a port that nobody told', seven, {}, { destinationPort: undefined }, 'destination_port_unknown'],
  ["a port of its own, not the kind's", seven, { destinationPorts: { start: 8, end: 9 } }, {}, 'destination_port'],
  ['a range of its own', seven, { destinationPorts: { start: 8, end: 9 } }, { destinationPort: 9 }, undefined],
  ['one of several ranges', web, {}, { upperProtocol: 6, destinationPort: 81 }, undefined],
  ["another transport's port", web, {}, { destinationPort: 80 }, 'destination_port'],
  ["the other transport's own port", web, {}, { destinationPort: 443 }, undefined],
  ['a source port', reflectors, {}, { sourcePort: 53 }, undefined],
  ['another source port', reflectors, {}, {}, 'source_port'],
  ['a source port that nobody told', reflectors, {}, { sourcePort: undefined }, 'source_port_unknown'],
  ['another transport', seven, {}, { upperProtocol: 6 }, 'protocol'],
  ['a transport that nobody told', seven, {}, { upperProtocol: undefined }, 'protocol_unknown'],
  ['UDP behind an authentication header', seven, {}, { upperProtocol: 51 }, 'protocol'],
  ['a later fragment, where ports are asked for', seven, {}, later, 'ports_not_visible'],
  ['a later fragment, where none are', everyPort, {}, later, undefined],
  ['another source', seven, { src: { family: 4, start: 1n, end: 9n } }, {}, 'source'],
  ['a source of its range', seven, { src: { family: 4, start: 0xc6336401n, end: 0xc6336401n } }, {}, undefined],
  ['another destination', seven, {}, { destination: 0xcb007108n }, 'destination'],
  ['a frame for somebody else', seven, {}, { packetType: 'other' }, 'packet_type'],
  ['an ICMP message', echoes, {}, { upperProtocol: 1 }, undefined],
  ["the other family's ICMP", echoes, {}, { upperProtocol: 58 }, 'protocol'],
] as const) {
  test(`${what}: ${mismatch ?? 'looked at'}`, () => {
    const filter = testFilter(kind, fields);
    const given = Object.entries({ ...testPacket(), ...packet }).filter(([, value]) => value !== undefined);
    const match = matchFilter(filter, Object.fromEntries(given) as unknown as ReturnType<typeof testPacket>);
    const found: FilterMismatch | undefined = match.matched ? undefined : match.mismatch;
    assert.equal(found, mismatch);
  });
}

test('the transport that is looked at is the one of the packet', () => {
  const match = matchFilter(testFilter(web), testPacket({ destinationPort: 443 }));
  assert.deepEqual(match, { matched: true, transport: 'udp' });
});
