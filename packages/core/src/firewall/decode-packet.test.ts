import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodePacket } from './decode-packet.ts';
import { evaluate } from './evaluate.ts';
import type { Packet } from './packet.ts';
import { parseRule } from './parse.ts';

const surroundings = { packetType: 'host' } as const;
const bytes = (...parts: readonly (readonly number[] | Uint8Array)[]) =>
  Uint8Array.from(parts.flatMap((part) => [...part]));
const word = (value: number) => [value >>> 8, value & 255];

function ipv6(next: number, ...payload: readonly (readonly number[])[]): Uint8Array {
  const body = payload.flat();
  const address = (last: number) => [0x20, 0x01, 0x0d, 0xb8, ...Array(11).fill(0), last];
  return bytes([0x60, 0, 0, 0], word(body.length), [next, 64], address(1), address(7), body);
}

function ipv4(
  protocol: number,
  body: readonly number[],
  fragmentField = 0,
  options: readonly number[] = [],
): Uint8Array {
  const headerLength = 20 + options.length;
  return bytes(
    [0x40 | (headerLength / 4), 0],
    word(headerLength + body.length),
    [0, 1],
    word(fragmentField),
    [64, protocol, 0, 0],
    [198, 51, 100, 1],
    [203, 0, 113, 7],
    options,
    body,
  );
}

const tcp = [...word(1000), ...word(80), 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x12, 0, 100, 0, 0, 0, 0];
const udp = [...word(1000), ...word(80), ...word(12), 0, 0, 1, 2, 3, 4];
const optionsHeader = (next: number) => [next, 0, 1, 4, 0, 0, 0, 0];
const authentication = (next: number) => [next, 4, ...Array(22).fill(0)];
const fragment = (next: number, offset: number, more: 0 | 1) => [next, 0, ...word(offset | more), 0, 0, 0, 7];

function decode(packet: Uint8Array): Packet {
  const decoded = decodePacket(packet, surroundings);
  assert.ok(decoded.ok, decoded.ok ? '' : decoded.reason);
  return decoded.packet;
}

/** [what, packet, upper protocol, extension headers, ports shown]: as kernel 6.18 matched them, by counters. */
const seenByTheKernel: readonly (readonly [string, Uint8Array, number | undefined, readonly number[], boolean])[] = [
  ['tcp', ipv6(6, tcp), 6, [], true],
  ['ah, tcp', ipv6(51, authentication(6), tcp), 51, [], false],
  ['hop-by-hop, tcp', ipv6(0, optionsHeader(6), tcp), 6, [0], true],
  ['destination options, udp', ipv6(60, optionsHeader(17), udp), 17, [60], true],
  ['destination options, ah, tcp', ipv6(60, optionsHeader(51), authentication(6), tcp), 51, [60], false],
  ['ah, destination options, tcp', ipv6(51, authentication(60), optionsHeader(6), tcp), 51, [60], false],
  ['first fragment, tcp', ipv6(44, fragment(6, 0, 1), tcp), 6, [44], true],
  ['later fragment of tcp', ipv6(44, fragment(6, 8, 0), tcp), 6, [44], false],
  [
    'later fragment of destination options',
    ipv6(44, fragment(60, 8, 0), optionsHeader(17), udp),
    undefined,
    [44],
    false,
  ],
  ['later fragment of ah', ipv6(44, fragment(51, 8, 0), authentication(6)), 51, [44], false],
  ['later fragment of nothing', ipv6(44, fragment(59, 8, 0), udp), 59, [44], false],
  ['atomic fragment, udp', ipv6(44, fragment(17, 0, 0), udp), 17, [44], true],
  ['hop-by-hop, later fragment of udp', ipv6(0, optionsHeader(44), fragment(17, 8, 0), udp), 17, [0, 44], false],
  ['nothing', ipv6(59), 59, [], false],
  ['destination options, nothing', ipv6(60, optionsHeader(59)), 59, [60], false],
  ['nothing, with bytes behind', ipv6(59, udp), 59, [], false],
  ['mobility header', ipv6(135, [59, 0, 0, 0, 0, 0, 0, 0]), 135, [], false],
  [
    'destination options, mobility header',
    ipv6(60, optionsHeader(135), [6, 0, 0, 0, 0, 0, 0, 0], tcp),
    135,
    [60],
    false,
  ],
  ['routing, udp', ipv6(43, [17, 0, 0, 0, 0, 0, 0, 0], udp), 17, [43], true],
  ['four octets of udp', ipv6(17, udp.slice(0, 4)), 17, [], true],
  ['two octets of udp', ipv6(17, udp.slice(0, 2)), 17, [], false],
  ['one octet of destination options', ipv6(60, [17]), undefined, [], false],
  ['three octets of routing', ipv6(43, [17, 0, 0]), undefined, [], false],
  ['one octet of ah', ipv6(51, [6]), undefined, [], false],
  ['two octets of ah', ipv6(51, [6, 4]), 51, [], false],
];

