/** Sampled headers of every kind, inside sFlow samples: what is under the link layer, and what cannot be read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ethernet, flowSample, headerRecord, ipv4, ipv6, sflow, tcp, u8, u16, u32, udp } from './testing/build.ts';
import { decodeAll, type ReadRecord } from './testing/decode-all.ts';

const ETHERNET = 1;
const dns = udp(53, 4000);
const plain = ipv4(17, dns);
const plain6 = ipv6(17, dns);
const bottom = (label: number, isLast: boolean) => u32(label * 4096 + (isLast ? 256 : 0) + 64);
const extension = (next: number, octets = 8) => Buffer.concat([u8(next, octets / 8 - 1), Buffer.alloc(octets - 2)]);
const fragment6 = (next: number, offset: number, more: number) =>
  Buffer.concat([u8(next, 0), u16(offset * 8 + more), u32(9)]);
const authentication = (next: number) => Buffer.concat([u8(next, 4), Buffer.alloc(22)]);

/** Everything that differs from a UDP packet from port 53 to port 4000 of the given family. */
const same4 = {
  family: 4,
  protocol: 17,
  sourcePort: 53,
  destinationPort: 4000,
  bytes: 60,
  fragment: 0,
  ttl: 61,
} as const;
const same6 = { ...same4, family: 6, bytes: 80, ttl: 62 } as const;

const readable: readonly [string, number, Buffer, Partial<ReadRecord>][] = [
  ['Ethernet', ETHERNET, ethernet(0x0800, plain), same4],
  ['an 802.1Q tag', ETHERNET, ethernet(0x0800, plain, 0x8100, 7), same4],
  ['an 802.1ad tag around an 802.1Q tag', ETHERNET, ethernet(0x86dd, plain6, 0x88a8, 7, 0x8100, 8), same6],
  ['four tags of older numbers', ETHERNET, ethernet(0x0800, plain, 0x9100, 1, 0x9200, 2, 0x9300, 3, 0x8100, 4), same4],
  ['LLC and SNAP', ETHERNET, ethernet(68, Buffer.concat([u32(0xaaaa0300), u16(0, 0x0800), plain])), same4],
  ['one MPLS label', ETHERNET, ethernet(0x8847, Buffer.concat([bottom(16, true), plain])), same4],
  [
    'three MPLS labels under a tag',
    ETHERNET,
    ethernet(0x8847, Buffer.concat([bottom(16, false), bottom(17, false), bottom(2, true), plain6]), 0x8100, 5),
    same6,
  ],
  [
    'a pseudowire with a control word',
    ETHERNET,
    ethernet(0x8848, Buffer.concat([bottom(16, true), u32(1), ethernet(0x0800, plain, 0x8100, 5)])),
    same4,
  ],
  ['PPPoE', ETHERNET, ethernet(0x8864, Buffer.concat([u8(0x11, 0), u16(1, 62, 0x0021), plain])), same4],
  [
    'PPPoE with IPv6 under a tag',
    ETHERNET,
    ethernet(0x8864, Buffer.concat([u8(0x11, 0), u16(1, 82, 0x0057), plain6]), 0x8100, 5),
    same6,
  ],
  ['PPP with address and control', 7, Buffer.concat([u16(0xff03, 0x0021), plain]), same4],
  ['PPP with a protocol of one octet', 7, Buffer.concat([u8(0x57), plain6]), same6],
  ['MPLS in PPP', 14, Buffer.concat([u16(0x0281), bottom(16, true), plain]), same4],
  ['bare IPv4', 11, plain, same4],
  ['bare IPv6', 12, plain6, same6],
  ['bare MPLS', 13, Buffer.concat([bottom(16, true), plain6]), same6],
  ['IPv4 options', 11, ipv4(17, dns, { options: Buffer.alloc(12) }), { ...same4, bytes: 72 }],
  [
    'a frame filled up to 60 octets',
    ETHERNET,
    Buffer.concat([ethernet(0x0800, ipv4(17, udp(53, 4000, 0))), Buffer.alloc(18)]),
    { ...same4, bytes: 28, headerLength: 28 },
  ],
  [
    'a sample that ends with the IP header',
    11,
    plain.subarray(0, 20),
    { ...same4, sourcePort: 0, destinationPort: 0, headerLength: 20 },
  ],
  [
    'TCP flags',
    11,
    ipv4(6, tcp(1000, 443, 0x12)),
    { protocol: 6, tcpFlags: 0x12, sourcePort: 1000, destinationPort: 443 },
  ],
  [
    'a sample that ends before TCP flags',
    11,
    ipv4(6, tcp(1000, 443, 0x12)).subarray(0, 33),
    { protocol: 6, tcpFlags: 0, destinationPort: 443 },
  ],
  ['ICMP', 11, ipv4(1, u8(3, 4, 0, 0)), { protocol: 1, icmp: 0x0304, destinationPort: 0 }],
  [
    'GRE, of which the inside is not looked at',
    11,
    ipv4(47, Buffer.concat([u16(0, 0x0800), plain])),
    { protocol: 47, sourcePort: 0, icmp: -1 },
  ],
  ['a first fragment', 11, ipv4(17, dns, { fragment: 0x2000 }), { ...same4, fragment: 1 }],
  [
    'a later fragment, which has no ports',
    11,
    ipv4(17, dns, { fragment: 0x20b9 }),
    { ...same4, fragment: 2, sourcePort: 0, destinationPort: 0 },
  ],
  [
    'a last fragment',
    11,
    ipv4(17, dns, { fragment: 0x00b9 }),
    { ...same4, fragment: 2, sourcePort: 0, destinationPort: 0 },
  ],
  [
    'a segment that is cut later, its total length 0',
    ETHERNET,
    ethernet(0x0800, ipv4(17, dns, { total: 0 })),
    { ...same4, bytes: 1486 },
  ],
  [
    'a jumbogram',
    ETHERNET,
    ethernet(0x86dd, ipv6(0, Buffer.concat([extension(17), dns]), 0)),
    { ...same6, bytes: 1486 },
  ],
  [
    'IPv6 hop-by-hop, routing and destination options',
    12,
    ipv6(0, Buffer.concat([extension(43), extension(60, 24), extension(17), dns])),
    { ...same6, bytes: 120 },
  ],
  ['an authentication header', 12, ipv6(51, Buffer.concat([authentication(17), dns])), { ...same6, bytes: 104 }],
  [
    'a whole IPv6 packet with a fragment header (RFC 6946)',
    12,
    ipv6(44, Buffer.concat([fragment6(17, 0, 0), dns])),
    { ...same6, bytes: 88 },
  ],
  [
    'an IPv6 first fragment',
    12,
    ipv6(44, Buffer.concat([fragment6(17, 0, 1), dns])),
    { ...same6, bytes: 88, fragment: 1 },
  ],
  [
    'an IPv6 later fragment',
    12,
    ipv6(60, Buffer.concat([extension(44), fragment6(17, 185, 0), dns])),
    { ...same6, bytes: 96, fragment: 2, sourcePort: 0, destinationPort: 0 },
  ],
  ['ICMPv6', 12, ipv6(58, u8(128, 0, 0, 0)), { protocol: 58, icmp: 0x8000 }],
  ['ESP in IPv6', 12, ipv6(50, Buffer.alloc(40)), { protocol: 50, sourcePort: 0 }],
  [
    'an extension header that the sample ends in',
    12,
    ipv6(0, Buffer.concat([extension(17, 64), dns])).subarray(0, 60),
    { family: 6, protocol: 17, sourcePort: 0, bytes: 144 },
  ],
];

