/** NetFlow v9, IPFIX and PSAMP by hand-made datagrams: templates, fields, and what cannot be read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDecoder } from './decoder.ts';
import {
  destination4,
  destination6,
  ethernet,
  type Fields,
  ipfix,
  ipv4,
  netflow9,
  optionsTemplate,
  set,
  source4,
  source6,
  template,
  u8,
  u16,
  u32,
  u64,
  udp,
} from './testing/build.ts';
import { decodeAll, type ReadRecord } from './testing/decode-all.ts';

/** Protocol, addresses, octets, packets. */
const basic: Fields = [
  [4, 1],
  [8, 4],
  [12, 4],
  [1, 4],
  [2, 4],
];
const flow = (protocol = 17, octets = 600, packets = 3) =>
  Buffer.concat([u8(protocol), source4, destination4, u32(octets, packets)]);

function readOne(fields: Fields, content: Buffer): ReadRecord {
  const datagram = ipfix([set(2, template(256, [...basic, ...fields])), set(256, flow(), content)]);
  const { records, counts } = decodeAll([datagram]);
  assert.deepEqual(counts.dropped, {});
  return records[0] as ReadRecord;
}

const second = 1000 * 2 ** 32;
const fields: readonly [string, Fields, Buffer, Partial<ReadRecord>][] = [
  [
    'ports',
    [
      [7, 2],
      [11, 2],
    ],
    u16(53, 4000),
    { sourcePort: 53, destinationPort: 4000, protocol: 17 },
  ],
  [
    'ports of UDP alone',
    [
      [180, 2],
      [181, 2],
    ],
    u16(53, 4000),
    { sourcePort: 53, destinationPort: 4000 },
  ],
  ['TCP flags of one octet, which UDP has not', [[6, 1]], u8(0x12), { tcpFlags: 0 }],
  ['counts of eight octets', [[2, 8]], u64(9), { packets: 3, bytes: 600 }],
  [
    'interfaces of two octets',
    [
      [10, 2],
      [14, 2],
    ],
    u16(7, 8),
    { inputInterface: 7, outputInterface: 8 },
  ],
  [
    'interfaces of four octets',
    [
      [10, 4],
      [14, 4],
    ],
    u32(70_000, 0xffffffff),
    { inputInterface: 70_000, outputInterface: 0xffffffff },
  ],
  [
    'physical interfaces where there are no others',
    [
      [252, 4],
      [253, 4],
    ],
    u32(7, 8),
    { inputInterface: 7, outputInterface: 8 },
  ],
  ['a TTL', [[192, 1]], u8(61), { ttl: 61 }],
  [
    'a fragment offset',
    [
      [7, 2],
      [11, 2],
      [88, 2],
    ],
    u16(1, 2, 185),
    { fragment: 2, sourcePort: 0, destinationPort: 0 },
  ],
  [
    'fragments that follow',
    [
      [197, 1],
      [88, 2],
    ],
    Buffer.concat([u8(0x20), u16(0)]),
    { fragment: 1 },
  ],
  ['an unfragmentable packet', [[197, 1]], u8(0x40), { fragment: 0 }],
  [
    'milliseconds of uptime',
    [
      [22, 4],
      [21, 4],
    ],
    u32(1000, 3500),
    { durationMilliseconds: 2500 },
  ],
  [
    'milliseconds over the end of the uptime',
    [
      [22, 4],
      [21, 4],
    ],
    u32(0xffffff00, 0x100),
    { durationMilliseconds: 512 },
  ],
  [
    'seconds',
    [
      [150, 4],
      [151, 4],
    ],
    u32(100, 102),
    { durationMilliseconds: 2000 },
  ],
  [
    'milliseconds',
    [
      [152, 8],
      [153, 8],
    ],
    u64(1_795_000_000_000, 1_795_000_000_250),
    { durationMilliseconds: 250 },
  ],
  [
    'microseconds',
    [
      [154, 8],
      [155, 8],
    ],
    u64(5 * 2 ** 32, 6 * 2 ** 32 + 2 ** 31),
    { durationMilliseconds: 1500 },
  ],
  [
    'nanoseconds',
    [
      [156, 8],
      [157, 8],
    ],
    u64(5 * 2 ** 32, 5 * 2 ** 32 + 2 ** 30),
    { durationMilliseconds: 250 },
  ],
  [
    'microseconds before the export',
    [
      [158, 4],
      [159, 4],
    ],
    u32(9_000_000, 2_000_000),
    { durationMilliseconds: 7000 },
  ],
  ['a duration in milliseconds', [[161, 4]], u32(1234), { durationMilliseconds: 1234 }],
  ['a duration in microseconds', [[162, 4]], u32(1_234_000), { durationMilliseconds: 1234 }],
  [
    'a flow that ends before it begins',
    [
      [152, 8],
      [153, 8],
    ],
    u64(second, second - 5),
    { durationMilliseconds: 0 },
  ],
  [
    'milliseconds rather than seconds',
    [
      [150, 4],
      [152, 8],
      [151, 4],
      [153, 8],
    ],
    Buffer.concat([u32(1), u64(1000), u32(9), u64(1001)]),
    { durationMilliseconds: 1 },
  ],
  [
    'elements of an enterprise, and of the reverse direction',
    [
      [0x8001, 4, 29305],
      [0x8002, 4, 29305],
      [0x8000 + 4, 1, 9],
    ],
    Buffer.concat([u32(9, 9), u8(1)]),
    { bytes: 600, packets: 3, protocol: 17 },
  ],
  [
    'unknown elements',
    [
      [5, 1],
      [61, 1],
      [9999, 7],
    ],
    Buffer.alloc(9, 255),
    { bytes: 600, packets: 3 },
  ],
  ['an address of a wrong length', [[12, 5]], Buffer.alloc(5, 9), { destination: '203.0.113.9' }],
  ['an interval of sampling with the record', [[34, 4]], u32(512), { samplingRate: 512 }],
  ['no interval of sampling, though there is a field', [[34, 4]], u32(0), { samplingRate: 0 }],
];