for (const [what, packet, upperProtocol, extensionHeaders, showsPorts] of seenByTheKernel) {
  test(`IPv6 with ${what} is read as the kernel reads it`, () => {
    const decoded = decode(packet);
    assert.equal(decoded.upperProtocol, upperProtocol);
    assert.deepEqual(decoded.extensionHeaders, extensionHeaders);
    assert.deepEqual([decoded.sourcePort, decoded.destinationPort], showsPorts ? [1000, 80] : [undefined, undefined]);
    assert.equal(decoded.totalLengthBytes, packet.length);
  });
}

test('a TCP packet shows its addresses, ports, flags, options and payload', () => {
  const withOptions = [...tcp.slice(0, 12), 0x80, 0x02, ...tcp.slice(14), 2, 4, 5, 0xb4, 1, 30, 4, 0, 1, 0, 0, 0];
  assert.deepEqual(decode(ipv4(6, [...withOptions, 7, 8])), {
    family: 4,
    source: 0xc6336401n,
    destination: 0xcb007107n,
    upperProtocol: 6,
    extensionHeaders: [],
    sourcePort: 1000,
    destinationPort: 80,
    tcpFlags: 0x02,
    tcpOptionKinds: [2, 30],
    payload: Uint8Array.of(7, 8),
    totalLengthBytes: 54,
    packetType: 'host',
  });
});

/** [options, whether kernel 6.18 found option 30 in them] */
for (const [options, found] of [
  [[1, 1, 30, 2], true],
  [[1, 1, 30, 3], false],
  [[1, 1, 1, 30], false],
  [[0, 30, 2, 0], true],
  [[30, 0, 1, 1], true],
  [[1, 30, 1, 1], true],
  [[5, 0, 30, 2], true],
  [[5, 1, 30, 2], true],
  [[2, 4, 5, 30], false],
  [[30, 3, 0, 30, 2, 1, 1, 1], true],
] as const) {
  test(`the TCP options ${options.join(' ')} ${found ? 'hold' : 'do not hold'} option 30`, () => {
    const header = [...tcp.slice(0, 12), (20 + options.length) * 4, ...tcp.slice(13), ...options];
    assert.equal(decode(ipv4(6, header)).tcpOptionKinds?.includes(30), found);
  });
}

test('a TCP header that is cut short, or states less than 20 octets, shows no options', () => {
  for (const dataOffset of [0x70, 0x40]) {
    const header = [...tcp.slice(0, 12), dataOffset, ...tcp.slice(13), 30, 4, 0, 0];
    assert.equal(decode(ipv4(6, header)).tcpOptionKinds, undefined);
  }
});

