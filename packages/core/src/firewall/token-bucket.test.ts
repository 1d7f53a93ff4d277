import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { evaluate, type Verdict } from './evaluate.ts';
import type { Packet } from './packet.ts';
import { burstPackets, type Rule, type RuleAction } from './rule.ts';
import { fullBucket, takePacket } from './token-bucket.ts';

/** How many of the packets at these times (nanoseconds) are within the limit. */
function countWithin(packetsPerSecond: number, times: readonly bigint[]): number {
  let bucket = fullBucket(packetsPerSecond, 0n);
  let count = 0;
  for (const time of times) {
    const taken = takePacket(bucket, time);
    bucket = taken.bucket;
    if (taken.within) count += 1;
  }
  return count;
}

const steady = (seconds: number, packetsPerSecond: number) =>
  Array.from({ length: seconds * packetsPerSecond }, (_, index) =>
    BigInt(Math.floor((index * 1e9) / packetsPerSecond)),
  );

test('at once exactly the burst passes', () => {
  for (const rate of [1, 50, 100, 1000]) assert.equal(countWithin(rate, Array(2000).fill(0n)), burstPackets(rate));
  const huge = takePacket(fullBucket(4294967295, 0n), 0n);
  assert.ok(huge.within);
});

test('traffic at the limit passes whole', () => {
  assert.equal(countWithin(100, steady(5, 100)), 500);
});

test('of a flood of a hundred times the limit, the limit passes, and the burst once', () => {
  for (const rate of [1, 10, 100]) {
    const passed = countWithin(rate, steady(10, rate * 100));
    const expected = rate * 10 + burstPackets(rate);
    assert.ok(passed >= expected - 1 && passed <= expected, `${passed} of ${expected}`);
  }
});

test('in any stretch of time no more passes than the rate gives plus the burst', () => {
  const gaps = fc.array(fc.bigInt(0n, 300_000_000n), { maxLength: 200 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), gaps, (rate, list) => {
      let time = 0n;
      const times = list.map((gap) => (time += gap));
      const most = BigInt(burstPackets(rate)) + (time * BigInt(rate)) / 1_000_000_000n;
      assert.ok(BigInt(countWithin(rate, times)) <= most);
    }),
    { numRuns: 500 },
  );
});

test('a packet above the limit costs nothing, so a flood does not lock out what the rate allows', () => {
  let bucket = fullBucket(1, 0n);
  for (let index = 0; index < 100; index += 1) bucket = takePacket(bucket, 0n).bucket;
  assert.equal(takePacket(bucket, 999_999_999n).within, false);
  assert.equal(takePacket(bucket, 1_000_000_000n).within, true);
});

test('a clock that goes backwards adds nothing', () => {
  let bucket = fullBucket(10, 1_000_000_000n);
  for (let index = 0; index < 5; index += 1) bucket = takePacket(bucket, 1_000_000_000n).bucket;
  assert.equal(takePacket(bucket, 0n).within, false);
  assert.equal(takePacket(takePacket(bucket, 0n).bucket, 1_050_000_000n).within, false);
});

for (const [action, within, above] of [
  ['accept', 'accept', 'drop'],
  ['continue', 'accept', 'drop'],
  ['drop', 'accept', 'drop'],
  ['reject', 'accept', 'reject'],
] as const satisfies readonly (readonly [RuleAction, Verdict, Verdict])[]) {
  test(`a flood through a limited ${action} rule: the limit's packets ${within}, the others ${above}`, () => {
    const rule: Rule = {
      uuid: 'limited',
      sequence: 1,
      priority: 1,
      dst: { family: 4, value: 0n, length: 0 },
      protocol: 'any',
      action,
      disabled: false,
      rateLimitPacketsPerSecond: 100,
    };
    const packet: Packet = { family: 4, source: 1n, destination: 2n, extensionHeaders: [], packetType: 'host' };
    let bucket = fullBucket(100, 0n);
    const counts: Partial<Record<Verdict, number>> = {};
    for (const time of steady(2, 10_000)) {
      const { verdict } = evaluate([rule], packet, {
        withinLimit: () => {
          const taken = takePacket(bucket, time);
          bucket = taken.bucket;
          return taken.within;
        },
      });
      counts[verdict] = (counts[verdict] ?? 0) + 1;
    }
    const passed = counts[within] ?? 0;
    assert.ok(passed >= 209 && passed <= 210, `${passed} within`);
    assert.equal(counts[above], 20_000 - passed);
  });
}
