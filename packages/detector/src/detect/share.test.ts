/** Guarantees of detection where not everything is seen, or not everything is ours. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Flow, MONDAY, Rig } from './testing/rig.ts';

const victim = '203.0.113.7';
const policy = { uuid: 'p', subnets: [], rank: 0, thresholds: {}, hold_s: 5, baseline_factor: 3 };
const syn = (pps: number): Flow => ({ dst: victim, vector: 'tcp-syn', pps });

test('the first slot after a gap ends nothing: what was before it may have been anything', () => {
  const rig = new Rig({ policies: [policy] });
  rig.run(5, [syn(40_000)]);
  rig.skip(30_000);
  rig.run(20, [syn(40_000)]);
  assert.equal(rig.phases('ended').length, 0);
  assert.equal(rig.phases('started').length, 1);
  rig.run(10);
  assert.equal(rig.phases('ended').length, 1);
});

test('while a collector is away nothing ends, and what is not seen when it is back ends a hold later, when it was last seen', () => {
  let isAway = false;
  const rig = new Rig({ policies: [policy], isCollectorAway: () => isAway });
  rig.run(5, [syn(40_000)]);
  const seen = rig.nowMs;
  isAway = true;
  rig.run(60);
  assert.equal(rig.phases('ended').length, 0);
  isAway = false;
  rig.run(4);
  assert.equal(rig.phases('ended').length, 0);
  rig.run(2);
  const [ended] = rig.phases('ended');
  assert.ok(Math.abs((ended?.ended_ms ?? 0) - seen) <= 1_000, `${ended?.ended_ms} is not about ${seen}`);
});

test('a share that is lost is let go without a word, and one that is gained goes on under its name and with its totals', () => {
  let isOurs = true;
  const former = new Rig({ policies: [policy], isOurs: () => isOurs });
  former.run(5, [syn(40_000)]);
  const last = former.attacks.at(-1);
  assert.ok(last !== undefined);
  isOurs = false;
  former.detection.shareChanged();
  former.run(20);
  assert.equal(former.phases('ended').length, 0);

  let isTheirs = false;
  const heir = new Rig({ policies: [policy], isOurs: () => isTheirs, startMs: former.nowMs });
  isTheirs = true;
  const { id, dst, vectors, started_ms, detected_ms, packets, bytes, sampled, threshold } = last;
  heir.change({
    ongoing: [{ id, dst, vectors, started_ms, detected_ms, told: { packets, bytes, sampled, threshold } }],
  });
  heir.detection.shareChanged();
  heir.run(5, [syn(40_000)]);
  heir.run(10);
  assert.deepEqual([...new Set(heir.attacks.map((each) => each.id))], [id]);
  assert.deepEqual(heir.phases('started'), []);
  assert.ok((heir.phases('ended')[0]?.packets ?? 0) > packets + 150_000);
});

test('what is usual of another share is neither learnt as nothing nor held, and comes with the share', () => {
  const dst = '203.0.113.9';
  const known = { dst, vector: 'udp-other', hour: 0, pps: 40_000, bps: 32_000_000, weight: 5 };
  let isOurs = false;
  const rig = new Rig({ isOurs: () => isOurs, baselines: [known] });
  rig.run(3_600);
  rig.run(600);
  assert.equal(rig.learnt.length, 0);
  isOurs = true;
  rig.detection.shareChanged();
  const sameHour = Array.from({ length: 7 }, (_, day) => ({ ...known, hour: 1 + day * 24 }));
  rig.detection.baselines({ type: 'baselines', entries: [known, ...sameHour] });
  rig.run(20, [{ dst, vector: 'udp-other', pps: 110_000 }]);
  assert.deepEqual(rig.phases('started'), []);
  // Half of the hour was somebody else's: what is learnt of it is a rate all the same.
  rig.run(3_600, [{ dst, vector: 'udp-other', pps: 40_000 }]);
  rig.run(400, [{ dst, vector: 'udp-other', pps: 40_000 }]);
  const learnt = rig.learnt.find(({ hour }) => hour === Math.floor((rig.nowMs - MONDAY) / 3_600_000) - 1);
  assert.ok((learnt?.pps ?? 0) > 38_000, JSON.stringify(rig.learnt));
});
