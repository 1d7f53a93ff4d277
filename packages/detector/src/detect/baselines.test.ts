import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BaselineEntry } from '@levee/contract/detector.ts';
import { hourOfWeek } from '@levee/core/detection/baseline.ts';
import { type Flow, MONDAY, Rig } from './testing/rig.ts';

const server = '203.0.113.9';
const udp = (pps: number): Flow => ({ dst: server, vector: 'udp-other', pps });
const hour = 3_600;

test('what is usual for an hour of the week is learnt from it, told, and not from attacks', () => {
  const rig = new Rig();
  rig.run(hour, [udp(30_000)]);
  rig.run(600, [udp(30_000)]);
  assert.equal(rig.attacks.length, 0);
  const [entry] = rig.learnt.filter(({ vector, dst }) => vector === 'udp-other' && dst === server);
  assert.deepEqual([entry?.hour, entry?.weight], [0, 1]);
  assert.ok(Math.abs((entry?.pps ?? 0) - 30_000) < 30, `${entry?.pps}`);
  assert.ok(Math.abs((entry?.bps ?? 0) - 24_000_000) < 24_000, `${entry?.bps}`);
  // The hour before is what is usual: 89 000 is not three times that, 95 000 is.
  rig.run(10, [udp(89_000)]);
  assert.equal(rig.attacks.length, 0);
  rig.run(1_200, [udp(95_000)]);
  assert.equal(rig.found().join(), `${server} udp-other`);
  assert.ok(Math.abs((rig.attacks[0]?.threshold.baseline ?? 0) - 30_000) < 30);
  rig.run(hour - 1_810 + 700, [udp(30_000)]);
  const second = rig.learnt.filter(({ vector, dst, hour }) => vector === 'udp-other' && dst === server && hour === 1);
  assert.ok(Math.abs((second[0]?.pps ?? 0) - 30_000) < 1_500, JSON.stringify(second));
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
  const rig = new Rig({ baselines: [known(0)] });
  rig.run(20, [udp(110_000)]);
  assert.equal(rig.attacks.length, 0);
  rig.run(20, [udp(130_000)]);
  assert.equal(rig.phases('started')[0]?.threshold.value, 120_000);
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
