import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterOf } from '../testing/filters.ts';
import { objectsOf, rulesAlone } from '../testing/objects.ts';
import { ruleOf, uuidOf } from '../testing/rules.ts';
import { tunnelOf } from '../testing/tunnels.ts';
import { createWorkQueue } from './queue.ts';

const known = { cursor: '1.0', complete: true };

test('of several changes of an object the last one counts', () => {
  const queue = createWorkQueue(known);
  queue.changes('1.1', objectsOf([ruleOf(1), ruleOf(2)], [tunnelOf(6)]), [], 10);
  queue.changes('1.2', objectsOf([ruleOf(1, { action: 'accept' }), filterOf(5)]), [uuidOf(2)], 20);
  queue.changes('1.3', objectsOf([ruleOf(3)]), [uuidOf(4), uuidOf(6)], 30);
  queue.changes('1.4', objectsOf([ruleOf(4)], [tunnelOf(7)]), [uuidOf(3)], 40);
  const work = queue.take();
  assert.equal(work?.cursor, '1.4');
  assert.equal(work?.arrivedAt, 10);
  assert.deepEqual([...(work?.entries.values() ?? [])], [ruleOf(1, { action: 'accept' }), filterOf(5), ruleOf(4)]);
  assert.deepEqual([...(work?.tunnels.values() ?? [])], [tunnelOf(7)]);
  assert.deepEqual([...(work?.remove ?? [])], [uuidOf(2), uuidOf(6), uuidOf(3)]);
  assert.equal(queue.take(), undefined);
  assert.equal(queue.cursor, '1.4');
});

test('a snapshot makes what waited void, and changes after it are part of it', () => {
  const queue = createWorkQueue();
  queue.changes('1.1', objectsOf([ruleOf(1)], [tunnelOf(8)]), [uuidOf(9)], 0);
  queue.snapshot('2.0', objectsOf([ruleOf(2), ruleOf(3)], [tunnelOf(5), tunnelOf(6)]), 0);
  queue.changes('2.1', objectsOf([filterOf(4)], [tunnelOf(7)]), [uuidOf(3), uuidOf(6)], 0);
  const work = queue.take();
  assert.deepEqual([...(work?.snapshot?.entries.keys() ?? [])], [uuidOf(2), uuidOf(4)]);
  assert.deepEqual([...(work?.snapshot?.tunnels.keys() ?? [])], [uuidOf(5), uuidOf(7)]);
  assert.deepEqual([work?.entries.size, work?.tunnels.size, work?.remove.size], [0, 0, 0]);
});

test('a cursor that covers rules alone is none to go on from, until a whole snapshot comes', () => {
  const queue = createWorkQueue(known);
  queue.changes('1.1', rulesAlone([ruleOf(1)]), [], 0);
  queue.changes('1.2', objectsOf([ruleOf(2)]), [], 0);
  assert.equal(queue.cursor, undefined);
  const work = queue.take();
  assert.deepEqual([work?.cursor, work?.complete], ['1.2', false]);
  queue.snapshot('1.3', rulesAlone([ruleOf(1)]), 0);
  assert.equal(queue.cursor, undefined);
  queue.snapshot('1.4', objectsOf([ruleOf(1)]), 0);
  assert.equal(queue.cursor, '1.4');
  assert.equal(queue.take()?.complete, true);
});
