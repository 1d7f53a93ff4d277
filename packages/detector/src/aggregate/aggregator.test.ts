import assert from 'node:assert/strict';
import test from 'node:test';
import { classify } from '@levee/core/detection/vector.ts';
import fc from 'fast-check';
import type { SlotReport } from '../bus/port.ts';
import { FlowRecord } from '../flow-record.ts';
import { Aggregator, type RecordOrigin } from './aggregator.ts';

function origin(fields: Partial<RecordOrigin> = {}): RecordOrigin {
  const base = { number: 3, name: 'edge-1', fixedScale: 0, interfaces: undefined };
  const counts = { otherInterface: 0, notProtected: 0, absurd: 0, tooLong: 0, longestFlowMilliseconds: 0 };
  return { ...base, isPrescaled: false, toldRate: 0, ...counts, ...fields };
}

function record(fields: Partial<FlowRecord>): FlowRecord {
  return Object.assign(new FlowRecord(), { packets: 1, bytes: 100, protocol: 17, destination0: 0xcb007107 }, fields);
}

function aggregator(prefixes = ['203.0.113.0/24', '2001:db8::/32']): Aggregator {
  const made = new Aggregator({ sampleOctets: 1 << 20 });
  made.protect(prefixes);
  made.nowMs = 1_000_000;
  made.origin = origin();
  return made;
}

function end(from: Aggregator): SlotReport {
  return from.endSlot(1_000_000, 'c', 0, (number) => `exporter ${number}`);
}

const anyRecord = fc.record({
  family: fc.constantFrom(4 as const, 6 as const),
  host: fc.nat(300),
  protocol: fc.constantFrom(1, 6, 17, 47, 50, 132),
  sourcePort: fc.constantFrom(0, 53, 40_000),
  tcpFlags: fc.nat(63),
  fragment: fc.constantFrom(0 as const, 1 as const, 2 as const),
  packets: fc.integer({ min: 1, max: 1000 }),
  bytes: fc.integer({ min: 20, max: 1_000_000 }),
  samplingRate: fc.constantFrom(0, 1, 16, 4096),
  isFlow: fc.boolean(),
  inputInterface: fc.constantFrom(-1, 1, 2),
});

test('the rows of a slot are what a model makes of the same records', () => {
  fc.assert(
    fc.property(
      fc.array(anyRecord, { maxLength: 200 }),
      fc.constantFrom(0, 1, 100),
      fc.constantFrom(undefined, new Set([1])),
      (records, fixedScale, interfaces) => {
        const made = aggregator();
        const from = origin({ fixedScale, interfaces });
        made.origin = from;
        const model = new Map<string, number[]>();
        let other = 0;
        let unprotected = 0;
        for (const { host, family, ...fields } of records) {
          const words =
            family === 4
              ? { destination0: 0xcb007100 + host }
              : { destination0: 0x20010db8 + (host >> 8), destination3: host };
          made.record(record({ ...fields, family, ...words }));
          if (interfaces !== undefined && !interfaces.has(fields.inputInterface)) other++;
          else if (host > 255) unprotected++;
          else {
            const { protocol, sourcePort, tcpFlags, fragment, isFlow } = fields;
            const vector = classify(protocol, sourcePort, tcpFlags, fragment !== 0, isFlow);
            const scale = fixedScale || fields.samplingRate || 1;
            const sums = model.get(`${family} ${host} ${vector}`) ?? [0, 0, 0];
            sums[0] = (sums[0] ?? 0) + fields.packets * scale;
            sums[1] = (sums[1] ?? 0) + fields.bytes * scale;
            sums[2] = (sums[2] ?? 0) + fields.packets;
            model.set(`${family} ${host} ${vector}`, sums);
          }
        }
        const { count, families, addresses, vectors, packets, bytes, samples } = end(made);
        const rows = new Map<string, number[]>();
        for (let i = 0; i < count; i++) {
          const host = families[i] === 4 ? (addresses[i * 4] ?? 0) - 0xcb007100 : addresses[i * 4 + 3];
          rows.set(`${families[i]} ${host} ${vectors[i]}`, [packets[i] ?? 0, bytes[i] ?? 0, samples[i] ?? 0]);
        }
        assert.deepEqual(new Map([...rows].sort()), new Map([...model].sort()));
        assert.equal(from.otherInterface, other);
        assert.equal(from.notProtected, unprotected);
        assert.equal(end(made).count, 0, 'a slot has nothing of the one before');
      },
    ),
  );
});