for (const [what, protocol, header, expected] of readable) {
  test(`${what}: read, with the length that IP tells and the header from IP on`, () => {
    const isWholeFrame = protocol === ETHERNET;
    const record5 = headerRecord(protocol, header, {
      frame: isWholeFrame ? 1504 : Math.max(header.length, expected.bytes ?? 0),
      stripped: isWholeFrame ? 4 : 0,
    });
    const { records, counts } = decodeAll([sflow([flowSample([record5])])]);
    assert.deepEqual(counts.dropped, {});
    const record = records[0] as ReadRecord;
    for (const [name, value] of Object.entries(expected)) assert.equal(record[name as keyof ReadRecord], value, name);
    const isFour = record.family === 4;
    assert.equal(record.source, isFour ? '198.51.100.7' : '2001:db8:f::7');
    assert.equal(record.destination, isFour ? '203.0.113.9' : '2001:db8:100::9');
    assert.deepEqual([record.packets, record.isFlow, record.samplingRate], [1, false, 100]);
    const slice = record.header as Buffer;
    assert.ok(header.includes(slice));
    assert.equal(slice.readUInt8(0) >> 4, record.family);
    assert.equal(slice.length, record.headerLength);
  });
}

const unreadable: readonly [string, number, Buffer, string][] = [
  ['ARP', ETHERNET, ethernet(0x0806, Buffer.alloc(46)), 'header_not_ip'],
  [
    'a spanning tree frame',
    ETHERNET,
    ethernet(38, Buffer.concat([u32(0x42420300), Buffer.alloc(40)])),
    'header_not_ip',
  ],
  [
    'a pseudowire of something else',
    ETHERNET,
    ethernet(0x8847, Buffer.concat([bottom(16, true), u32(0x10000000)])),
    'header_not_ip',
  ],
  ['PPP that negotiates', 7, u16(0xff03, 0xc021, 1, 1), 'header_not_ip'],
  ['a frame of 13 octets', ETHERNET, ethernet(0x0800, plain).subarray(0, 13), 'header_cut'],
  ['a tag that is not whole', ETHERNET, ethernet(0x0800, plain, 0x8100, 7).subarray(0, 16), 'header_cut'],
  [
    'labels without an end',
    ETHERNET,
    ethernet(0x8847, Buffer.concat([bottom(16, false), bottom(17, false)])),
    'header_cut',
  ],
  ['19 octets of IPv4', 11, plain.subarray(0, 19), 'header_cut'],
  ['39 octets of IPv6', 12, plain6.subarray(0, 39), 'header_cut'],
  ['nothing at all', 11, Buffer.alloc(0), 'header_cut'],
  ['IP version 5', 11, Buffer.concat([u8(0x55), plain.subarray(1)]), 'header_malformed'],
  ['an IPv4 header of 16 octets', 11, Buffer.concat([u8(0x44), plain.subarray(1)]), 'header_malformed'],
  ['a total length below the header', 11, ipv4(17, dns, { total: 19 }), 'header_malformed'],
  ['802.11', 15, plain, 'header_unknown'],
];

