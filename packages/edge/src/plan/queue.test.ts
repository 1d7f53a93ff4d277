import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ruleOf, uuidOf } from '../testing/rules.ts';
import { createWorkQueue } from './queue.ts';

test('of several changes of a rule the last one counts', () => {
  const queue = createWorkQueue('1.0');
  queue.changes('1.1', [ruleOf(1), ruleOf(2)], [], 10);
  queue.changes('1.2', [ruleOf(1, { action: 'accept' })], [uuidOf(2)], 20);
  queue.changes('1.3', [ruleOf(3)], [uuidOf(4)], 30);
  queue.changes('1.4', [ruleOf(4)], [uuidOf(3)], 40);
  const work = queue.take();
  assert.equal(work?.cursor, '1.4');
  assert.equal(work?.arrivedAt, 10);
  assert.deepEqual([...(work?.upsert.values() ?? [])], [ruleOf(1, { action: 'accept' }), ruleOf(4)]);
  assert.deepEqual([...(work?.remove ?? [])], [uuidOf(2), uuidOf(3)]);
  assert.equal(queue.take(), undefined);
  assert.equal(queue.cursor, '1.4');
});

test('a snapshot makes what waited void, and changes after it are part of it', () => {
  const queue = createWorkQueue();
  queue.changes('1.1', [ruleOf(1)], [], 0);
  queue.snapshot('2.0', [ruleOf(2), ruleOf(3)], 0);
  queue.changes('2.1', [ruleOf(4)], [uuidOf(3)], 0);
  const work = queue.take();
  assert.deepEqual([...(work?.snapshot?.keys() ?? [])], [uuidOf(2), uuidOf(4)]);
  assert.equal(work?.upsert.size, 0);
  assert.equal(work?.remove.size, 0);
});
