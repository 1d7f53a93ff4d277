import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settlingSeconds } from './filter-kind.ts';
import { createFilterMemory } from './memory.ts';
import { testFilter, testKind, testPacket } from './testing/test-kind.ts';

const second = 1_000_000_000n;
const meter = { name: 'source', of: 'source', packetsPerSecond: 2, burst: 3 } as const;
const together = { name: 'sum', of: 'destination', packetsPerSecond: 2, burst: 3 } as const;
const remembering = testKind({ remembers: { seconds: 60, sources: 2 }, settles: true, meters: [meter, together] });
const filter = testFilter(remembering);
const from = (source: bigint, more = {}) => testPacket({ source, ...more });

test('a source is known from when it is remembered until so long after it was last', () => {
  const memory = createFilterMemory();
  assert.equal(memory.knows(filter, from(1n)), false);
  memory.remember(filter, from(1n));
  memory.moveTo(59n * second);
  assert.equal(memory.knows(filter, from(1n)), true);
  memory.remember(filter, from(1n));
  memory.moveTo(118n * second);
  assert.equal(memory.knows(filter, from(1n)), true);
  memory.moveTo(119n * second);
  assert.equal(memory.knows(filter, from(1n)), false);
});

test('a source is known at the destination where it was remembered, to that filter alone, with any port', () => {
  const memory = createFilterMemory();
  memory.remember(filter, from(1n));
  assert.equal(memory.knows(filter, from(1n, { sourcePort: 1, destinationPort: 2 })), true);
  assert.equal(memory.knows(filter, from(2n)), false);
  assert.equal(memory.knows(filter, from(1n, { destination: 5n })), false);
  assert.equal(memory.knows(testFilter(remembering, { uuid: 'another' }), from(1n)), false);
});

test('of a kind that remembers flows, another port is another flow', () => {
  const memory = createFilterMemory();
  const flows = testFilter(testKind({ remembers: { seconds: 60, flows: 2 } }));
  memory.remember(flows, from(1n));
  assert.equal(memory.knows(flows, from(1n)), true);
  assert.equal(memory.knows(flows, from(1n, { sourcePort: 40_001 })), false);
  assert.equal(memory.knows(flows, from(1n, { destinationPort: 8 })), false);
});

test('no more sources are remembered than there is room for, until one is forgotten', () => {
  const memory = createFilterMemory();
  memory.remember(filter, from(1n));
  memory.moveTo(10n * second);
  memory.remember(filter, from(2n));
  memory.remember(filter, from(3n));
  assert.equal(memory.knows(filter, from(3n)), false);
  memory.moveTo(30n * second);
  memory.remember(filter, from(1n));
  memory.moveTo(70n * second);
  memory.remember(filter, from(3n));
  const known = [1n, 2n, 3n].map((source) => memory.knows(filter, from(source)));
  assert.deepEqual(known, [true, false, true]);
});

test('a meter lets the burst pass at once and then its rate, for each source or destination apart', () => {
  const memory = createFilterMemory();
  const passes = (which: typeof meter | typeof together, source: bigint, count: number) =>
    Array.from({ length: count }, () => memory.withinMeter(filter, which, from(source))).filter(Boolean).length;
  assert.deepEqual([passes(meter, 1n, 9), passes(meter, 2n, 9)], [3, 3]);
  assert.deepEqual([passes(together, 1n, 2), passes(together, 2n, 9)], [2, 1]);
  memory.moveTo(second);
  assert.deepEqual([passes(meter, 1n, 9), passes(meter, 3n, 9), passes(together, 1n, 9)], [2, 3, 2]);
});

test('sources that a meter has no place for share ten times the bound of one, until a place is free', () => {
  const memory = createFilterMemory();
  const crowded = { ...meter, most: 2 };
  const passes = (source: bigint, count: number) =>
    Array.from({ length: count }, () => memory.withinMeter(filter, crowded, from(source))).filter(Boolean).length;
  assert.deepEqual([passes(1n, 9), passes(2n, 9)], [3, 3]);
  assert.deepEqual([passes(3n, 20), passes(4n, 20), passes(5n, 9)], [20, 10, 0]);
  memory.moveTo(second);
  assert.deepEqual([passes(3n, 50), passes(1n, 9)], [20, 2]);
  memory.moveTo(10n * second);
  // The second one was not heard for ten seconds: its place goes to who comes first.
  assert.deepEqual([passes(3n, 9), passes(1n, 9), passes(2n, 50)], [3, 3, 30]);
});

test('an IPv6 source is its /64, for meters and memory; a flow is one of its address', () => {
  const memory = createFilterMemory();
  const at = (network: bigint, host: bigint) => testPacket({ family: 6, source: (network << 64n) + host });
  memory.remember(filter, at(1n, 1n));
  assert.deepEqual(
    [at(1n, 1n), at(1n, 2n), at(2n, 1n)].map((packet) => memory.knows(filter, packet)),
    [true, true, false],
  );
  const passes = (network: bigint, count: number) =>
    Array.from({ length: count }, (_, host) => memory.withinMeter(filter, meter, at(network, BigInt(host)))).filter(
      Boolean,
    ).length;
  assert.deepEqual([passes(1n, 9), passes(2n, 9)], [3, 3]);
  const flows = testFilter(testKind({ remembers: { seconds: 60, flows: 2 } }), { uuid: 'flows' });
  memory.remember(flows, at(1n, 1n));
  assert.deepEqual([memory.knows(flows, at(1n, 1n)), memory.knows(flows, at(1n, 2n))], [true, false]);
});

test('a limit lets a second’s worth of bits pass at once, and then its rate, of all sources together', () => {
  const memory = createFilterMemory();
  const limited = testFilter(remembering, { rateLimitMegabitsPerSecond: 8 });
  const passing = () => {
    let bytes = 0;
    for (let source = 0n; source < 3000n; source += 1n) {
      if (memory.withinRate(limited, from(source, { totalLengthBytes: 1000 }))) bytes += 1000;
    }
    return bytes;
  };
  assert.equal(passing(), 1_000_000);
  memory.moveTo(second / 10n);
  assert.equal(passing(), 100_000);
});

test('a filter settles for so long from when it begins, and one never begun has settled', () => {
  const memory = createFilterMemory();
  assert.equal(memory.settling(filter), false);
  memory.moveTo(5n * second);
  memory.begin(filter);
  const end = BigInt(5 + settlingSeconds) * second;
  memory.moveTo(end - 1n);
  assert.equal(memory.settling(filter), true);
  memory.moveTo(end);
  assert.equal(memory.settling(filter), false);
  const atOnce = testFilter(testKind({}), { uuid: 'never settles' });
  memory.begin(atOnce);
  assert.equal(memory.settling(atOnce), false);
});

test('what a filter remembered goes with it', () => {
  const memory = createFilterMemory();
  memory.begin(filter);
  memory.remember(filter, from(1n));
  memory.forget(filter.uuid);
  assert.deepEqual([memory.knows(filter, from(1n)), memory.settling(filter)], [false, false]);
});

test('time that runs backwards is a fault of whoever tells it', () => {
  const memory = createFilterMemory();
  memory.moveTo(2n);
  assert.throws(() => memory.moveTo(1n), RangeError);
});