for (const [what, more, content, expected] of fields) {
  test(`a record with ${what} is read so: ${JSON.stringify(expected)}`, () => {
    const record = readOne(more, content);
    for (const [name, value] of Object.entries(expected)) assert.equal(record[name as keyof ReadRecord], value, name);
  });
}

function readWhole(fieldsOfAll: Fields, content: Buffer): ReadRecord | undefined {
  return decodeAll([ipfix([set(2, template(256, fieldsOfAll)), set(256, content)])]).records[0];
}

const addresses: Fields = [
  [8, 4],
  [12, 4],
];
const ends = Buffer.concat([source4, destination4]);

for (const [what, more, content, bytes, packets] of [
  [
    'totals',
    [
      [85, 4],
      [86, 4],
    ],
    u32(700, 7),
    700,
    7,
  ],
  [
    'deltas before totals',
    [
      [85, 4],
      [86, 4],
      [1, 4],
      [2, 4],
    ],
    u32(7000, 70, 100, 1),
    100,
    1,
  ],
  [
    'what was sent on, where nothing else is told',
    [
      [23, 8],
      [24, 8],
    ],
    u64(800, 8),
    800,
    8,
  ],
  [
    'what was observed before what was sent on',
    [
      [23, 4],
      [24, 4],
      [1, 4],
      [2, 4],
    ],
    u32(9, 9, 100, 1),
    100,
    1,
  ],
  [
    'counts of one and three octets',
    [
      [1, 3],
      [2, 1],
    ],
    u8(0, 1, 44, 2),
    300,
    2,
  ],
  [
    'counts past 2^32',
    [
      [1, 8],
      [2, 8],
    ],
    u64(2 ** 40, 2 ** 33),
    2 ** 40,
    2 ** 33,
  ],
  ["a firewall that tells the initiator's octets alone", [[231, 8]], u64(3001), 3001, 3],
  ['packets alone', [[2, 4]], u32(5), 0, 5],
] as const satisfies readonly (readonly [string, Fields, Buffer, number, number])[]) {
  test(`octets and packets are ${bytes} and ${packets} by ${what}`, () => {
    const record = readWhole([...addresses, ...more], Buffer.concat([ends, content]));
    assert.deepEqual([record?.bytes, record?.packets, record?.isFlow], [bytes, packets, true]);
  });
}

