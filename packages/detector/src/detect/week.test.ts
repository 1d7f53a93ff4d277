import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measureLatency } from './testing/latency.ts';
import { simulateWeek } from './testing/week.ts';

test('in a day of ordinary traffic all attacks are found once, in time, under their vector, and nothing else is', () => {
  const day = simulateWeek({ hours: 24, minutes: 5, destinations: 300, sampling: 1_000, attacks: 36, seed: 1 });
  assert.ok(day.found >= 25, `${day.found}`);
  assert.deepEqual(day.missed, []);
  assert.equal(day.repeated, 0);
  assert.equal(day.underOtherVector, 0);
  assert.deepEqual(
    day.falseAlarms.map(({ attack, kind, part }) => `${attack.dst} ${attack.vectors.join()} ${kind} ${part}`),
    [],
  );
  assert.ok((day.delays[Math.floor(day.delays.length / 2)] ?? 0) < 1_000, day.delays.join());
});

test('a flood of 8 000 packets/s sampled one in 16 is found in 0.4 s where a fraction of it is too much, in 1 s at worst', () => {
  for (const [threshold, most] of [
    [500, 0.3],
    [1_000, 0.4],
    // A quarter of a second until so many packets were there at all.
    [2_000, 0.5],
  ] as const) {
    const delays = measureLatency({ sampling: 16, pps: 8_000, threshold, rounds: 100, vector: 'tcp-syn' });
    const median = delays[50] ?? Number.POSITIVE_INFINITY;
    assert.ok(median <= most * 1000, `threshold ${threshold}: median ${median}`);
    assert.ok((delays.at(-1) ?? 0) <= 1_000, `threshold ${threshold}: worst ${delays.at(-1)}`);
  }
});
