import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canMatter, HOURS, hourOfWeek, hourStart, learn, usualAt } from './baseline.ts';

const thresholds = { pps: 1_000, bps: 1e6 };

test('the first weeks count alike, later ones give way to the newest', () => {
  let known = { pps: 0, bps: 0, weight: 0 };
  for (const pps of [300, 600, 900]) known = learn(known, { pps, bps: 0 }, thresholds);
  assert.deepEqual(known, { pps: 600, bps: 0, weight: 3 });
  known = learn(known, { pps: 1_600, bps: 0 }, thresholds);
  assert.equal(known.pps, 600 + 0.3 * 1_000);
});

test('slow growth is followed up to four times the threshold and no further', () => {
  let known = { pps: 900, bps: 0, weight: 10 };
  for (let week = 0; week < 100; week++) known = learn(known, { pps: known.pps * 2, bps: 0 }, thresholds);
  assert.equal(known.pps, 4_000);
});

test('what cannot reach a threshold by its factor does not matter', () => {
  assert.equal(canMatter({ pps: 166, bps: 0 }, thresholds, 3), false);
  assert.equal(canMatter({ pps: 167, bps: 0 }, thresholds, 3), true);
  assert.equal(canMatter({ pps: 0, bps: 5e5 }, thresholds, 1), true);
  assert.equal(canMatter({ pps: 1e9, bps: 0 }, { pps: Number.POSITIVE_INFINITY, bps: 1e6 }, 3), false);
});

test('hours count from Monday, 00:00 UTC', () => {
  const monday = Date.UTC(2026, 0, 5);
  assert.deepEqual([hourOfWeek(monday), hourOfWeek(monday - 1), hourOfWeek(monday + 25 * 3_600_000)], [0, 167, 25]);
  assert.equal(hourStart(monday + 3_599_999), monday);
});

test('an hour is known by three days at the same hour, never by the hour before', () => {
  const week = (hours: Record<number, number>) => ({
    pps: Array.from({ length: HOURS }, (_, hour) => hours[hour] ?? 0),
    bps: Array.from({ length: HOURS }, () => 0),
    weights: Array.from({ length: HOURS }, (_, hour) => (hour in hours ? 1 : 0)),
  });
  const at = (hours: Record<number, number>) => usualAt(week(hours), 5 + 24);
  assert.equal(at({ 2: 900, 3: 900, 4: 900, 28: 900, 27: 900 }), undefined);
  assert.equal(at({ 5: 900, 53: 900 }), undefined);
  assert.equal(at({ 5: 900, 53: 100, 77: 300 })?.pps, 300);
  assert.equal(at({ 5: 900, 53: 100, 77: 300, 149: 800 })?.pps, 300);
  assert.equal(at({ 5: 900, 29: 700, 53: 900 })?.pps, 700);
});