for (const [what, protocol, more, content, expected] of [
  ['IPv4 by type and code in one', 1, [[32, 2]], u16(0x0304), 0x0304],
  [
    'IPv4 by type and code',
    1,
    [
      [176, 1],
      [177, 1],
    ],
    u8(3, 4),
    0x0304,
  ],
  [
    'IPv6 by type and code',
    58,
    [
      [178, 1],
      [179, 1],
    ],
    u8(128, 0),
    0x8000,
  ],
  [
    'IPv6 by type and code in one, beside that of IPv4',
    58,
    [
      [139, 2],
      [32, 2],
    ],
    u16(0x8000, 0),
    0x8000,
  ],
  [
    'the port',
    1,
    [
      [7, 2],
      [11, 2],
    ],
    u16(0, 0x0304),
    0x0304,
  ],
  ['UDP, where it means nothing', 17, [[32, 2]], u16(0x0304), -1],
] as const satisfies readonly (readonly [string, number, Fields, Buffer, number])[]) {
  test(`ICMP of ${what} is ${expected}`, () => {
    const record = readWhole([...basic, ...more], Buffer.concat([flow(protocol), content]));
    assert.deepEqual([record?.icmp, protocol === 17 || record?.destinationPort === 0], [expected, true]);
  });
}

for (const [length, content] of [
  [1, u8(0x1b)],
  [2, u16(0x011b)],
] as const) {
  test(`TCP flags of ${length} octets`, () => {
    assert.equal(readWhole([...basic, [6, length]], Buffer.concat([flow(6), content]))?.tcpFlags, 0x1b);
  });
}

test('a template with the addresses of both families gives the one that is not zero', () => {
  const both: Fields = [
    [27, 16],
    [8, 4],
    [28, 16],
    [12, 4],
    [1, 4],
    [2, 4],
  ];
  const six = Buffer.concat([source6, u32(0), destination6, u32(0), u32(100, 1)]);
  const four = Buffer.concat([Buffer.alloc(16), source4, Buffer.alloc(16), destination4, u32(200, 1)]);
  const { records } = decodeAll([ipfix([set(2, template(256, both)), set(256, six, four, six)])]);
  assert.deepEqual(
    records.map((record) => [record.family, record.source, record.destination, record.bytes]),
    [
      [6, '2001:db8:f::7', '2001:db8:100::9', 100],
      [4, '198.51.100.7', '203.0.113.9', 200],
      [6, '2001:db8:f::7', '2001:db8:100::9', 100],
    ],
  );
  const { source1, source2, source3, destination1, destination2, destination3 } = records[1] as ReadRecord;
  assert.deepEqual([source1, source2, source3, destination1, destination2, destination3], [0, 0, 0, 0, 0, 0]);
});

const named: Fields = [[82, 0xffff], ...basic, [0x8000 + 7, 0xffff, 9]];

test('fields of variable length are passed over in both of their forms, whatever their length', () => {
  const short = Buffer.concat([u8(3), Buffer.from('et1'), flow(17, 1), u8(0)]);
  const long = Buffer.concat([u8(255), u16(300), Buffer.alloc(300, 7), flow(17, 2), u8(255), u16(2, 0xffff)]);
  const { records, counts } = decodeAll([ipfix([set(2, template(256, named)), set(256, short, long, short)])]);
  assert.deepEqual(
    records.map(({ bytes }) => bytes),
    [1, 2, 1],
  );
  assert.deepEqual(counts.dropped, {});
});

for (const [what, content] of [
  ['longer than its set', Buffer.concat([u8(200), flow()])],
  ['told in three octets of which one is there', Buffer.concat([u8(3), Buffer.from('et1'), flow(), u8(255), u8(0)])],
  ['65 535 octets long', Buffer.concat([u8(255), u16(0xffff), flow(), u8(0)])],
] as const) {
  test(`a field that is ${what} ends its set`, () => {
    const { records, counts } = decodeAll([ipfix([set(2, template(256, named)), set(256, content)])]);
    assert.deepEqual([records.length, counts.dropped], [0, { record_cut: 1 }]);
  });
}

const packet = ipv4(17, udp(53, 4000, 400));

