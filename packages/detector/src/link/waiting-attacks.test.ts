import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DetectedAttack } from '@levee/contract/detector.ts';
import fc from 'fast-check';
import { createWaitingAttacks } from './waiting-attacks.ts';

function attack(
  id: string,
  phase: DetectedAttack['phase'],
  pps = 1,
  more: Partial<DetectedAttack> = {},
): DetectedAttack {
  return {
    id,
    dst: '203.0.113.7',
    phase,
    vectors: ['tcp-syn'],
    started_ms: 1_000,
    detected_ms: 1_300,
    measured: { at_ms: 1_300 + pps, pps, bps: pps * 480 },
    packets: 1,
    bytes: 60,
    sampled: 1,
    threshold: { policy: 'default', vector: 'tcp-syn', metric: 'pps', value: 1, observed: pps },
    profile: [],
    timeline: [{ at_ms: pps * 1_000, seconds: 1, pps, bps: 0, vectors: {} }],
    packet_samples: [{ at_ms: pps, scale: 1, exporter: 'e', length: 60, header: '' }],
    entries: [],
    ...more,
  };
}

const never = () => assert.fail('an attack was given up');
const phases = (attacks: readonly DetectedAttack[]) => attacks.map(({ id, phase }) => `${id} ${phase}`);

test('start and end go out; what changed between them is one word with all moments and the highest measurement', () => {
  const waiting = createWaitingAttacks(never);
  for (const each of [attack('a', 'started', 5), attack('a', 'changed', 9), attack('a', 'changed', 2)])
    waiting.add(each);
  assert.deepEqual(phases(waiting.take(10, 1e6)), ['a started', 'a changed']);
  waiting.returned();
  waiting.add(attack('a', 'ended', 3));
  const [start, end, ...others] = waiting.take(10, 1e6);
  assert.deepEqual([start?.phase, end?.phase, others], ['started', 'ended', []]);
  assert.equal(start?.measured.pps, 5);
  assert.equal(end?.measured.pps, 9);
  assert.deepEqual(
    end?.timeline.map(({ pps }) => pps),
    [9, 2, 3],
  );
  assert.equal(end?.packet_samples.length, 3);
  waiting.settled();
  assert.equal(waiting.size, 0);
});

test('what is on its way is not touched by what comes after, and comes again as it was', () => {
  const waiting = createWaitingAttacks(never);
  waiting.add(attack('a', 'changed', 1));
  const [sent] = waiting.take(10, 1e6);
  waiting.add(attack('a', 'changed', 7));
  assert.equal(sent?.measured.pps, 1);
  waiting.returned();
  assert.deepEqual(phases(waiting.take(10, 1e6)), ['a changed', 'a changed']);
});

test('a report is bounded in attacks and in octets, and one attack always fits', () => {
  const waiting = createWaitingAttacks(never);
  for (const id of ['a', 'b', 'c']) waiting.add(attack(id, 'started'));
  assert.equal(waiting.take(2, 1e6).length, 2);
  waiting.returned();
  assert.equal(waiting.take(10, 1).length, 1);
});

test('beyond the bounds the oldest lose what proves them, then changes go, then what has ended; never one that goes on', () => {
  const lost: string[] = [];
  const waiting = createWaitingAttacks(({ id }) => lost.push(id), { whole: 2, most: 4 });
  for (const id of ['a', 'b', 'c']) waiting.add(attack(id, 'started'));
  waiting.add(attack('a', 'changed'));
  waiting.add(attack('b', 'ended'));
  assert.deepEqual(lost, []);
  waiting.add(attack('d', 'started'));
  assert.deepEqual(lost, ['b']);
  const left = waiting.take(10, 1e6);
  assert.deepEqual(phases(left), ['a started', 'c started', 'd started']);
  assert.deepEqual(
    left.map(({ packet_samples }) => packet_samples.length),
    [0, 0, 1],
  );
});

test('whatever comes while nobody answers, in whatever order it is taken, no start and no end is missing', () => {
  const step = fc.record({
    id: fc.constantFrom('a', 'b', 'c', 'd'),
    act: fc.constantFrom('next', 'take', 'answer', 'lose'),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const waiting = createWaitingAttacks(never);
      const state = new Map<string, { told: number; run: number }>();
      const expected = new Set<string>();
      const arrived: string[] = [];
      let taken: readonly DetectedAttack[] = [];
      for (const { id, act } of steps) {
        if (act === 'next') {
          const { told, run } = state.get(id) ?? { told: 0, run: 0 };
          const phase = (['started', 'changed', 'ended'] as const)[told] ?? 'started';
          const name = `${id}${run}`;
          waiting.add(attack(name, phase));
          if (phase !== 'changed') expected.add(`${name} ${phase}`);
          state.set(id, phase === 'ended' ? { told: 0, run: run + 1 } : { told: told + 1, run });
        } else if (act === 'take' && taken.length === 0) {
          taken = waiting.take(2, 1e6);
        } else if (act === 'answer' && taken.length > 0) {
          arrived.push(...phases(taken));
          waiting.settled();
          taken = [];
        } else if (act === 'lose' && taken.length > 0) {
          waiting.returned();
          taken = [];
        }
      }
      if (taken.length > 0) waiting.returned();
      while (waiting.size > 0) {
        arrived.push(...phases(waiting.take(3, 1e6)));
        waiting.settled();
      }
      for (const each of expected) assert.ok(arrived.includes(each), each);
      for (const id of new Set(arrived.map((each) => each.split(' ')[0]))) {
        const order = arrived.filter((each) => each.startsWith(`${id} `)).map((each) => each.split(' ')[1]);
        assert.equal(order[0], 'started');
        assert.ok(!order.includes('ended') || order.at(-1) === 'ended', order.join());
      }
    }),
    { numRuns: 500 },
  );
});