for (const [what, protocol, header, reason] of unreadable) {
  test(`${what}: no record, counted as ${reason}`, () => {
    const { records, counts } = decodeAll([sflow([flowSample([headerRecord(protocol, header)])])]);
    assert.deepEqual([records, counts.dropped], [[], { [reason]: 1 }]);
  });
}

test('a chain of tags as long as a datagram ends in time, at its end', () => {
  const tags = Array.from({ length: 30_000 }, () => 0x8100);
  const { counts } = decodeAll([
    sflow([flowSample([headerRecord(ETHERNET, ethernet(0x8100, Buffer.alloc(0), ...tags))])]),
  ]);
  assert.deepEqual(counts.dropped, { header_cut: 1 });
});

test('no octet of a header decides what is read of one that is shorter', () => {
  const whole = ethernet(0x86dd, ipv6(0, Buffer.concat([extension(43), fragment6(6, 0, 1), tcp(1, 2, 2)])), 0x8100, 7);
  for (let length = 0; length < whole.length; length += 1) {
    const frame = whole.length + 4;
    const cut = decodeAll([sflow([flowSample([headerRecord(ETHERNET, whole.subarray(0, length), { frame })])])]);
    const filled = Buffer.concat([headerRecord(ETHERNET, whole, { captured: length })]);
    const followed = decodeAll([sflow([flowSample([filled])])]);
    const facts = ({ records }: typeof cut) =>
      records.map((each) => ({ ...each, headerStart: 0, header: each.header?.toString('hex') }));
    assert.deepEqual(facts(followed), facts(cut));
    assert.deepEqual(followed.counts.dropped, cut.counts.dropped);
  }
});

for (const [what, protocol, header, frame, bytes] of [
  ['of 60 octets that says 65 535', ETHERNET, ethernet(0x0800, ipv4(17, dns, { total: 65_535 })), 78, 60],
  ['under a tag that says 65 535', ETHERNET, ethernet(0x0800, ipv4(17, dns, { total: 65_535 }), 0x8100, 7), 82, 60],
  ['of IPv6 that says 65 575', 12, ipv6(17, dns, 65_535), 80, 80],
  ['that says more than was sampled of it, which is more than its frame', 11, ipv4(17, dns, { total: 900 }), 24, 60],
  ['of IPv6 that is that long', 12, ipv6(17, dns, 65_535), 65_575, 65_535],
  ['that is a jumbogram of a million octets', 12, ipv6(0, Buffer.concat([extension(17), dns]), 0), 1e6, 65_535],
  ['whose frame nobody told', 11, ipv4(17, dns, { total: 900 }), 0, 900],
] as const) {
  test(`a packet ${what}: no longer than it was on the wire, and than a packet can be`, () => {
    const stripped = protocol === ETHERNET ? 4 : 0;
    const { records } = decodeAll([sflow([flowSample([headerRecord(protocol, header, { frame, stripped })])])]);
    assert.deepEqual(
      records.map((record) => record.bytes),
      [bytes],
    );
  });
}