for (const [what, more, content, bytes] of [
  ['an IP section of variable length', [[313, 0xffff]], Buffer.concat([u8(64), packet.subarray(0, 64)]), 428],
  [
    'a frame of variable length',
    [[315, 0xffff]],
    Buffer.concat([u8(78), ethernet(0x0800, packet.subarray(0, 64))]),
    428,
  ],
  [
    'a frame of fixed length, of which a part was filled',
    [
      [410, 2],
      [315, 128],
    ],
    Buffer.concat([u16(78), ethernet(0x0800, packet.subarray(0, 64)), Buffer.alloc(50, 255)]),
    428,
  ],
  [
    "a frame by Cisco's number, tagged",
    [
      [312, 2],
      [104, 0xffff],
    ],
    Buffer.concat([u16(446), u8(82), ethernet(0x0800, packet.subarray(0, 64), 0x8100, 9)]),
    428,
  ],
  [
    'an IP section before a frame',
    [
      [315, 20],
      [313, 64],
    ],
    Buffer.concat([Buffer.alloc(20), packet.subarray(0, 64)]),
    428,
  ],
] as const satisfies readonly (readonly [string, Fields, Buffer, number])[]) {
  test(`PSAMP: a packet by ${what}`, () => {
    const record = readWhole([[301, 8], ...more], Buffer.concat([u64(1), content]));
    const { source, destination, sourcePort, destinationPort, isFlow, packets, headerLength } = record as ReadRecord;
    assert.deepEqual(
      [source, destination, sourcePort, destinationPort, isFlow, packets, record?.bytes, headerLength],
      ['198.51.100.7', '203.0.113.9', 53, 4000, false, 1, bytes, 64],
    );
    assert.deepEqual(record?.header, packet.subarray(0, 64));
  });
}

test('PSAMP: a packet by its fields alone (RFC 5476, extended reports)', () => {
  const record = readWhole([...addresses, [4, 1], [224, 2]], Buffer.concat([ends, u8(17), u16(1400)]));
  assert.deepEqual([record?.packets, record?.bytes, record?.isFlow], [1, 1400, false]);
});

test('a section beside counts is a packet of that flow, which keeps its counts', () => {
  const record = readWhole([...basic, [313, 64]], Buffer.concat([flow(17, 9000, 10), packet.subarray(0, 64)]));
  assert.deepEqual([record?.packets, record?.bytes, record?.isFlow, record?.sourcePort], [10, 9000, true, 53]);
});

for (const [what, fieldsOfAll, content, reason] of [
  [
    'without a destination',
    [
      [8, 4],
      [1, 4],
      [2, 4],
    ],
    Buffer.alloc(12, 1),
    'record_without_address',
  ],
  ['without counts, as of address translation', addresses, ends, 'record_without_counts'],
  [
    'with counts that are zero',
    [...addresses, [1, 4], [2, 4]],
    Buffer.concat([ends, u32(0, 0)]),
    'record_without_counts',
  ],
  ['with a section that is no packet', [[315, 32]], Buffer.alloc(32), 'header_not_ip'],
  ['with a section of no octets', [[313, 0xffff]], u8(0), 'header_cut'],
] as const satisfies readonly (readonly [string, Fields, Buffer, string])[]) {
  test(`a record ${what} is counted as ${reason}`, () => {
    const { records, counts } = decodeAll([ipfix([set(2, template(256, fieldsOfAll)), set(256, content)])]);
    assert.deepEqual([records, counts.dropped], [[], { [reason]: 1 }]);
  });
}

const known = set(2, template(256, basic));