test('a flow that lasted is spread over as many slots, and its sum is exact', () => {
  const made = aggregator();
  made.record(record({ isFlow: true, packets: 1003, bytes: 100_300, samplingRate: 16, durationMilliseconds: 10_000 }));
  const slots = Array.from({ length: 41 }, () => end(made));
  assert.deepEqual(
    slots.map(({ count }) => count),
    [...Array(40).fill(1), 0],
  );
  assert.equal(
    slots.reduce((sum, { packets }) => sum + (packets[0] ?? 0), 0),
    1003 * 16,
  );
  assert.equal(
    slots.reduce((sum, { bytes }) => sum + (bytes[0] ?? 0), 0),
    100_300 * 16,
  );
  assert.equal(
    slots.reduce((sum, { samples }) => sum + (samples[0] ?? 0), 0),
    1003,
  );
  for (const { packets } of slots.slice(0, 40)) assert.ok(Math.abs((packets[0] ?? 0) - (1003 * 16) / 40) < 0.1);
});

test('only hot destinations have profiles, those of a hot subnet together, from the message on', () => {
  const made = aggregator();
  const flood = (host: number, source: number) =>
    record({
      destination0: 0xcb007100 + host,
      source0: 0x0a000000 + source,
      sourcePort: 53,
      destinationPort: 4444,
      bytes: 1400 + (source % 3) * 16,
      inputInterface: 7,
    });
  for (let i = 0; i < 10; i++) made.record(flood(7, i));
  made.setHot('d', ['203.0.113.7', '203.0.113.0/25']);
  for (let i = 0; i < 300; i++) {
    made.record(flood(7, i));
    made.record(flood(8, i));
    made.record(flood(200, i));
  }
  const { profiles } = end(made);
  assert.deepEqual(profiles.map(({ dst, samples }) => [dst, samples]).sort(), [
    ['203.0.113.0/25', 600],
    ['203.0.113.7', 300],
  ]);
  const own = profiles.find(({ dst }) => dst === '203.0.113.7');
  assert.deepEqual(own?.sourcePorts, [[53, 300]]);
  assert.deepEqual(own?.destinationPorts, [[4444, 300]]);
  assert.deepEqual(own?.protocols, [[17, 300]]);
  assert.deepEqual(own?.entries, [['exporter 3/7', 300]]);
  assert.deepEqual(own?.lengths.map(([key]) => key).sort(), [87, 88, 89]);
  assert.deepEqual([own?.shortest, own?.longest, own?.vector], [1400, 1432, 0]);
  assert.equal(own?.sources.length, 64);
  assert.ok(Math.abs((own?.distinctSources ?? 0) - 300) < 30);
  for (let i = 0; i < 5; i++) made.record(flood(7, i));
  assert.equal(end(made).profiles.length, 2, 'still hot in the next slot');
  made.setHot('d', []);
  made.record(flood(7, 0));
  assert.deepEqual(end(made).profiles, []);
});

test('of a flood the profile has the shares, and its sum exactly', () => {
  const made = aggregator();
  made.setHot('d', ['203.0.113.7']);
  for (let i = 0; i < 40_000; i++) {
    made.record(
      record({ source0: i, sourcePort: i % 4 === 0 ? 123 : 53, bytes: 468, inputInterface: i % 10 === 0 ? 1 : 2 }),
    );
  }
  const [profile] = end(made).profiles;
  assert.equal(profile?.samples, 40_000);
  const share = (of: readonly (readonly [unknown, number])[] | undefined, key: unknown) =>
    (of?.find(([each]) => each === key)?.[1] ?? 0) / 40_000;
  assert.ok(Math.abs(share(profile?.sourcePorts, 53) - 0.75) < 0.03);
  assert.ok(Math.abs(share(profile?.sourcePorts, 123) - 0.25) < 0.03);
  assert.ok(Math.abs(share(profile?.entries, 'exporter 3/1') - 0.1) < 0.02);
  assert.ok(Math.abs((profile?.distinctSources ?? 0) / 40_000 - 1) < 0.12);
});

