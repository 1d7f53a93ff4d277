import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Cursor } from '../store/cursor.ts';
import { Unsettled, type UnsettledObject } from './unsettled.ts';

const at = (position: number): Cursor => ({ xid: 1, position });
const object = (uuid: string, position: number, more: Partial<UnsettledObject> = {}): UnsettledObject => ({
  kind: 'firewall_rule',
  uuid,
  change: at(position),
  deleted: false,
  told: 'pending',
  ...more,
});
const names = (objects: readonly UnsettledObject[]) => objects.map(({ uuid }) => uuid);

test('an acknowledgement reaches what lies before it, in the order of the log, and each once', () => {
  const unsettled = new Unsettled();
  for (const [uuid, position] of [
    ['a', 1],
    ['b', 2],
    ['c', 3],
  ] as const) {
    unsettled.put(object(uuid, position), at(position), undefined);
  }
  assert.deepEqual(names(unsettled.acknowledged(at(2))), ['a', 'b']);
  assert.deepEqual(names(unsettled.acknowledged(at(2))), []);
  assert.deepEqual(names(unsettled.held), ['a', 'b']);
  assert.deepEqual(names(unsettled.acknowledged(at(9))), ['c']);
});

test('an object that changes again waits for its last change', () => {
  const unsettled = new Unsettled();
  unsettled.put(object('a', 1), at(1), undefined);
  unsettled.put(object('b', 2), at(2), undefined);
  unsettled.put(object('a', 3), at(3), undefined);
  assert.deepEqual(names(unsettled.acknowledged(at(2))), ['b']);
  assert.deepEqual(names(unsettled.acknowledged(at(3))), ['a']);
  assert.equal(unsettled.size, 2);
});

test('one whose place is never reached holds up none of those that came after it', () => {
  const unsettled = new Unsettled();
  unsettled.put(object('stuck', 900), at(900), undefined);
  unsettled.put(object('a', 1), at(1), undefined);
  unsettled.put(object('b', 2), at(2), undefined);
  assert.deepEqual(names(unsettled.acknowledged(at(2))), ['a', 'b']);
  unsettled.fellBack();
  assert.deepEqual(names(unsettled.acknowledged(at(1))), ['a']);
});

test('a row that changed behind the entry it came by does not hold up those after it', () => {
  const unsettled = new Unsettled();
  unsettled.put(object('a', 9), at(1), undefined);
  unsettled.put(object('b', 2), at(2), undefined);
  assert.deepEqual(names(unsettled.acknowledged(at(2))), ['a', 'b']);
});

test('what all routers had acknowledged already is held at once, and waits again when one falls back', () => {
  const unsettled = new Unsettled();
  unsettled.put(object('b', 2), at(2), at(5));
  unsettled.put(object('a', 1), at(1), at(5));
  unsettled.put(object('c', 6), at(6), at(5));
  assert.deepEqual(new Set(names(unsettled.held)), new Set(['a', 'b']));
  unsettled.fellBack();
  assert.deepEqual(names(unsettled.held), []);
  assert.deepEqual(names(unsettled.acknowledged(at(1))), ['a']);
  assert.deepEqual(names(unsettled.acknowledged(at(6))), ['b', 'c']);
});

test('what concerns some routers alone is looked at until all have it', () => {
  const unsettled = new Unsettled();
  const scope = { routers: new Set(['r1']) };
  unsettled.put(object('t', 4, { kind: 'tunnel', scope }), at(4), at(1));
  assert.deepEqual(names(unsettled.scoped), ['t']);
  assert.deepEqual(names(unsettled.acknowledged(at(4))), ['t']);
  assert.deepEqual([names(unsettled.scoped), names(unsettled.held)], [[], ['t']]);
  unsettled.fellBack();
  assert.deepEqual(names(unsettled.scoped), ['t']);
});

test('marked objects are found wherever they wait, until they are dropped', () => {
  const unsettled = new Unsettled();
  unsettled.put(object('a', 1, { deleted: true }), at(1), undefined);
  unsettled.put(object('b', 2, { deleted: true }), at(2), at(5));
  unsettled.put(object('c', 3), at(3), undefined);
  unsettled.leave(object('d', 4, { deleted: true }));
  assert.deepEqual(new Set(names(unsettled.marked())), new Set(['a', 'b', 'd']));
  unsettled.put(object('d', 7), at(7), undefined);
  assert.equal(unsettled.leaving.size, 0);
  for (const uuid of ['a', 'b', 'c', 'd']) unsettled.drop(uuid);
  assert.equal(unsettled.size, 0);
});
