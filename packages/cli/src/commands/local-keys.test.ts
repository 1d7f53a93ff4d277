/** Guarantees of the local router's key, with a real database. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { listDetectors } from '@levee/server/store/detectors.ts';
import { createLocation, createRouter, listRouters } from '@levee/server/store/routers.ts';
import { startTestPostgres, type TestPostgres } from '@levee/server/store/testing/test-postgres.ts';
import { leaveDetectorKey, leaveRouterKey } from './local-keys.ts';

let postgres: TestPostgres;
const folder = mkdtempSync(join(tmpdir(), `levee-local-${process.pid}-`));
before(async () => {
  postgres = await startTestPostgres();
});
after(async () => {
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('a key is left once and kept as long as it fits; one of another database is replaced', async () => {
  const state = join(folder, 'edge');
  const file = join(state, 'router.key');
  const first = await postgres.createDatabase();
  assert.equal(await leaveRouterKey(first, state, folder), true);
  const key = readFileSync(file, 'utf8');
  assert.match(key, /^lv_r_/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(await leaveRouterKey(first, state, folder), false, 'the control plane started again');
  assert.equal(readFileSync(file, 'utf8'), key);

  const other = await postgres.createDatabase();
  assert.equal(await leaveRouterKey(other, state, folder), true, 'the database is another one');
  assert.notEqual(readFileSync(file, 'utf8'), key);
  writeFileSync(file, 'torn');
  assert.equal(await leaveRouterKey(other, state, folder), true, 'the file is damaged');
  assert.match(readFileSync(file, 'utf8'), /^lv_r_/);
  assert.deepEqual(
    (await listRouters(other.pool)).map(({ name }) => name),
    ['local'],
  );
});

test('two machines on one database have a router each, and neither takes the key of the other', async () => {
  const database = await postgres.createDatabase();
  const machines = ['a', 'b', 'c'].map((name) => join(folder, name));
  for (const machine of machines) mkdirSync(machine);
  const [a, b, c] = machines as [string, string, string];
  const leave = (machine: string, host: string) => leaveRouterKey(database, machine, machine, host);
  assert.equal(await leave(a, 'edge1.example'), true);
  const keyOfA = readFileSync(join(a, 'router.key'), 'utf8');
  assert.equal(await leave(b, 'edge2.example'), true);
  assert.equal(await leave(c, 'edge2.example'), true, 'a second installation on the same machine');
  assert.equal(await leave(a, 'edge1.example'), false, 'its key still is good');
  assert.equal(readFileSync(join(a, 'router.key'), 'utf8'), keyOfA);
  rmSync(join(b, 'router.key'));
  assert.equal(await leave(b, 'edge2.example'), true, 'a lost key is replaced');
  const names = (await listRouters(database.pool)).map(({ name }) => name);
  assert.deepEqual(names.slice(0, 2), ['local', 'local-edge2-example']);
  assert.match(names[2] ?? '', /^local-edge2-example-[0-9a-f]{6}$/);
  assert.equal(names.length, 3);
});

test("an operator's own router of that name stays theirs, and a key from before the uuid was kept still is good", async () => {
  const database = await postgres.createDatabase();
  const machine = join(folder, 'd');
  mkdirSync(machine);
  await createLocation(database.pool, 'local');
  assert.ok((await createRouter(database.pool, { name: 'local', location: 'local', tunnelAddresses: [] })).ok);
  assert.equal(await leaveRouterKey(database, machine, machine, 'host'), true);
  const [theirs, ours] = await listRouters(database.pool);
  assert.deepEqual([theirs?.name, theirs?.enrolled, ours?.name], ['local', false, 'local-host']);
  rmSync(join(machine, 'local-router.uuid'));
  assert.equal(await leaveRouterKey(database, machine, machine, 'host'), false);
  assert.equal(readFileSync(join(machine, 'local-router.uuid'), 'utf8').trim(), ours?.uuid);
});

test('the detector of this machine has its key in the same way, and one that was removed is made again', async () => {
  const database = await postgres.createDatabase();
  const data = join(folder, 'detecting');
  const state = join(data, 'detector');
  const file = join(state, 'detector.key');
  mkdirSync(data);
  const leave = () => leaveDetectorKey(database, state, data, 'edge1.example');
  assert.equal(await leave(), true);
  const key = readFileSync(file, 'utf8');
  assert.match(key, /^lv_d_/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(await leave(), false, 'the control plane started again');
  assert.equal(readFileSync(file, 'utf8'), key);
  const [made] = await listDetectors(database.pool);
  await database.pool.query('delete from detector');
  assert.equal(await leave(), true, 'an operator removed it');
  assert.notEqual(readFileSync(file, 'utf8'), key);
  const now = (await listDetectors(database.pool)).map(({ uuid, name }) => [uuid, name]);
  assert.deepEqual(now, [[made?.uuid, 'local']]);
});