test('each detector has hot destinations of its own', () => {
  const made = aggregator();
  made.setHot('one', ['203.0.113.7']);
  made.setHot('other', ['2001:db8::/64']);
  made.setHot('one', ['203.0.113.9']);
  made.record(record({ destination0: 0xcb007107 }));
  made.record(record({ destination0: 0xcb007109 }));
  made.record(record({ family: 6, destination0: 0x20010db8, destination3: 5, protocol: 58, icmp: 0x8000 }));
  const { profiles } = end(made);
  assert.deepEqual(profiles.map(({ dst }) => dst).sort(), ['2001:db8::/64', '203.0.113.9']);
  assert.deepEqual(profiles.find(({ dst }) => dst !== '203.0.113.9')?.icmp, [[0x8000, 1]]);
});

test('samples are kept of sampled packets to protected destinations, none of flow records', () => {
  const made = aggregator();
  const header = new Uint8Array(64).fill(0x45);
  const sampled = { header, headerStart: 0, headerLength: 64, bytes: 1500, inputInterface: 4, samplingRate: 16 };
  made.record(record(sampled));
  made.record(record({ ...sampled, destination0: 0x08080808 }));
  made.record(record({ isFlow: true, packets: 50 }));
  const name = (number: number) => `exporter ${number}`;
  assert.deepEqual(made.collectSamples('203.0.113.0/24', 0, 10, name), {
    held: 1,
    packets: [
      {
        at_ms: 1_000_000,
        scale: 16,
        exporter: 'exporter 3',
        length: 1500,
        header: Buffer.from(header).toString('base64'),
        input_interface: 4,
      },
    ],
  });
  assert.deepEqual(made.collectSamples('198.51.100.1', 0, 10, name), { held: 0, packets: [] });
  assert.deepEqual(made.collectSamples('nonsense', 0, 10, name), { held: 0, packets: [] });
});

test('a flood keeps few samples a slot, however large it is', () => {
  const made = aggregator();
  const header = new Uint8Array(64).fill(0x45);
  const sampled = record({ header, headerLength: 64, sourcePort: 53 });
  for (let i = 0; i < 100_000; i++) made.record(sampled);
  const { held } = made.collectSamples('203.0.113.7', 0, 1, () => '');
  assert.ok(held >= 8 && held < 250, `${held}`);
});

test('the first samples of a slot are kept of each destination, whatever was in the slot before', () => {
  const made = new Aggregator({ sampleOctets: 1 << 20, random: () => 0.999 });
  made.protect(['203.0.113.0/24']);
  made.origin = origin();
  made.nowMs = 1_000_000;
  const sampled = record({ header: new Uint8Array(64), headerLength: 64 });
  for (let i = 0; i < 1000; i++) made.record(sampled);
  end(made);
  sampled.destination0 = 0xcb007108;
  for (let i = 0; i < 1000; i++) made.record(sampled);
  for (const dst of ['203.0.113.7', '203.0.113.8']) assert.equal(made.collectSamples(dst, 0, 1, () => '').held, 8);
});

test('a scan of five million IPv6 addresses does not grow memory, and is seen as a whole', () => {
  const made = aggregator();
  const scanned = record({ family: 6, header: new Uint8Array(128), headerLength: 128 });
  scanned.destination0 = 0x20010db8;
  const scan = (count: number): void => {
    for (let i = 0; i < count; i++) {
      scanned.destination1 = i & 255;
      scanned.destination2 = Math.imul(i, 0x9e3779b1) >>> 0;
      scanned.destination3 = i;
      made.record(scanned);
    }
  };
  let packets = 0;
  const slot = (): void => {
    for (const value of end(made).packets) packets += value;
  };
  scan(500_000);
  slot();
  const before = process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed;
  for (let i = 0; i < 9; i++) {
    scan(500_000);
    slot();
  }
  const grown = process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed - before;
  assert.equal(packets, 5_000_000);
  assert.equal(made.overflow.samples, 0);
  assert.ok(grown < 64 << 20, `${Math.round(grown / 1e6)} MB`);
});

