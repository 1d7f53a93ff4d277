import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Timeline } from './timeline.ts';

const start = Date.UTC(2026, 0, 5);

test('slots of a second are one entry, told once, and the last one at the end', () => {
  const timeline = new Timeline(start);
  for (let slot = 0; slot < 10; slot++) {
    timeline.add(start + slot * 250, 'tcp-syn', 100, 6_000, true);
    timeline.add(start + slot * 250, 'icmp', 10, 840, true);
  }
  const told = timeline.take(false);
  assert.deepEqual(
    told,
    [0, 1_000].map((at) => ({
      at_ms: start + at,
      seconds: 1,
      pps: 440,
      bps: 218_880,
      vectors: { 'tcp-syn': { pps: 400, bps: 192_000 }, icmp: { pps: 40, bps: 26_880 } },
    })),
  );
  assert.deepEqual(timeline.take(false), []);
  assert.equal(timeline.take(true)[0]?.at_ms, start + 2_000);
});

test('what is part of the whole already is beside it, not on top of it', () => {
  const timeline = new Timeline(start);
  timeline.add(start, 'total', 100, 0, true);
  timeline.add(start, 'tcp-syn', 60, 0, false);
  assert.equal(timeline.take(true)[0]?.pps, 100);
});

test('what nobody takes is bounded', () => {
  const timeline = new Timeline(start);
  for (let second = 0; second < 100_000; second++) timeline.add(start + second * 1000, 'icmp', 1, 1, true);
  assert.ok(timeline.waiting <= 240);
});
