import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openDatabase } from './database.ts';
import { isRetryable, isUnanswered, isUnavailable, violatedConstraint } from './failure.ts';
import { startTestPostgres, type TestPostgres } from './testing/test-postgres.ts';
import { waitUntil } from './testing/wait-until.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
after(() => postgres?.stop());

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => assert.fail('it did not fail'),
    (error: unknown) => error,
  );

test('a server that is not there counts as unavailable, and was sent nothing, over TCP, by name and by socket', async () => {
  const addresses = [
    { url: 'postgres://nobody@127.0.0.1:1/none' },
    { url: 'postgres://nobody@levee.invalid/none' },
    { socketDirectory: '/nonexistent', user: 'levee', database: 'levee' },
  ];
  for (const address of addresses) {
    const database = openDatabase(address);
    const error = await errorOf(database.pool.query('select 1'));
    assert.deepEqual([isUnavailable(error), isUnanswered(error)], [true, false], JSON.stringify(address));
    assert.equal(isUnavailable(await errorOf(database.connect('test'))), true);
    await database.close();
  }
});

test('a connection that is cut in the middle of a statement, and a statement that takes too long, count as unavailable; the first gave no answer', async () => {
  const database = await postgres.createDatabase({ statementTimeoutSeconds: 0.2 });
  const cancelled = await errorOf(database.pool.query('select pg_sleep(5)'));
  assert.deepEqual([isUnavailable(cancelled), isUnanswered(cancelled)], [true, false]);
  const patient = postgres.openAgain(database);
  const client = await patient.pool.connect();
  const { rows } = await client.query('select pg_backend_pid() as pid');
  const cut = errorOf(client.query('select pg_sleep(20)'));
  await waitUntil(async () => {
    const { rows: active } = await patient.pool.query(
      `select 1 from pg_stat_activity where pid = $1 and state = 'active' and query like '%pg_sleep(20)%'`,
      [rows[0].pid],
    );
    return active.length === 1;
  }, 'the statement running');
  await patient.pool.query('select pg_terminate_backend($1)', [rows[0].pid]);
  const error = await cut;
  assert.deepEqual([isUnavailable(error), isUnanswered(error)], [true, true], String(error));
  client.release(error as Error);
});

test('a connection that is cut between two statements fails the next one, and nothing else', async () => {
  const database = await postgres.createDatabase();
  const client = await database.pool.connect();
  await client.query('begin');
  const { rows } = await client.query('select pg_backend_pid() as pid');
  const ended = new Promise((resolve) => client.once('end', resolve));
  await database.pool.query('select pg_terminate_backend($1)', [rows[0].pid]);
  await ended;
  const error = await errorOf(client.query('commit'));
  assert.equal(isUnavailable(error), true, String(error));
  client.release(error as Error);
  assert.equal((await database.pool.query('select 1')).rowCount, 1);
});

test('too many connections, a read-only server and a closed pool count as unavailable', async () => {
  const database = await postgres.createDatabase();
  await database.pool.query(`alter database ${(database.address as { database: string }).database} connection limit 0`);
  await database.pool.query('create role plain login');
  const { address } = database;
  assert.ok('socketDirectory' in address);
  const plain = openDatabase({ ...address, user: 'plain' });
  assert.equal(isUnavailable(await errorOf(plain.pool.query('select 1'))), true);
  await plain.close();
  const client = await database.pool.connect();
  await client.query('begin read only');
  assert.equal(isUnavailable(await errorOf(client.query(`select nextval('change_position')`))), true);
  client.release(true);
  await database.close();
  assert.equal(isUnavailable(await errorOf(database.pool.query('select 1'))), true);
});

test('mistakes of ours and of callers do not count as unavailable', async () => {
  const database = await postgres.createDatabase();
  for (const text of ['select nonsense', 'syntax', 'select 1/0', `insert into location values (null, 'x')`]) {
    assert.equal(isUnavailable(await errorOf(database.pool.query(text))), false, text);
  }
  const missingFile = Object.assign(new Error('no such file'), { code: 'ENOENT', syscall: 'open' });
  for (const error of [missingFile, new Error('x'), new TypeError('x'), 'x', undefined]) {
    assert.equal(isUnavailable(error), false);
  }
});

test('a violated constraint is told by its name', async () => {
  const { pool } = await postgres.createDatabase();
  const insert = `insert into location (uuid, name) values (gen_random_uuid(), 'fra1')`;
  await pool.query(insert);
  assert.equal(violatedConstraint(await errorOf(pool.query(insert))), 'location_name');
  assert.equal(violatedConstraint(await errorOf(pool.query('select 1/0'))), undefined);
  assert.equal(violatedConstraint(undefined), undefined);
});

test('whoever loses a deadlock may try again', async () => {
  const { pool } = await postgres.createDatabase();
  await pool.query('create table t (id integer primary key)');
  await pool.query('insert into t values (1), (2)');
  const [a, b] = [await pool.connect(), await pool.connect()];
  await a.query('begin');
  await b.query('begin');
  await a.query('select * from t where id = 1 for update');
  await b.query('select * from t where id = 2 for update');
  const results = await Promise.allSettled([
    a.query('select * from t where id = 2 for update'),
    b.query('select * from t where id = 1 for update'),
  ]);
  const lost = results.find((result) => result.status === 'rejected');
  assert.equal(isRetryable(lost?.reason), true);
  assert.equal(isRetryable(new Error('x')), false);
  a.release(true);
  b.release(true);
});
