import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HotDestinations, MOST_HOT } from './hot-destinations.ts';
import { Rig } from './testing/rig.ts';

function hotOf() {
  const told: (readonly string[])[] = [];
  return { told, hot: new HotDestinations((destinations) => told.push(destinations)) };
}

test('what is near an attack is told once, and stays for ten seconds after it was near last', () => {
  const { told, hot } = hotOf();
  for (let slot = 0; slot < 20; slot++) hot.judge(slot, [], ['203.0.113.7']);
  for (let slot = 20; slot < 59; slot++) hot.judge(slot, [], []);
  assert.deepEqual(told, [['203.0.113.7']]);
  hot.judge(59, [], []);
  assert.deepEqual(told, [['203.0.113.7'], []]);
});

test('at most 4 096 are told, what is attacked before what is near', () => {
  const { told, hot } = hotOf();
  const near = Array.from({ length: 6_000 }, (_, host) => `10.1.${host >> 8}.${host & 255}`);
  hot.judge(0, [], near);
  assert.equal(told.at(-1)?.length, MOST_HOT);
  hot.judge(1, ['192.0.2.1', '192.0.2.2'], near);
  assert.equal(told.at(-1)?.length, MOST_HOT);
  assert.ok(told.at(-1)?.includes('192.0.2.1') && told.at(-1)?.includes('192.0.2.2'));
});

test('a collector that begins is told what is hot, also when it is not another', () => {
  const rig = new Rig();
  const flow = { dst: '203.0.113.7', vector: 'tcp-syn', pps: 7_000 } as const;
  rig.run(5, [flow]);
  const count = () => rig.sent.filter(({ type }) => type === 'hot').length;
  const before = count();
  rig.collectors = ['a', 'b'];
  rig.run(1, [flow]);
  assert.equal(count(), before + 1);
});
