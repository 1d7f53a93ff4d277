import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  destination4,
  destination6,
  expandedSample,
  flowSample,
  headerRecord,
  ipv4,
  item,
  sflow,
  source4,
  source6,
  u32,
  udp,
} from './testing/build.ts';
import { decodeAll } from './testing/decode-all.ts';

const packet = ipv4(17, udp(53, 4000));
const header = headerRecord(11, packet);
const sample = flowSample([header]);
const ipv4Record = item(3, Buffer.concat([u32(1234, 6), source4, destination4, u32(80, 5000, 0x12, 0)]));
const ipv6Record = item(4, Buffer.concat([u32(1300, 17), source6, destination6, u32(123, 5001, 0, 0)]));
const switchRecord = item(1001, u32(1, 0, 1, 0));

test('samples of all kinds in one datagram: packets are read, counters and others are passed over and counted', () => {
  const others = [
    item(2, u32(1, 2, 0)),
    item(4, u32(1, 0, 2, 0)),
    item(5, Buffer.alloc(40)),
    item((9 << 12) + 1, u32(7)),
  ];
  const { records, counts } = decodeAll([sflow([sample, ...others, expandedSample([header], { rate: 4096 })])]);
  assert.deepEqual(
    records.map(({ samplingRate, bytes, inputInterface, outputInterface }) => [
      samplingRate,
      bytes,
      inputInterface,
      outputInterface,
    ]),
    [
      [100, 60, 3, 4],
      [4096, 60, 3, 4],
    ],
  );
  assert.deepEqual(counts, { datagrams: 1, records: 2, dropped: { counter_sample: 2, sample_unknown: 2 }, lost: 0 });
});

test('the packet of a sample is its header record, whatever stands before or behind it', () => {
  const { records } = decodeAll([sflow([flowSample([switchRecord, ipv4Record, header, ipv6Record, switchRecord])])]);
  assert.deepEqual(
    records.map(({ bytes, headerLength }) => [bytes, headerLength]),
    [[60, 60]],
  );
});

test('addresses alone serve without a header, and with one that cannot be read', () => {
  const unreadable = headerRecord(15, packet);
  const { records, counts } = decodeAll([sflow([flowSample([ipv4Record]), flowSample([unreadable, ipv6Record])])]);
  const facts = records.map((each) => [each.family, each.source, each.destination, each.protocol, each.bytes]);
  assert.deepEqual(facts, [
    [4, '198.51.100.7', '203.0.113.9', 6, 1234],
    [6, '2001:db8:f::7', '2001:db8:100::9', 17, 1300],
  ]);
  assert.deepEqual(
    records.map(({ sourcePort, destinationPort, tcpFlags }) => [sourcePort, destinationPort, tcpFlags]),
    [
      [80, 5000, 0x12],
      [123, 5001, 0],
    ],
  );
  assert.deepEqual(
    records.map(({ header: slice, packets, isFlow }) => [slice, packets, isFlow]),
    [
      [undefined, 1, false],
      [undefined, 1, false],
    ],
  );
  assert.deepEqual(counts.dropped, {});
});

test('nothing of a sample is left in the next one', () => {
  const { records } = decodeAll([sflow([sample, flowSample([ipv4Record]), sample])]);
  assert.deepEqual(records[2], { ...records[0], headerStart: records[2]?.headerStart });
});

for (const [what, compact, expanded, expected] of [
  ['an index', 7, [0, 7], 7],
  ['not known', 0, [0, 0], -1],
  ['the device itself', 0x3fffffff, [0, 0xffffffff], -1],
  ['a discarded packet', 0x40000002, [1, 2], -1],
  ['several ports', 0x80000005, [2, 5], -1],
] as const) {
  test(`an output interface that is ${what} is ${expected}, in both forms of a sample`, () => {
    const both = [flowSample([header], { output: compact }), expandedSample([header], { output: [...expanded] })];
    const { records } = decodeAll([sflow(both)]);
    assert.deepEqual(
      records.map(({ outputInterface }) => outputInterface),
      [expected, expected],
    );
  });
}

for (const [what, agent] of [
  ['IPv4', u32(1, 0x0a000001)],
  ['IPv6', u32(2, 0x20010db8, 0, 0, 1)],
  ['no', u32(0)],
] as const) {
  test(`${what} address of an agent: its samples are read`, () => {
    assert.equal(decodeAll([sflow([sample], { agent })]).records.length, 1);
  });
}

