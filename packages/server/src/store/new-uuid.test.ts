import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newUuid } from './new-uuid.ts';

test('a uuid is of version 7 and tells its millisecond', () => {
  const uuid = newUuid(0x0123456789ab, new Uint8Array(10).fill(0xff));
  assert.equal(uuid, '01234567-89ab-7fff-bfff-ffffffffffff');
  assert.equal(newUuid(0, new Uint8Array(10)), '00000000-0000-7000-8000-000000000000');
});

test('uuids are different, and later ones sort after earlier ones', () => {
  const made = Array.from({ length: 1_000 }, (_, i) => newUuid(1_700_000_000_000 + i));
  assert.equal(new Set(made).size, 1_000);
  assert.deepEqual(made, made.toSorted());
});
