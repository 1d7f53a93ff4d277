import assert from 'node:assert/strict';
import test from 'node:test';
import type { CollectorStatus } from '../bus/port.ts';
import { CollectorWatch } from './collector-watch.ts';

const status = (collector: string): CollectorStatus => ({
  type: 'status',
  collector,
  settingsRevision: 1,
  exporters: [],
  receiveBuffer: { bytes: 1, wanted: 1 },
  kernelDrops: 0,
  overflow: { unknownDatagrams: 0, samples: 0, unspread: 0, unprofiled: 0 },
});

test('two collectors by one name are told of while both speak; one that began again is not', () => {
  const watch = new CollectorWatch();
  const by = (run: string) => ({ ...status('a'), run });
  for (const [at, run] of ['1', '1', '2', '2', '3'].entries()) watch.heard(by(run), at * 1_000);
  assert.deepEqual(watch.doubled(5_000), []);
  for (const [at, run] of ['4', '3', '4'].entries()) watch.heard(by(run), 5_000 + at * 1_000);
  assert.deepEqual(watch.doubled(8_000), ['a']);
  watch.heard(by('4'), 17_500);
  assert.deepEqual(watch.doubled(17_500), []);
});

test('a collector that falls silent is away until it is back, has said farewell, or a quarter of an hour is over', () => {
  const watch = new CollectorWatch();
  assert.equal(watch.isAnyAway(0), false);
  watch.heard(status('a'), 0);
  watch.heard(status('b'), 0);
  assert.equal(watch.isAnyAway(2_500), false);
  watch.heard(status('a'), 3_000);
  assert.equal(watch.isAnyAway(3_000), true);
  watch.heard(status('b'), 3_100);
  assert.equal(watch.isAnyAway(3_200), false);
  watch.heard(status('a'), 10_000);
  assert.equal(watch.isAnyAway(10_000), true);
  watch.left('b');
  assert.equal(watch.isAnyAway(10_000), false);
  assert.equal(watch.isAnyAway(20_000), true);
  assert.equal(watch.isAnyAway(10_000 + 15 * 60_000 + 1), false);
});

test('of a collector that is away for longer than is asked nothing is told', () => {
  const watch = new CollectorWatch();
  watch.heard(status('a'), 0);
  watch.heard(status('b'), 50_000);
  assert.deepEqual(
    watch.statuses(70_000, 60_000).map(({ collector }) => collector),
    ['b'],
  );
});
