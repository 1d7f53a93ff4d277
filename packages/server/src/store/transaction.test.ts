import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { connectionSettings, type Database } from './database.ts';
import { isUnavailable, OutcomeUnknown } from './failure.ts';
import { startTestPostgres, type TestPostgres } from './testing/test-postgres.ts';
import { waitUntil } from './testing/wait-until.ts';
import { inTransaction, inTransactionOn } from './transaction.ts';

let postgres: TestPostgres;
let database: Database;
before(async () => {
  postgres = await startTestPostgres();
  database = await postgres.createDatabase();
  await database.pool.query('create table kept (name text)');
});
after(() => postgres?.stop());

const add = 'insert into kept (name) values ($1)';

async function isKept(name: string): Promise<boolean> {
  return (await database.pool.query('select from kept where name = $1', [name])).rows.length > 0;
}

test('what work did is kept when it returns, and nothing of it shows before', async () => {
  const result = await inTransaction(database.pool, async (client) => {
    await client.query(add, ['returned']);
    assert.equal(await isKept('returned'), false);
    return 7;
  });
  assert.equal(result, 7);
  assert.equal(await isKept('returned'), true);
});

test('nothing is kept of work that throws, or whose result is not to be kept; the connection serves again', async () => {
  const before_ = database.pool.totalCount;
  await assert.rejects(
    inTransaction(database.pool, async (client) => {
      await client.query(add, ['threw']);
      throw new Error('on purpose');
    }),
    /on purpose/,
  );
  await assert.rejects(
    inTransaction(database.pool, async (client) => {
      await client.query(add, ['failed']);
      await client.query('select 1 / 0');
    }),
    { code: '22012' },
  );
  const refused = await inTransaction(
    database.pool,
    async (client) => {
      await client.query(add, ['refused']);
      return { ok: false };
    },
    ({ ok }) => ok,
  );
  assert.deepEqual(refused, { ok: false });
  for (const name of ['threw', 'failed', 'refused']) assert.equal(await isKept(name), false, name);
  assert.equal(database.pool.totalCount, before_, 'no connection was lost');
  assert.equal(database.pool.idleCount, database.pool.totalCount, 'none is held');
});

test('a connection that could not be rolled back does not go back to the pool', async () => {
  const pool = new pg.Pool({ ...connectionSettings(database.address), max: 1, query_timeout: 500 });
  const backendOf = async (client: pg.Pool | pg.PoolClient): Promise<number | undefined> =>
    (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid;
  let silent: number | undefined;
  try {
    await assert.rejects(
      inTransaction(pool, async (client) => {
        silent = await backendOf(client);
        assert.ok(silent !== undefined);
        process.kill(silent, 'SIGSTOP');
        await client.query(add, ['silent']);
      }),
      /Query read timeout/,
    );
    assert.notEqual(await backendOf(pool), silent);
  } finally {
    if (silent !== undefined) process.kill(silent, 'SIGCONT');
    await pool.end();
  }
});

test('of a commit that is not answered it is said that it may have been carried out, and of what came before it that it was not', async () => {
  const pool = new pg.Pool({ ...connectionSettings(database.address), max: 1, query_timeout: 500 });
  const silent: number[] = [];
  const silence = async (client: pg.PoolClient) => {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const pid = rows[0]?.pid ?? assert.fail();
    process.kill(pid, 'SIGSTOP');
    silent.push(pid);
  };
  const begin = performance.now();
  try {
    await assert.rejects(
      inTransaction(pool, async (client) => {
        await client.query(add, ['before']);
        await silence(client);
        await client.query(add, ['unanswered']);
      }),
      (error) => isUnavailable(error) && !(error instanceof OutcomeUnknown),
    );
    await assert.rejects(
      inTransaction(pool, async (client) => {
        await client.query(add, ['committed']);
        await silence(client);
      }),
      (error) => isUnavailable(error) && error instanceof OutcomeUnknown,
    );
    // No rollback was waited for behind either.
    assert.ok(performance.now() - begin < 2_000);
  } finally {
    for (const pid of silent) process.kill(pid, 'SIGCONT');
    await pool.end();
  }
  await waitUntil(() => isKept('committed'), 'the commit that was sent');
  assert.deepEqual([await isKept('before'), await isKept('unanswered')], [false, false]);
});

test('on a connection of its own, work that throws leaves no open transaction behind', async () => {
  const client = await database.connect('levee test');
  try {
    await assert.rejects(
      inTransactionOn(client, async () => {
        await client.query(add, ['own, threw']);
        throw new Error('on purpose');
      }),
      /on purpose/,
    );
    await inTransactionOn(client, () => client.query(add, ['own, returned']));
    assert.deepEqual([await isKept('own, threw'), await isKept('own, returned')], [false, true]);
  } finally {
    await client.end();
  }
});
