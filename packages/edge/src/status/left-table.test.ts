import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openTableRecord, tableRecordFile } from '../state/table-record.ts';
import { ownDirectory } from '../testing/directory.ts';
import { describeLeft, judgeLeft, lookForLeft } from './left-table.ts';

const here = { boot_id: 'b1', netns: 'net:[1]' };
const rebooted = { ...here, boot_id: 'b2' };
const elsewhere = { ...here, netns: 'net:[2]' };
const unknown = { boot_id: null, netns: null };

test('what can be seen counts before what was written down, except about other namespaces', () => {
  assert.equal(judgeLeft(undefined, here, true), 'here');
  assert.equal(judgeLeft(rebooted, here, true), 'here');
  assert.equal(judgeLeft(here, here, false), 'gone');
  assert.equal(judgeLeft(elsewhere, here, false), 'perhaps elsewhere');
});

test('who cannot look believes the record, until a reboot has proved it wrong', () => {
  assert.equal(judgeLeft(undefined, here, undefined), 'gone');
  assert.equal(judgeLeft(here, here, undefined), 'perhaps here');
  assert.equal(judgeLeft(rebooted, here, undefined), 'gone');
  assert.equal(judgeLeft(elsewhere, here, undefined), 'perhaps elsewhere');
  assert.equal(judgeLeft(unknown, here, undefined), 'perhaps here');
  assert.equal(judgeLeft(here, unknown, undefined), 'perhaps here');
});

test('whatever is left is said together with how to remove it', () => {
  assert.equal(describeLeft('gone'), undefined);
  for (const left of ['here', 'perhaps here', 'perhaps elsewhere'] as const) {
    assert.match(describeLeft(left) ?? '', /nft delete table inet levee \(and inet levee_proxied/);
  }
});

test('a record is forgotten once its table is known to be gone, and not before', (t) => {
  const directory = ownDirectory(t);
  const record = openTableRecord(directory, () => here);
  const look = (seen: boolean | undefined, place = here) => lookForLeft(record, () => seen, place);
  record.note();
  assert.equal(look(undefined), 'perhaps here');
  assert.equal(look(true), 'here');
  assert.equal(look(undefined), 'perhaps here');
  assert.equal(look(false), 'gone');
  assert.equal(look(undefined), 'gone');
  record.note();
  assert.equal(look(undefined), 'perhaps here');
  assert.equal(look(undefined, rebooted), 'gone');
  assert.equal(record.read(), undefined);
});

test('a damaged record still says that there was a table', (t) => {
  const directory = ownDirectory(t);
  writeFileSync(join(directory, tableRecordFile), '{"boot_i');
  assert.equal(
    lookForLeft(openTableRecord(directory), () => undefined, here),
    'perhaps here',
  );
});
