import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { DistinctCount } from './distinct-count.ts';
import { HEAVY_KEYS, HeavyKeys } from './heavy-keys.ts';
import { hashWords } from './key-table.ts';

test('up to 64 keys are counted exactly', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(HEAVY_KEYS - 1), fc.integer({ min: 1, max: 50 }))), (additions) => {
      const keys = new HeavyKeys();
      const model = new Map<number, number>();
      for (const [key, weight] of additions) {
        keys.add(weight, key * 1_000_003);
        model.set(key * 1_000_003, (model.get(key * 1_000_003) ?? 0) + weight);
      }
      assert.deepEqual(new Map(keys.numbers().sort()), new Map([...model].sort()));
    }),
  );
});

test('of many keys the heavy ones are found, and none is said to have more than it had', () => {
  const keys = new HeavyKeys();
  for (let i = 0; i < 50_000; i++) {
    if (i % 10 === 0) keys.add(1, 53);
    else if (i % 10 === 1) keys.add(1, 123);
    else keys.add(1, 1024 + ((i * 7919) % 60_000));
  }
  const [first, second, ...rest] = keys.numbers();
  assert.deepEqual([first?.[0], second?.[0]].sort(), [123, 53]);
  for (const found of [first, second]) assert.ok((found?.[1] ?? 0) > 4_900 && (found?.[1] ?? 0) <= 5_000);
  for (const [, weight] of rest) assert.ok(weight <= 2, 'a rare key is not made heavy by the place that it took');
});

test('is empty after clear', () => {
  const keys = new HeavyKeys();
  for (let i = 0; i < 1000; i++) keys.add(1, i, i, i, i);
  keys.clear();
  assert.deepEqual(keys.places(), []);
  keys.add(3, 1, 2, 3, 4);
  assert.deepEqual(keys.places(), [{ place: 0, weight: 3 }]);
});

for (const count of [1, 10, 500, 5_000, 200_000]) {
  test(`an estimate of ${count} different sources is off by at most 12 %`, () => {
    const distinct = new DistinctCount();
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < count; i++) distinct.add(hashWords(0x0a000000 + i, 0, 0, 0, 4));
    }
    assert.ok(Math.abs(distinct.estimate() - count) <= Math.max(0.5, count * 0.12), `${distinct.estimate()}`);
    distinct.clear();
    assert.equal(distinct.estimate(), 0);
  });
}
