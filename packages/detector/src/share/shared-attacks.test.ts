import assert from 'node:assert/strict';
import test from 'node:test';
import type { DetectedAttack, OngoingAttack } from '@levee/contract/detector.ts';
import { settingsOf } from '../link/testing/control-plane.ts';
import { SharedAttacks } from './shared-attacks.ts';

const ongoing = (id: string, dst = '203.0.113.7'): OngoingAttack => ({
  id,
  dst,
  vectors: ['tcp-syn'],
  started_ms: 1,
  detected_ms: 2,
});

function detected(id: string, phase: DetectedAttack['phase'], packets = 0): DetectedAttack {
  return {
    ...ongoing(id),
    phase,
    measured: { at_ms: 3, pps: 0, bps: 0 },
    packets,
    bytes: 0,
    sampled: 0,
    threshold: { policy: 'default', vector: 'tcp-syn', metric: 'pps', value: 1, observed: 2 },
    profile: [],
    timeline: [],
    packet_samples: [],
    entries: [],
  };
}

const idsOf = (shared: SharedAttacks, known: readonly OngoingAttack[] = []) =>
  shared.with({ ...settingsOf(1, []), ongoing: [...known] }).ongoing.map(({ id }) => id);

test('an attack that the control plane was not told of yet is known to the others, with its totals', () => {
  const here = new SharedAttacks();
  const there = new SharedAttacks();
  there.heard(here.told([detected('x', 'started', 5)]));
  there.heard(here.told([detected('x', 'changed', 9)]));
  const [known] = there.with(settingsOf(1, [])).ongoing;
  assert.deepEqual([known?.id, known?.dst, known?.told?.packets], ['x', '203.0.113.7', 9]);
});

test('what ended does not go on, whoever says so later and however old the settings are', () => {
  const shared = new SharedAttacks();
  shared.told([detected('x', 'started')]);
  shared.told([detected('x', 'ended')]);
  shared.heard({ ongoing: [ongoing('x'), ongoing('y')], ended: [] });
  assert.deepEqual(idsOf(shared, [ongoing('x'), ongoing('z')]), ['z', 'y']);
});

test('however many there are, what is kept of them is bounded', () => {
  const shared = new SharedAttacks();
  for (let i = 0; i < 20_000; i++) shared.heard({ ongoing: [ongoing(`o${i}`)], ended: [`e${i}`] });
  assert.equal(idsOf(shared).length, 8_192);
  assert.equal(shared.ended.length, 4_096);
});
