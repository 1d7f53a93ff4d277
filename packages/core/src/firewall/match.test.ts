import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ProtocolName, protocolNames, protocolNumbers } from '@levee/contract/protocols.ts';
import { parseAddress } from '../net/address.ts';
import { prefixFromTrusted } from '../net/prefix-text.ts';
import { findMismatch } from './match.ts';
import type { Packet } from './packet.ts';
import { parseRule } from './parse.ts';
import { extensionHeaderNames } from './protocol-traits.ts';
import type { Rule } from './rule.ts';

function rule(wire: object): Rule {
  const parsed = parseRule(
    { dst: '203.0.113.0/24', protocol: 'any', action: 'drop', ...wire },
    { uuid: 'u', sequence: 1 },
  );
  assert.ok(parsed.ok, parsed.ok ? '' : JSON.stringify(parsed.problems));
  return parsed.rule;
}

function value(text: string): bigint {
  const read = parseAddress(text);
  assert.ok(read.ok);
  return read.address.value;
}

/** An IPv4 UDP packet from a resolver. */
const packet: Packet = {
  family: 4,
  source: value('198.51.100.1'),
  destination: value('203.0.113.7'),
  upperProtocol: 17,
  extensionHeaders: [],
  sourcePort: 53,
  destinationPort: 40_000,
  totalLengthBytes: 100,
  packetType: 'host',
  connectionState: 'new',
};
const tcp: Packet = { ...packet, upperProtocol: 6, tcpFlags: 0x12, tcpOptionKinds: [2, 4] };
const packet6: Packet = { ...packet, family: 6, source: value('2001:db8:1::1'), destination: value('2001:db8::7') };
const six = { dst: '2001:db8::/64' };
const later = { offsetBytes: 1480, more: false };
const first = { offsetBytes: 0, more: true };

