import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BaselineEntry } from '@levee/contract/detector.ts';
import { hourOfWeek } from '@levee/core/detection/baseline.ts';
import { type Flow, MONDAY, policy, Rig } from './testing/rig.ts';

const server = '203.0.113.9';
const udp = (pps: number): Flow => ({ dst: server, vector: 'udp-other', pps });
const hour = 3_600;

/** Six minutes of an hour, and nothing until the same hour of the next day. */
function day(rig: Rig, flows: readonly Flow[]): void {
  const startMs = rig.slotMs;
  rig.run(360, flows);
  rig.skip(startMs + 86_400_000 - rig.slotMs);
}

test('what is usual for an hour of the week is learnt from it, told, and not from attacks', () => {
  const rig = new Rig();
  rig.run(hour, [udp(30_000)]);
  rig.run(600, [udp(30_000)]);
  assert.equal(rig.attacks.length, 0);
  const [entry] = rig.learnt.filter(({ vector, dst }) => vector === 'udp-other' && dst === server);
  assert.deepEqual([entry?.hour, entry?.weight], [0, 1]);
  assert.ok(Math.abs((entry?.pps ?? 0) - 30_000) < 30, `${entry?.pps}`);
  assert.ok(Math.abs((entry?.bps ?? 0) - 24_000_000) < 24_000, `${entry?.bps}`);
  rig.run(1_200, [udp(95_000)]);
  assert.equal(rig.found().join(), `${server} udp-other`);
  rig.run(hour - 1_800 + 700, [udp(30_000)]);
  const second = rig.learnt.filter(({ vector, dst, hour }) => vector === 'udp-other' && dst === server && hour === 1);
  assert.ok(Math.abs((second[0]?.pps ?? 0) - 30_000) < 1_500, JSON.stringify(second));
});

test('what three days had at this hour raises the limit by a quarter, and each day more as much again', () => {
  const rig = new Rig();
  for (let count = 0; count < 3; count++) day(rig, [udp(40_000)]);
  rig.run(10, [udp(61_000)]);
  assert.equal(rig.attacks.length, 0);
  rig.run(10, [udp(64_000), { dst: server, vector: 'icmp', pps: 9_000 }]);
  const [started] = rig.phases('started');
  assert.deepEqual([started?.threshold.vector, rig.found().join()], ['icmp', `${server} icmp,udp-other`]);
  const last = rig.attacks.at(-1);
  // Of each vector what is usual of it, be it the one that was found first or not; what was never near is not known.
  assert.deepEqual(
    last?.profile.map(({ vector, baseline_pps }) => [vector, Math.round((baseline_pps ?? -1) / 100)]),
    [
      ['icmp', -0],
      ['udp-other', 400],
    ],
  );
});

test('a rise by the hour hides nothing, nor do six minutes before the full hour', () => {
  const syn = (pps: number): Flow => ({ dst: server, vector: 'tcp-syn', pps });
  const rig = new Rig();
  for (const pps of [9_000, 26_100, 75_690]) {
    const startMs = rig.slotMs;
    rig.run(360, [syn(pps)]);
    rig.skip(startMs + hour * 1_000 - rig.slotMs);
  }
  assert.deepEqual(
    rig.phases('started').map(({ threshold }) => threshold.value),
    [10_000, 10_000],
  );
  const late = new Rig({ startMs: MONDAY + 54 * 60_000 });
  late.run(360, [syn(9_900)]);
  late.run(5, [syn(28_000)]);
  assert.equal(late.phases('started')[0]?.threshold.value, 10_000);
});

test('a rise by the day stays within three thresholds, and is seen beyond', () => {
  const rig = new Rig({ policies: [policy({}, { baseline_factor: 1_000 })] });
  const syn = (pps: number): Flow => ({ dst: server, vector: 'tcp-syn', pps });
  const limits: number[] = [];
  // Each day what was just not seen the day before, for three weeks; then far more.
  let pps = 9_500;
  for (let count = 0; count < 21; count++) {
    day(rig, [syn(pps)]);
    assert.equal(rig.attacks.length, 0, `day ${count}: ${pps}`);
    limits.push(pps);
    pps = Math.min(30_000, count < 2 ? 9_500 : pps * 1.2);
  }
  rig.run(5, [syn(40_000)]);
  const value = rig.phases('started')[0]?.threshold.value ?? 0;
  assert.ok(value > 30_000 && value < 30_600, `${value}, after ${limits.join()}`);
});

test('what was learnt before a restart holds after it', () => {
  const known = (at: number): BaselineEntry => ({
    dst: server,
    vector: 'udp-other',
    hour: at,
    pps: 40_000,
    bps: 32_000_000,
    weight: 5,
  });
  const rig = new Rig({ baselines: [0, 24, 48, 72, 96, 120, 144].map(known) });
  rig.run(20, [udp(110_000)]);
  assert.equal(rig.attacks.length, 0);
  rig.run(20, [udp(130_000)]);
  assert.deepEqual(
    [rig.phases('started')[0]?.threshold.value, rig.phases('started')[0]?.threshold.baseline],
    [120_000, 40_000],
  );
  const without = new Rig();
  without.run(20, [udp(110_000)]);
  assert.equal(without.phases('started')[0]?.threshold.value, 50_000);
});

test('nothing is kept of what comes near no threshold', () => {
  const rig = new Rig();
  const small = Array.from(
    { length: 200 },
    (_, host): Flow => ({
      dst: `203.0.113.${host}`,
      vector: 'udp-other',
      pps: 50,
    }),
  );
  for (let minute = 0; minute < 70; minute++) rig.run(4, small);
  assert.deepEqual(rig.learnt, []);
});

test('hours of the week count from Monday, 00:00 UTC', () => {
  assert.equal(hourOfWeek(MONDAY), 0);
  assert.equal(hourOfWeek(MONDAY - 1), 167);
  assert.equal(hourOfWeek(Date.UTC(2026, 0, 7, 13, 59)), 61);
});