test('an ICMP message shows its type, its code and what follows its eight octets; another family’s shows nothing', () => {
  const echo = [8, 1, 0xf7, 0xff, 0, 7, 0, 1, 0xaa];
  const { icmpType, icmpCode, payload } = decode(ipv4(1, echo));
  assert.deepEqual([icmpType, icmpCode, payload], [8, 1, Uint8Array.of(0xaa)]);
  assert.deepEqual(decode(ipv6(58, echo)).icmpType, 8);
  for (const foreign of [decode(ipv4(58, echo)), decode(ipv6(1, echo))]) assert.equal(foreign.icmpType, undefined);
  assert.deepEqual(decode(ipv4(1, [8])).payload, new Uint8Array());
});

test('a packet that ends inside its transport header has an empty payload', () => {
  for (const [protocol, header] of [
    [17, udp],
    [6, tcp],
  ] as const) {
    for (const kept of [0, 3, 7]) {
      assert.deepEqual(decode(ipv4(protocol, header.slice(0, kept))).payload, new Uint8Array());
    }
  }
});

test('an IPv4 fragment tells its place; a later one shows no ports; "do not fragment" is none', () => {
  assert.deepEqual(decode(ipv4(17, udp, 0x2000)).fragment, { offsetBytes: 0, more: true });
  assert.equal(decode(ipv4(17, udp, 0x2000)).destinationPort, 80);
  assert.deepEqual(decode(ipv4(17, udp, 0x00b9)).fragment, { offsetBytes: 1480, more: false });
  assert.equal(decode(ipv4(17, udp, 0x00b9)).destinationPort, undefined);
  assert.equal(decode(ipv4(17, udp, 0x4000)).fragment, undefined);
});

test('IPv4 options are stepped over, padding behind the packet is ignored', () => {
  const packet = ipv4(17, udp, 0, [7, 4, 4, 0]);
  const decoded = decode(bytes(packet, Array(18).fill(0xff)));
  assert.equal(decoded.destinationPort, 80);
  assert.equal(decoded.totalLengthBytes, 36);
  assert.deepEqual(decoded.payload, Uint8Array.of(1, 2, 3, 4));
});

for (const [what, packet, reason] of [
  ['nothing', bytes(), 'no_ip_version'],
  ['ARP', bytes([0, 1, 8, 0]), 'no_ip_version'],
  ['a piece of an IPv4 header', ipv4(17, udp).subarray(0, 19), 'truncated'],
  ['a piece of an IPv4 packet', ipv4(17, udp).subarray(0, 30), 'truncated'],
  ['a piece of an IPv6 packet', ipv6(17, udp).subarray(0, 45), 'truncated'],
  ['an IPv4 header length below 20', bytes([0x44], ipv4(17, udp).subarray(1)), 'malformed_header'],
] as const) {
  test(`${what} is no packet: ${reason}`, () => {
    assert.deepEqual(decodePacket(packet, surroundings), { ok: false, reason });
  });
}

test('no bytes make it throw, and whatever is a packet can be evaluated', () => {
  const parsed = parseRule({ dst: '::/0', protocol: 'mptcp', action: 'drop' }, { uuid: 'u', sequence: 1 });
  assert.ok(parsed.ok);
  const header = fc.constantFrom(0, 6, 17, 43, 44, 51, 59, 60, 132, 135, 253);
  const hostile = fc.oneof(
    fc.uint8Array({ maxLength: 100 }),
    fc
      .tuple(header, fc.array(fc.tuple(header, fc.array(fc.nat(255), { maxLength: 23 })), { maxLength: 6 }))
      .map(([next, parts]) => ipv6(next, ...parts.map(([following, rest]) => [following, ...rest]))),
  );
  let packets = 0;
  fc.assert(
    fc.property(hostile, (given) => {
      const decoded = decodePacket(given, surroundings);
      if (!decoded.ok) return;
      packets += 1;
      assert.ok(['accept', 'drop'].includes(evaluate([parsed.rule], decoded.packet).verdict));
    }),
    { numRuns: 5000 },
  );
  assert.ok(packets > 1000);
});