const table: readonly (readonly [string, object, Packet, ReturnType<typeof findMismatch>])[] = [
  ['no condition matches', {}, packet, undefined],
  ['a disabled rule', { disabled: true }, packet, 'disabled'],
  ['the first address of dst', {}, { ...packet, destination: value('203.0.113.0') }, undefined],
  ['the last address of dst', {}, { ...packet, destination: value('203.0.113.255') }, undefined],
  ['the address after dst', {}, { ...packet, destination: value('203.0.114.0') }, 'destination'],
  ['the other family', { dst: '0.0.0.0/0' }, packet6, 'destination'],
  ['the family’s whole space', { dst: '::/0' }, packet6, undefined],
  ['the first address of src', { src: { start: '198.51.100.1', end: '198.51.100.3' } }, packet, undefined],
  ['the last address of src', { src: { start: '198.51.99.9', end: '198.51.100.1' } }, packet, undefined],
  ['below src', { src: { start: '198.51.100.2', end: '198.51.100.3' } }, packet, 'source'],
  ['above src', { src: { start: '198.51.99.0', end: '198.51.100.0' } }, packet, 'source'],
  ['a src subnet', { src: { start: '198.51.100.0/24' } }, packet, undefined],
  ['packettype', { packettype: 'host' }, packet, undefined],
  ['another packettype', { packettype: 'multicast' }, packet, 'packet_type'],
  ['no packettype matches all types', {}, { ...packet, packetType: 'broadcast' }, undefined],

  ['udp', { protocol: 'udp' }, packet, undefined],
  ['tcp is not udp', { protocol: 'tcp' }, packet, 'protocol'],
  ['an unknown protocol', { protocol: 'tcp' }, withoutProtocol(packet), 'protocol_unknown'],
  ['any on an unknown protocol', {}, withoutProtocol(packet), undefined],
  ['ip', { protocol: 'ip' }, packet, undefined],
  ['udp of a later fragment', { protocol: 'udp' }, { ...packet, fragment: later }, undefined],
  ['hopopt for IPv4 is protocol number 0', { protocol: 'hopopt' }, { ...packet, upperProtocol: 0 }, undefined],
  ['ipv6-frag for IPv4 is not fragmentation', { protocol: 'ipv6-frag' }, { ...packet, fragment: first }, 'protocol'],
  ['ipv6-frag for IPv4 is protocol number 44', { protocol: 'ipv6-frag' }, { ...packet, upperProtocol: 44 }, undefined],
  ['ipv6-frag for IPv6', { ...six, protocol: 'ipv6-frag' }, { ...packet6, extensionHeaders: [60, 44] }, undefined],
  [
    'ipv6-frag of a later fragment',
    { ...six, protocol: 'ipv6-frag' },
    { ...packet6, extensionHeaders: [44], fragment: later },
    undefined,
  ],
  [
    'no fragment header',
    { ...six, protocol: 'ipv6-frag' },
    { ...packet6, extensionHeaders: [60] },
    'extension_header_absent',
  ],
  ['udp behind extension headers', { ...six, protocol: 'udp' }, { ...packet6, extensionHeaders: [0, 60] }, undefined],
  [
    'an upper protocol that a later fragment hides',
    { ...six, protocol: 'udp' },
    { ...withoutProtocol(packet6), extensionHeaders: [44], fragment: later },
    'protocol_unknown',
  ],
  ['ah for IPv6', { ...six, protocol: 'ah' }, { ...packet6, upperProtocol: 51 }, undefined],
  ['ah for IPv4', { protocol: 'ah' }, { ...packet, upperProtocol: 51 }, undefined],
  ['tcp behind ah', { ...six, protocol: 'tcp' }, { ...packet6, upperProtocol: 51 }, 'protocol'],
  [
    'a header behind ah',
    { ...six, protocol: 'ipv6-opts' },
    { ...packet6, upperProtocol: 51, extensionHeaders: [60] },
    undefined,
  ],
  ['mobility-header for IPv6', { ...six, protocol: 'mobility-header' }, { ...packet6, upperProtocol: 135 }, undefined],
  ['ipv6-nonxt', { ...six, protocol: 'ipv6-nonxt' }, { ...packet6, upperProtocol: 59 }, undefined],
  ['ipip is 94, not 4', { protocol: 'ipip' }, { ...packet, upperProtocol: 4 }, 'protocol'],
  ['ipencap is 4', { protocol: 'ipencap' }, { ...packet, upperProtocol: 4 }, undefined],

  ['mptcp', { protocol: 'mptcp' }, { ...tcp, tcpOptionKinds: [2, 30] }, undefined],
  ['mptcp is tcp', { protocol: 'tcp' }, { ...tcp, tcpOptionKinds: [30] }, undefined],
  ['plain tcp is not mptcp', { protocol: 'mptcp' }, tcp, 'mptcp_option_absent'],
  ['udp is not mptcp', { protocol: 'mptcp' }, packet, 'protocol'],
  ['tcp with unknown options', { protocol: 'mptcp' }, { ...packet, upperProtocol: 6 }, 'mptcp_option_unknown'],
  [
    'options of a later fragment',
    { protocol: 'mptcp' },
    { ...tcp, tcpOptionKinds: [30], fragment: later },
    'mptcp_option_not_visible',
  ],
  ['an unknown protocol may be mptcp', { protocol: 'mptcp' }, withoutProtocol(packet), 'protocol_unknown'],

  ['source port', { protocol: 'udp', port: { src: { start: 53 } } }, packet, undefined],
  ['another source port', { protocol: 'udp', port: { src: { start: 54 } } }, packet, 'source_port'],
  [
    'source port is not destination port',
    { protocol: 'udp', port: { dst: { start: 53 } } },
    packet,
    'destination_port',
  ],
  [
    'the ends of a port range',
    { port: { src: { start: 50, end: 53 }, dst: { start: 40_000, end: 40_001 } } },
    packet,
    undefined,
  ],
  ['both ports must match', { port: { src: { start: 53 }, dst: { start: 1 } } }, packet, 'destination_port'],
  ['port 0', { port: { dst: { start: 0 } } }, { ...packet, destinationPort: 0 }, undefined],
  ['any with ports on sctp', { port: { src: { start: 53 } } }, { ...packet, upperProtocol: 132 }, undefined],
  [
    'any with all ports wants ports',
    { port: { dst: { start: 0, end: 65535 } } },
    { ...packet, upperProtocol: 1 },
    'protocol_without_ports',
  ],
  [
    'any with ports on esp',
    { port: { dst: { start: 40_000 } } },
    { ...packet, upperProtocol: 50 },
    'protocol_without_ports',
  ],
  [
    'any with ports on an unknown protocol',
    { port: { dst: { start: 40_000 } } },
    withoutProtocol(packet),
    'protocol_unknown',
  ],
  ['ports of a first fragment', { port: { dst: { start: 40_000 } } }, { ...packet, fragment: first }, undefined],
  [
    'ports of a later fragment',
    { port: { dst: { start: 40_000 } } },
    { ...packet, fragment: later },
    'ports_not_visible',
  ],
  ['an unknown source port', { port: { src: { start: 53 } } }, without(packet, 'sourcePort'), 'source_port_unknown'],
  [
    'an unknown destination port',
    { port: { dst: { start: 53 } } },
    without(packet, 'destinationPort'),
    'destination_port_unknown',
  ],

  ['all listed flags set', { protocol: 'tcp', tcpflags: ['syn', 'ack'] }, tcp, undefined],
  ['flags beyond the listed', { protocol: 'tcp', tcpflags: ['syn'] }, { ...tcp, tcpFlags: 0xff }, undefined],
  ['one listed flag is missing', { protocol: 'tcp', tcpflags: ['syn', 'rst'] }, tcp, 'tcp_flags'],
  ['no flags', { protocol: 'tcp', tcpflags: ['syn'] }, { ...tcp, tcpFlags: 0 }, 'tcp_flags'],
  ['unknown flags', { protocol: 'tcp', tcpflags: ['syn'] }, without(tcp, 'tcpFlags'), 'tcp_flags_unknown'],
  [
    'flags of a later fragment',
    { protocol: 'tcp', tcpflags: ['syn'] },
    { ...tcp, fragment: later },
    'tcp_flags_not_visible',
  ],

  ['the exact length', { packetlength: 100 }, packet, undefined],
  ['another length', { packetlength: 99 }, packet, 'packet_length'],
  ['an unknown length', { packetlength: 99 }, without(packet, 'totalLengthBytes'), 'packet_length_unknown'],
  ['the connection state', { statetype: 'new' }, packet, undefined],
  ['another connection state', { statetype: 'established' }, packet, 'connection_state'],
  ['an untracked packet', { statetype: 'invalid' }, without(packet, 'connectionState'), 'connection_state_unknown'],
];

