import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { judgeSubnet } from './carpet.ts';
import { certainRate, judge, LEAST_SAMPLES, limitsOf } from './judge.ts';

test('with fewer than twelve samples nothing is too much', () => {
  const limits = { pps: 1, bps: 1, baseline: undefined };
  assert.equal(judge({ pps: 1e12, bps: 1e15 }, LEAST_SAMPLES - 1, limits), undefined);
  assert.notEqual(judge({ pps: 1e12, bps: 1e15 }, LEAST_SAMPLES, limits), undefined);
});

test('what is certain grows with samples and stays below the rate', () => {
  fc.assert(
    fc.property(fc.integer({ min: 12, max: 1e6 }), fc.double({ min: 1, max: 1e12, noNaN: true }), (samples, rate) => {
      const certain = certainRate(rate, samples);
      assert.ok(certain > 0 && certain < rate);
      assert.ok(certain <= certainRate(rate, samples + 1));
    }),
  );
  assert.equal(certainRate(1000, 196), 1000 * (1 - 1.96 / 14));
});

test('the metric that is exceeded more is the one that is told, with what was exceeded', () => {
  const limits = limitsOf(1_000, 1_000_000, undefined, 3);
  assert.deepEqual(judge({ pps: 2_000, bps: 5_000_000 }, 10_000, limits), {
    metric: 'bps',
    value: 1_000_000,
    observed: 5_000_000,
    baseline: undefined,
    isClear: true,
  });
  assert.equal(judge({ pps: 2_000, bps: 500_000 }, 10_000, limits)?.metric, 'pps');
  assert.equal(judge({ pps: 900, bps: 900_000 }, 10_000, limits), undefined);
});

test('a few samples more than the limit has are to be confirmed, many times as many are not', () => {
  const at = (samples: number, scale: number) =>
    judge({ pps: samples * scale, bps: 0 }, samples, limitsOf(10_000, 1e12, undefined, 3))?.isClear;
  assert.equal(at(19, 1_000), false);
  assert.equal(at(23, 1_000), true);
  assert.equal(at(12, 100_000), true);
  assert.equal(at(125, 100), false);
});

const daysOf = (pps: number, count: number) => ({
  pps,
  bps: 1,
  days: Array.from({ length: 7 }, (_, day) => ({ pps: day < count ? pps : 1, bps: 1 })),
});

test('a baseline of days raises what is too much and never lowers it', () => {
  assert.equal(limitsOf(1_000, 10, daysOf(400, 5), 3).pps, 1_200);
  assert.equal(limitsOf(1_000, 10, daysOf(200, 7), 3).pps, 1_000);
  const excess = judge({ pps: 3_000, bps: 0 }, 10_000, limitsOf(1_000, 1e9, daysOf(900, 7), 3));
  assert.deepEqual(excess, { metric: 'pps', value: 2_700, observed: 3_000, baseline: 900, isClear: true });
});

test('each day raises a limit by a quarter, from the third on, and no week to more than 3.05 times the threshold', () => {
  const raised = [1, 2, 3, 4, 5, 6, 7].map((count) => limitsOf(1_000, 10, daysOf(100_000, count), 3).pps);
  const expected = [1_000, 1_000, 1_250, 1_562.5, 1_953.125, 2_441.40625, 3_051.7578125];
  assert.deepEqual(raised, expected);
  assert.equal(limitsOf(1_000, 10, daysOf(100_000, 7), 1).pps, 1_000);
  assert.equal(limitsOf(1_000, 10, daysOf(100_000, 7), 1_000).pps, expected.at(-1));
});

test('a vector without limits is never too much', () => {
  const limits = limitsOf(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, undefined, 3);
  assert.equal(judge({ pps: 1e12, bps: 1e15 }, 1e6, limits), undefined);
});

const limits = limitsOf(1_000, 1e12, undefined, 3);
const amount = (packets: number) => ({ packets, bytes: packets * 100, samples: packets });
const member = (packets: number, isExcessive = false) => ({ ...amount(packets), isExcessive });

test('a subnet is attacked by what is spread over it', () => {
  assert.equal(
    judgeSubnet(
      amount(5_000),
      Array.from({ length: 50 }, () => member(100)),
      limits,
    )?.observed,
    5_000,
  );
  assert.equal(
    judgeSubnet(
      amount(900),
      Array.from({ length: 9 }, () => member(100)),
      limits,
    ),
    undefined,
  );
});

test('a subnet is not attacked by what up to four of its addresses have too much of', () => {
  const quiet = Array.from({ length: 50 }, () => member(10));
  const loud = (count: number) => Array.from({ length: count }, () => member(5_000, true));
  for (const count of [1, 2, 3, 4]) {
    assert.equal(judgeSubnet(amount(500 + count * 5_000), [...quiet, ...loud(count)], limits), undefined, `${count}`);
  }
  assert.notEqual(judgeSubnet(amount(500 + 40 * 5_000), [...quiet, ...loud(40)], limits), undefined);
});

test('a subnet is not attacked by one address, be it too much for that or not', () => {
  assert.equal(judgeSubnet(amount(2_000), [member(1_500), member(500)], limits), undefined);
  assert.notEqual(judgeSubnet(amount(2_000), [member(1_000), member(1_000)], limits), undefined);
});

test('what no address is known of counts as spread', () => {
  assert.notEqual(judgeSubnet(amount(2_000), [], limits), undefined);
});