for (const [what, datagram, dropped, records] of [
  ['a message that is cut', ipfix([known, set(256, flow(), flow())]).subarray(0, -10), { datagram_cut: 1 }, 1],
  [
    'a message shorter than its datagram',
    Buffer.concat([ipfix([known, set(256, flow())]), u32(0)]),
    { datagram_longer: 1 },
    1,
  ],
  ['a message length below its header', ipfix([known], { length: 15 }), { set_malformed: 1 }, 0],
  ['15 octets', ipfix([]).subarray(0, 15), { datagram_cut: 1 }, 0],
  ['no sets', ipfix([]), { datagram_empty: 1 }, 0],
  ['a set without length', ipfix([known, u16(256, 0), flow()]), { set_malformed: 1 }, 0],
  ['a set of a reserved number', ipfix([set(9, flow()), known, set(256, flow())]), { set_unknown: 1 }, 1],
  ['padding of three octets', ipfix([known, set(256, flow(), u8(0, 0, 0)), set(256, flow())]), {}, 2],
  ['a set with half a record', ipfix([known, set(256, flow(), flow().subarray(0, 12))]), { record_cut: 1 }, 1],
  ['a set without a record', ipfix([known, set(256)]), { record_cut: 1 }, 0],
  [
    'a template without length',
    ipfix([
      set(
        2,
        template(256, [
          [1, 0],
          [2, 0],
        ]),
      ),
    ]),
    { template_malformed: 1 },
    0,
  ],
  ['a template that is cut', ipfix([set(2, u16(256, 40, 1, 4))]), { template_malformed: 1 }, 0],
  [
    'a template of more fields than are kept',
    ipfix([
      set(
        2,
        template(
          256,
          Array.from({ length: 300 }, () => [1, 1]),
        ),
      ),
    ]),
    { template_malformed: 1 },
    0,
  ],
  [
    'a template longer than a datagram',
    ipfix([
      set(
        2,
        template(256, [
          [1, 60_000],
          [2, 60_000],
        ]),
      ),
    ]),
    { template_malformed: 1 },
    0,
  ],
  ['a template numbered as a set', ipfix([set(2, template(255, basic))]), { template_malformed: 1 }, 0],
  ['a set of templates that is padding', ipfix([set(2, u32(0))]), { template_malformed: 1 }, 0],
  ['padding behind a template', ipfix([set(2, template(256, basic), u32(0)), set(256, flow())]), {}, 1],
  ['more scopes than fields', ipfix([set(3, u16(256, 1, 2), u16(34, 4))]), { template_malformed: 1 }, 0],
  [
    'NetFlow v9 with a field of variable length',
    netflow9([set(0, template(256, named))]),
    { template_malformed: 1 },
    0,
  ],
  [
    'NetFlow v9 with scopes of half a field',
    netflow9([set(1, u16(256, 2, 4), u16(1, 4, 34, 4))]),
    { template_malformed: 1 },
    0,
  ],
  ['NetFlow v9 with the sets of IPFIX', netflow9([known]), { set_unknown: 1 }, 0],
  ['NetFlow v9 of 19 octets', netflow9([]).subarray(0, 19), { datagram_cut: 1 }, 0],
] as const satisfies readonly (readonly [string, Buffer, Record<string, number>, number])[]) {
  test(`${what}: ${Object.keys(dropped).join(', ') || 'nothing amiss'}, and what is whole is read`, () => {
    const reading = decodeAll([datagram]);
    assert.deepEqual([reading.counts.dropped, reading.records.length], [dropped, records]);
  });
}

test('two templates in one set, and sets that take turns, are each read by their own', () => {
  const other: Fields = [...addresses, [2, 4], [1, 4]];
  const data = Buffer.concat([ends, u32(4, 400)]);
  const sets = [set(2, template(256, basic), template(257, other)), set(256, flow()), set(257, data), set(256, flow())];
  const { records } = decodeAll([ipfix(sets)]);
  assert.deepEqual(
    records.map(({ bytes, protocol }) => [bytes, protocol]),
    [
      [600, 17],
      [400, 0],
      [600, 17],
    ],
  );
});

test('a datagram is read to its length, not to what lies behind it', () => {
  const whole = ipfix([known, set(256, flow(), flow())], { length: 0xffff });
  const decoder = createDecoder();
  const counts = { datagrams: 0, records: 0, dropped: {}, lost: 0 };
  let records = 0;
  decoder.decode(whole, whole.length - 17, 1, 0, counts, () => {
    records += 1;
  });
  assert.deepEqual([records, counts.dropped], [1, { datagram_cut: 1 }]);
});

test('missing messages are told by the count of records, whether an exporter counts options and its own records or not', () => {
  const options = set(3, optionsTemplate(512, [[143, 4]], [[34, 4]]));
  const told = set(512, u32(1, 100));
  const data = set(256, flow(), flow());
  const lost = (...sequences: number[]) => {
    const [first = 0, ...more] = sequences;
    const datagrams = more.map((sequence, index) =>
      index % 2 === 1 ? ipfix([data], { sequence }) : ipfix([told, data], { sequence }),
    );
    return decodeAll([ipfix([known, options, data], { sequence: first }), ...datagrams]).counts.lost;
  };
  assert.equal(lost(0, 2, 5, 7, 10), 0, 'as RFC 7011 says');
  assert.equal(lost(0, 2, 4, 6, 8), 0, 'without options');
  assert.equal(lost(2, 4, 6, 8, 10), 0, 'with its own');
  assert.equal(lost(0, 2, 15), 4);
  const nine = (sequence: number) => netflow9([set(0, template(256, basic)), set(256, flow())], { sequence });
  assert.equal(decodeAll([nine(5), nine(6), nine(9)]).counts.lost, 2);
});
