import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createProgress, type Point } from './progress.ts';

const point = (cursor: string): Point => ({ cursor, complete: true });

test('a cursor is reached when its entries are done and its tunnels applied, whichever comes later', () => {
  const progress = createProgress();
  assert.equal(progress.reached(9), undefined);
  progress.begin(point('1.1'), 0);
  progress.begin(point('1.2'), 1);
  assert.equal(progress.reached(9), undefined);
  progress.entriesDone();
  assert.equal(progress.reached(0)?.cursor, '1.1');
  assert.equal(progress.reached(1)?.cursor, '1.2');
  progress.begin(point('1.3'), 1);
  assert.equal(progress.reached(1)?.cursor, '1.2');
  progress.entriesDone();
  assert.equal(progress.reached(1)?.cursor, '1.3');
});

test('what needs no newer tunnels is not held up by them, and nothing overtakes', () => {
  const progress = createProgress();
  progress.begin(point('1.1'), 1);
  progress.entriesDone();
  progress.begin(point('1.2'), 1);
  progress.entriesDone();
  progress.begin(point('1.3'), 2);
  progress.entriesDone();
  assert.equal(progress.reached(0), undefined);
  assert.equal(progress.reached(1)?.cursor, '1.2');
  assert.equal(progress.reached(2)?.cursor, '1.3');
});

test('it waits for tunnels from when entries are done until they are applied, and not before', () => {
  const progress = createProgress();
  assert.equal(progress.waitsForTunnels(9), false);
  progress.begin(point('1.1'), 1);
  assert.equal(progress.waitsForTunnels(0), false);
  progress.entriesDone();
  progress.begin(point('1.2'), 1);
  assert.equal(progress.waitsForTunnels(0), true);
  assert.equal(progress.waitsForTunnels(1), false);
  assert.equal(progress.reached(1)?.cursor, '1.1');
});

test('before any work there is nothing to acknowledge, done or not', () => {
  const progress = createProgress();
  progress.entriesDone();
  assert.equal(progress.reached(Number.POSITIVE_INFINITY), undefined);
});
