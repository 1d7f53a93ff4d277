import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retryAfterSeconds, TRY_FOR_SECONDS } from './retry-schedule.ts';

/** The moments of all attempts, in seconds since the first. */
function moments(random: number): number[] {
  const all = [0];
  for (let attempts = 1; ; attempts++) {
    const since = all.at(-1) ?? 0;
    const pause = retryAfterSeconds({ attempts, secondsSinceFirst: since }, random);
    if (pause === undefined) return all;
    all.push(since + pause);
  }
}

test('the pauses grow from seconds to hours, and the last attempt comes before the day is over', () => {
  for (const random of [0, 0.5, 1]) {
    const all = moments(random);
    const pauses = all.slice(1).map((at, index) => at - (all[index] ?? 0));
    assert.ok(pauses[0] !== undefined && pauses[0] >= 4 && pauses[0] <= 6);
    assert.ok(pauses.every((pause, index) => index === 0 || pause >= (pauses[index - 1] ?? 0) - 1e-6));
    const last = all.at(-1) ?? 0;
    assert.ok(last <= TRY_FOR_SECONDS && last > TRY_FOR_SECONDS - 5 * 3600, `${last}`);
    assert.ok(all.length >= 10 && all.length <= 16, `${all.length} attempts`);
  }
});

test('what failed together does not come back together', () => {
  const pauses = [0, 0.25, 0.5, 0.75, 1].map((random) =>
    retryAfterSeconds({ attempts: 3, secondsSinceFirst: 40 }, random),
  );
  assert.equal(new Set(pauses).size, pauses.length);
});

test('a receiver that asks for patience gets it, within four hours', () => {
  const asked = (askedSeconds: number) => retryAfterSeconds({ attempts: 1, secondsSinceFirst: 0, askedSeconds }, 0.5);
  assert.equal(asked(1), 5);
  assert.equal(asked(600), 600);
  assert.equal(asked(10_000_000), 4 * 3600);
});
