import assert from 'node:assert/strict';
import { test } from 'node:test';
import { netflow5, record5, u8, u16 } from './testing/build.ts';
import { decodeAll } from './testing/decode-all.ts';

test('every field of a record is read', () => {
  const { records, counts } = decodeAll([netflow5([record5({ protocol: 6, packets: 0xffffffff, bytes: 0xfffffffe })])]);
  const { source, destination, protocol, sourcePort, destinationPort, tcpFlags, packets, bytes } = records[0] ?? {};
  assert.deepEqual(
    { source, destination, protocol, sourcePort, destinationPort, tcpFlags, packets, bytes },
    {
      source: '198.51.100.7',
      destination: '203.0.113.9',
      protocol: 6,
      sourcePort: 53,
      destinationPort: 4000,
      tcpFlags: 0x1b,
      packets: 0xffffffff,
      bytes: 0xfffffffe,
    },
  );
  const { inputInterface, outputInterface, isFlow, icmp, ttl, header } = records[0] ?? {};
  assert.deepEqual([inputInterface, outputInterface, isFlow, icmp, ttl, header], [3, 4, true, -1, -1, undefined]);
  assert.deepEqual(counts, { datagrams: 1, records: 1, dropped: {}, lost: 0 });
});

test('ICMP has its type and code where others have the port', () => {
  const { records } = decodeAll([netflow5([record5({ protocol: 1, ports: [0, 0x0304] })])]);
  assert.deepEqual(
    records.map(({ icmp, sourcePort, destinationPort }) => [icmp, sourcePort, destinationPort]),
    [[0x0304, 0, 0]],
  );
});

for (const [what, first, last, duration] of [
  ['an instant', 5000, 5000, 0],
  ['a second', 5000, 6000, 1000],
  ['over the end of the clock', 0xffffff00, 0x100, 512],
  ['backwards', 6000, 5000, 0],
] as const) {
  test(`a flow that lasts ${what}: ${duration} ms`, () => {
    const { records } = decodeAll([netflow5([record5({ first, last })])]);
    assert.equal(records[0]?.durationMilliseconds, duration);
  });
}

for (const [what, sampling, rate] of [
  ['nothing', 0, 0],
  ['every 64th packet', 0x4040, 64],
  ['one of 64 at random', 0x8040, 64],
  ['64 without a way', 0x0040, 64],
] as const) {
  test(`a header that tells ${what} of sampling: ${rate}`, () => {
    assert.equal(decodeAll([netflow5([record5()], { sampling })]).records[0]?.samplingRate, rate);
  });
}

for (const [what, datagram, dropped, records] of [
  ['no records', netflow5([]), { datagram_empty: 1 }, 0],
  ['a header that is not whole', netflow5([]).subarray(0, 23), { datagram_cut: 1 }, 0],
  ['more records than there are', netflow5([record5()], { count: 30 }), { datagram_cut: 1 }, 1],
  ['65 535 records', netflow5([record5()], { count: 0xffff }), { datagram_cut: 1 }, 1],
  ['a record that is cut', netflow5([record5(), record5()]).subarray(0, -1), { datagram_cut: 1 }, 1],
  ['fewer records than there are', netflow5([record5(), record5()], { count: 1 }), { datagram_longer: 1 }, 1],
  ['version 7', Buffer.concat([u16(7), netflow5([record5()]).subarray(2)]), { version_unknown: 1 }, 0],
  ['nothing', u8(), { version_unknown: 1 }, 0],
] as const) {
  test(`a datagram with ${what}: ${Object.keys(dropped)}, and what is whole is read`, () => {
    const reading = decodeAll([datagram]);
    assert.deepEqual([reading.counts.dropped, reading.records.length], [dropped, records]);
  });
}

test('missing datagrams are told by the count of flows, of each engine', () => {
  const full = Array.from({ length: 30 }, () => record5());
  const at = (sequence: number, engine = 0) => netflow5(full, { sequence, engine });
  assert.equal(decodeAll([at(0), at(30), at(60)]).counts.lost, 0);
  assert.equal(decodeAll([at(0), at(90), at(120)]).counts.lost, 2);
  assert.equal(decodeAll([at(0), at(5000, 1), at(30), at(5030, 1)]).counts.lost, 0);
  assert.equal(decodeAll([at(0xffffffff - 14), at(15)]).counts.lost, 0);
});
