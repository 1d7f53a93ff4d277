import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { loadMigrations, type Migration, migrate } from './migrate.ts';
import { startTestPostgres, type TestPostgres } from './testing/test-postgres.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
after(() => postgres.stop());

test('three replicas that start at once apply every migration exactly once', async () => {
  const database = await postgres.createEmptyDatabase();
  const results = await Promise.all([migrate(database), migrate(database), migrate(database)]);
  const applied = results.flatMap((result) => (result.ok ? result.applied : [result.message]));
  const names = loadMigrations().map((migration) => migration.name);
  // Which replica did which is chance, and so is the order of what they tell.
  assert.deepEqual(applied.toSorted(), names);
  const { rows } = await database.pool.query('select name from migration order by applied_at');
  assert.deepEqual(
    rows.map(({ name }) => name),
    names,
  );
});

test('a migrated database is left alone', async () => {
  const database = await postgres.createDatabase();
  assert.deepEqual(await migrate(database), { ok: true, applied: [] });
});

const small: readonly Migration[] = [
  { number: 1, name: '0001_a.sql', sql: 'create table a (x integer)', checksum: 'a' },
  { number: 2, name: '0002_b.sql', sql: 'create table b (x integer)', checksum: 'b' },
];

test('a database newer than the code is refused and not touched', async () => {
  const database = await postgres.createEmptyDatabase();
  assert.equal((await migrate(database, small)).ok, true);
  const result = await migrate(database, small.slice(0, 1));
  assert.equal(result.ok, false);
  assert.equal(result.ok ? '' : result.code, 'database_too_new');
  assert.match(result.ok ? '' : result.message, /0002_b\.sql/);
});

test('an applied migration that was edited is refused', async () => {
  const database = await postgres.createEmptyDatabase();
  assert.equal((await migrate(database, small)).ok, true);
  const edited = small.map((migration) => (migration.number === 1 ? { ...migration, checksum: 'other' } : migration));
  const result = await migrate(database, edited);
  assert.equal(result.ok ? '' : result.code, 'migration_changed');
});

test('a migration that fails leaves nothing behind and the next start tries it again', async () => {
  const database = await postgres.createEmptyDatabase();
  const broken = [small[0], { ...small[1], sql: 'create table b (x integer); select 1/0' }] as readonly Migration[];
  await assert.rejects(migrate(database, broken), /division by zero/);
  const { rows } = await database.pool.query("select to_regclass('a') as a, to_regclass('b') as b");
  assert.deepEqual(rows, [{ a: 'a', b: null }]);
  assert.deepEqual(await migrate(database, small), { ok: true, applied: ['0002_b.sql'] });
});
