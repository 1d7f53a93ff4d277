import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endOf, holdFor, LINGERING_TIMES } from './hold.ts';

test('the hold is the policy’s, twice the last one’s when an attack is back soon, and never more than an hour', () => {
  assert.equal(holdFor(30_000, undefined, 0), 30_000);
  let hold = 30_000;
  const holds: number[] = [];
  for (let times = 0; times < 10; times++) {
    hold = holdFor(30_000, { endedMs: 1_000_000, holdMilliseconds: hold }, 1_010_000);
    holds.push(hold / 1000);
  }
  assert.deepEqual(holds, [60, 120, 240, 480, 480, 480, 480, 480, 480, 480]);
  assert.equal(holdFor(1_800_000, { endedMs: 0, holdMilliseconds: 1_800_000 }, 1), 3_600_000);
  assert.equal(holdFor(30_000, { endedMs: 0, holdMilliseconds: 30_000 }, 300_001), 30_000);
});

test('a policy that holds for longer than an hour is held to', () => {
  assert.equal(holdFor(7_200_000, { endedMs: 0, holdMilliseconds: 7_200_000 }, 1), 7_200_000);
});

test('it ended when it was last above half, or last above all of it when it lingers', () => {
  const attack = { aboveHalfMs: 50_000, aboveMs: 40_000, holdMilliseconds: 10_000 };
  assert.equal(endOf(attack, 59_999), undefined);
  assert.equal(endOf(attack, 60_000), 50_000);
  const lingering = { ...attack, aboveHalfMs: 40_000 + LINGERING_TIMES * 10_000 };
  assert.equal(endOf(lingering, lingering.aboveHalfMs - 1), undefined);
  assert.equal(endOf(lingering, lingering.aboveHalfMs), 40_000);
});