test('a prescaled record is made of as many samples as the rate says, of one where no rate is known, of all where it is not', () => {
  for (const [fields, toldRate, expected] of [
    [{ packets: 10_000, samplingRate: 10_000 }, 0, 1],
    [{ packets: 10_000 }, 500, 20],
    [{ packets: 10_000 }, 0, 1],
    [{ packets: 10_000, samplingRate: 1 }, 0, 1],
    [{ packets: 3, samplingRate: 10_000 }, 0, 1],
  ] as const) {
    const made = aggregator();
    made.setHot('d', ['203.0.113.7']);
    made.origin = origin({ fixedScale: 1, isPrescaled: true, toldRate });
    made.record(record({ ...fields, isFlow: true }));
    const { packets, samples, profiles } = end(made);
    assert.deepEqual([packets[0], samples[0], profiles[0]?.samples], [fields.packets, expected, expected]);
  }
  const made = aggregator();
  made.origin = origin({ fixedScale: 1000 });
  made.record(record({ packets: 30, isFlow: true }));
  const { packets, samples } = end(made);
  assert.deepEqual([packets[0], samples[0]], [30_000, 30]);
});

test('a record of more than any line carries counts for nothing and is told; the flood beside it is seen as before', () => {
  const made = aggregator();
  const from = origin();
  made.origin = from;
  const flow = (fields: Partial<FlowRecord>) => made.record(record({ isFlow: true, sourcePort: 5000, ...fields }));
  const rows = Array.from({ length: 400 }, (_, slot) => {
    if (slot < 300) flow({ packets: 100_000, bytes: 50_000_000, durationMilliseconds: 10_000 });
    if (slot === 100) {
      const most = { packets: 2 ** 64, bytes: 2 ** 64, samplingRate: 2 ** 24 };
      flow({ ...most, durationMilliseconds: 60_000 });
      flow({ ...most, durationMilliseconds: 0 });
      flow({ ...most, durationMilliseconds: 2 ** 40 });
      flow({ packets: Number.NaN });
      flow({ bytes: Number.POSITIVE_INFINITY });
    }
    const { count, packets, bytes } = end(made);
    return count === 0 ? [] : [packets[0], bytes[0]];
  });
  for (const [slot, row] of rows.entries()) {
    if (slot >= 39 && slot < 300) assert.deepEqual(row, [100_000, 50_000_000], `slot ${slot}`);
    if (slot >= 339) assert.deepEqual(row, [], `slot ${slot}`);
  }
  assert.deepEqual([from.absurd, from.tooLong], [5, 0]);
});

test('of a flow longer than flows are spread the rest is told, and how long the longest was', () => {
  const made = aggregator();
  const from = origin();
  made.origin = from;
  made.record(record({ isFlow: true, packets: 1e6, bytes: 1e9, durationMilliseconds: 7_200_000 }));
  made.record(record({ isFlow: true, packets: 1e6, bytes: 1e9, durationMilliseconds: 1_800_000 }));
  assert.deepEqual([from.tooLong, from.longestFlowMilliseconds], [1, 7_200_000]);
});

test('a flood has its profile, whatever number of hot destinations had a sample first', () => {
  const made = aggregator();
  const hosts = Array.from({ length: 200 }, (_, host) => `203.0.113.${host}`);
  made.setHot('d', [...hosts, '203.0.113.192/26']);
  for (const protocol of [1, 6, 17, 47, 50, 132, 99]) {
    for (let host = 0; host < 200; host++) made.record(record({ protocol, destination0: 0xcb007100 + host }));
  }
  const flood = { destination0: 0xcb007100 + 250, protocol: 6, tcpFlags: 2 };
  const own = { destination0: 0xcb007100 + 199, protocol: 6, tcpFlags: 2 };
  for (let i = 0; i < 500; i++) {
    made.record(record({ ...flood, source0: i }));
    made.record(record({ ...own, source0: i }));
  }
  const { profiles } = end(made);
  assert.equal(profiles.length, 1024);
  const syn = classify(6, 0, 2, false, false);
  const of = (dst: string) => profiles.find((each) => each.dst === dst && each.vector === syn)?.samples ?? 0;
  assert.ok(of('203.0.113.199') >= 498, `${of('203.0.113.199')}`);
  assert.ok(of('203.0.113.192/26') >= 990, `${of('203.0.113.192/26')}`);
  assert.ok(made.overflow.unprofiled > 0);
});
