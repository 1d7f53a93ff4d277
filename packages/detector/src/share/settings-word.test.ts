import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SettingsTaker, SettingsTeller } from './settings-word.ts';

/** One collector that says once a second what it goes by, and detectors with these revisions; the seconds at which it took which. */
function run(kept: number, detectors: readonly number[], seconds: number): [number, number][] {
  const taker = new SettingsTaker(kept);
  const tellers = detectors.map((own) => ({ own, teller: new SettingsTeller() }));
  const took: [number, number][] = [];
  let revision = kept;
  taker.take(kept, 0);
  for (let second = 1; second <= seconds; second++) {
    for (const { own, teller } of tellers) {
      const now = second * 1_000;
      if (!teller.isDue(own, revision, now)) continue;
      teller.told(now);
      if (!taker.take(own, now)) continue;
      revision = own;
      took.push([second, own]);
    }
  }
  return took;
}

test('a collector leaves settings that nobody tells of any more for those that its detectors have, within 80 s', () => {
  const [first, ...more] = run(3_600_000, [5], 300);
  assert.equal(first?.[1], 5);
  assert.ok((first?.[0] ?? 999) <= 80, `after ${first?.[0]} s`);
  assert.deepEqual(more, []);
});

test('of two detectors with other revisions the higher one stays; an older one is taken nowhere', () => {
  assert.deepEqual(run(5, [5, 6], 600), [[1, 6]]);
  assert.deepEqual(run(6, [5, 6], 600), []);
});

test('a collector that was told of nothing yet takes whatever comes first, and the same again is not new', () => {
  const taker = new SettingsTaker(9);
  assert.deepEqual(
    [taker.take(4, 0), taker.take(4, 1), taker.take(3, 2), taker.take(5, 3)],
    [true, false, false, true],
  );
});
