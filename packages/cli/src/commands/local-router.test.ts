/** Guarantees of the local router's key, with a real database. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startTestPostgres, type TestPostgres } from '@levee/server/store/testing/test-postgres.ts';
import { leaveRouterKey } from './local-router.ts';

let postgres: TestPostgres;
const folder = mkdtempSync(join(tmpdir(), `levee-local-${process.pid}-`));
before(async () => {
  postgres = await startTestPostgres();
});
after(async () => {
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('a key is left once and kept as long as it fits; one of another installation is replaced', async () => {
  const state = join(folder, 'edge');
  const file = join(state, 'router.key');
  const first = await postgres.createDatabase();
  assert.equal(await leaveRouterKey(first, state), true);
  const key = readFileSync(file, 'utf8');
  assert.match(key, /^lv_r_/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(await leaveRouterKey(first, state), false, 'the control plane started again');
  assert.equal(readFileSync(file, 'utf8'), key);

  const other = await postgres.createDatabase();
  assert.equal(await leaveRouterKey(other, state), true, 'the database is another one');
  assert.notEqual(readFileSync(file, 'utf8'), key);
  writeFileSync(file, 'torn');
  assert.equal(await leaveRouterKey(other, state), true, 'the file is damaged');
  assert.match(readFileSync(file, 'utf8'), /^lv_r_/);
});