for (const [what, datagram, dropped, records = 0] of [
  ['an agent of an unknown kind of address', sflow([sample], { agent: u32(3, 0, 0) }), { sample_malformed: 1 }],
  ['a header that is not whole', sflow([sample]).subarray(0, 27), { datagram_cut: 1 }],
  ['no samples', sflow([]), { datagram_empty: 1 }],
  ['fewer samples than announced', sflow([sample], { count: 2 }), { datagram_cut: 1 }, 1],
  ['as many samples announced as can be', sflow([sample], { count: 0xffffffff }), { datagram_cut: 1 }, 1],
  ['a second sample that is cut', sflow([sample, sample]).subarray(0, -1), { datagram_cut: 1 }, 1],
  ['a sample that goes past the end', sflow([item(1, Buffer.alloc(40), 0xffffffff)]), { datagram_cut: 1 }],
  ['a sample too short for its fields', sflow([item(1, Buffer.alloc(28))]), { sample_malformed: 1 }],
  ['an expanded sample too short for its fields', sflow([item(3, Buffer.alloc(40))]), { sample_malformed: 1 }],
  [
    'a record that goes past its sample',
    sflow([flowSample([item(1001, u32(1), 0xfffffff0)]), sample]),
    { sample_malformed: 1 },
    1,
  ],
  [
    'a header that goes past its record',
    sflow([flowSample([headerRecord(11, packet, { captured: packet.length + 1 })])]),
    { sample_malformed: 1 },
  ],
  ['a sample without a packet', sflow([flowSample([switchRecord])]), { sample_without_packet: 1 }],
  ['a sample without any record', sflow([flowSample([])]), { sample_without_packet: 1 }],
  ['addresses that are not whole', sflow([flowSample([item(3, Buffer.alloc(28))])]), { sample_without_packet: 1 }],
  ['version 4', Buffer.concat([u32(4), sflow([sample]).subarray(4)]), { version_unknown: 1 }],
  ['three octets', Buffer.from([0, 0, 0]), { version_unknown: 1 }],
] as const satisfies readonly (readonly [string, Buffer, Record<string, number>, number?])[]) {
  test(`${what}: ${Object.keys(dropped)}, and what is whole is read`, () => {
    const reading = decodeAll([datagram]);
    assert.deepEqual([reading.counts.dropped, reading.records.length], [dropped, records]);
  });
}

function lost(
  ...datagrams: readonly (readonly [number, { subAgent?: number; uptime?: number; agent?: Buffer }?])[]
): number {
  return decodeAll(datagrams.map(([sequence, more]) => sflow([sample], { sequence, ...more }))).counts.lost;
}

test('missing datagrams are counted by sequence numbers, which each agent and sub-agent has of its own', () => {
  const other = { agent: u32(1, 0x0a000002) };
  const sub = { subAgent: 1 };
  assert.equal(lost([1], [2], [3]), 0);
  assert.equal(lost([1], [5], [6]), 3);
  assert.equal(lost([1], [900, sub], [50, other], [2], [901, sub], [51, other]), 0);
  assert.equal(lost([1], [900, sub], [4], [903, sub]), 4);
});

test('sequence numbers begin again after 2^32, come late, and begin again with a restart: nothing is missing by that', () => {
  assert.equal(lost([0xfffffffe], [0xffffffff], [0], [1]), 0);
  assert.equal(lost([0xfffffffe], [1]), 2);
  assert.equal(lost([10], [12], [11], [13]), 1);
  assert.equal(lost([500_000, { uptime: 900_000 }], [1, { uptime: 100 }], [2, { uptime: 200 }]), 0);
  assert.equal(lost([50, { uptime: 900_000 }], [20, { uptime: 100 }], [21, { uptime: 200 }], [23, { uptime: 300 }]), 1);
  assert.equal(lost([5], [4_000_000_000], [4_000_000_001]), 0);
});

test('of more agents than are kept the newest count', () => {
  const agents = Array.from({ length: 100 }, (_, index) => [7, { subAgent: index }] as const);
  assert.equal(lost(...agents, [9, { subAgent: 99 }]), 1);
});

test('a sample at a rate that no exporter has counts for nothing, and is told', () => {
  const at = (rate: number) => flowSample([headerRecord(11, ipv4(17, udp(53, 4000)))], { rate });
  const { records, counts } = decodeAll([sflow([at(16_777_216), at(16_777_217), at(0xffff_ffff)])]);
  assert.deepEqual(
    [records.map(({ samplingRate }) => samplingRate), counts.dropped],
    [[16_777_216], { value_absurd: 2 }],
  );
});