function without(given: Packet, name: keyof Packet): Packet {
  const { [name]: _, ...rest } = given;
  return rest as Packet;
}

function withoutProtocol(given: Packet): Packet {
  return without(given, 'upperProtocol');
}

for (const [what, wire, given, expected] of table) {
  test(`${what}: ${expected ?? 'matches'}`, () => assert.equal(findMismatch(rule(wire), given), expected));
}

test('a rule with a protocol number matches exactly that number in IPv4', () => {
  for (const protocol of protocolNames.filter((name) => protocolNumbers[name] !== null && name !== 'ipv6-icmp')) {
    const wanted = rule({ protocol });
    for (let number = 0; number < 256; number += 1) {
      const matches = findMismatch(wanted, { ...packet, upperProtocol: number }) === undefined;
      assert.equal(matches, number === protocolNumbers[protocol], `${protocol} on ${number}`);
    }
  }
});

test('in IPv6 an extension header’s word asks for its presence, every other word for the upper protocol alone', () => {
  const isHeader = (name: ProtocolName) => extensionHeaderNames.some((header) => header === name);
  for (const protocol of protocolNames) {
    const number = protocolNumbers[protocol];
    if (number === null || protocol === 'icmp') continue;
    const wanted = rule({ ...six, protocol });
    const asHeader = findMismatch(wanted, { ...packet6, upperProtocol: 253, extensionHeaders: [number] });
    assert.equal(asHeader === undefined, isHeader(protocol), protocol);
    assert.equal(findMismatch(wanted, { ...packet6, upperProtocol: number }), undefined, protocol);
  }
});

test('every port transport, and only these, can match a rule with ports', () => {
  const wanted = rule({ port: { dst: { start: 40_000 } } });
  const matching = Array.from({ length: 256 }, (_, number) => number).filter(
    (number) => findMismatch(wanted, { ...packet, upperProtocol: number }) === undefined,
  );
  assert.deepEqual(matching, [6, 17, 33, 132, 136]);
});

test('a destination prefix holds its own addresses only', () => {
  const narrow: Rule = { ...rule({}), dst: prefixFromTrusted('203.0.113.7') };
  assert.equal(findMismatch(narrow, packet), undefined);
  assert.equal(findMismatch(narrow, { ...packet, destination: packet.destination + 1n }), 'destination');
});
