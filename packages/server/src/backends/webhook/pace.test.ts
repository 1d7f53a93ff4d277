import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ATTEMPTS_AT_ONCE, Pace } from './pace.ts';

const NOW = 1_700_000_000_000;

/** One attempt after the other. */
function fail(pace: Pace, times: number): void {
  for (let each = 0; each < times; each++) {
    pace.began('w');
    pace.ended('w', false, NOW, 0.5);
  }
}

test('one that fails again and again is tried one at a time, after longer and longer pauses', () => {
  const pace = new Pace();
  fail(pace, 4);
  assert.deepEqual([pace.slots('w'), pace.notBefore('w')], [ATTEMPTS_AT_ONCE, 0]);
  fail(pace, 1);
  assert.deepEqual([pace.slots('w'), pace.notBefore('w')], [1, NOW + 5_000]);
  fail(pace, 3);
  assert.equal(pace.notBefore('w'), NOW + 40_000);
  fail(pace, 100);
  assert.equal(pace.notBefore('w'), NOW + 600_000);
});

test('asking for an attempt allows one and forgives nothing; leading elsewhere forgives all', () => {
  const pace = new Pace();
  fail(pace, 8);
  pace.probe('w');
  assert.deepEqual([pace.slots('w'), pace.notBefore('w')], [1, 0]);
  fail(pace, 1);
  assert.equal(pace.notBefore('w'), NOW + 80_000, 'it goes on where it was');
  pace.trust('w');
  assert.deepEqual([pace.slots('w'), pace.notBefore('w')], [ATTEMPTS_AT_ONCE, 0]);
});

test('what was not tried is no failure', () => {
  const pace = new Pace();
  fail(pace, 4);
  pace.began('w');
  pace.ended('w', undefined, NOW, 0.5);
  assert.deepEqual([pace.slots('w'), pace.notBefore('w')], [ATTEMPTS_AT_ONCE, 0]);
});

test('nothing is kept of those that delivered, waited for others or were forgotten', () => {
  const pace = new Pace();
  fail(pace, 6);
  pace.hold('held', NOW + 250);
  pace.began('well');
  pace.ended('well', true, NOW, 0.5);
  assert.deepEqual(pace.failed(), ['w']);
  assert.equal(pace.notBefore('held'), 0);
  pace.forget('w');
  assert.deepEqual(pace.failed(), []);
  assert.deepEqual([pace.slots('w'), pace.notBefore('w')], [ATTEMPTS_AT_ONCE, 0]);
});
