import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openStream, report } from './agents/testing/agent-client.ts';
import { enrolled, startReplica } from './agents/testing/replica.ts';
import { startChangeTail } from './store/change-tail.ts';
import type { Database } from './store/database.ts';
import { followLog } from './store/log-history.ts';
import { seedDeletion, seedProvider, seedRule } from './store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from './store/testing/test-postgres.ts';
import { waitUntil } from './store/testing/wait-until.ts';
import { sweepOnce } from './sweep/sweeper.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
after(() => postgres?.stop());

/** As a dump of a cluster that had reached far higher numbers leaves them behind. */
async function leaveNumbersAhead(database: Database): Promise<void> {
  for (const statement of [
    `update firewall_rule set change_xid = '900000000000'`,
    `update change set xid = '900000000000'`,
    `update router set acked_xid = '900000000001', acked_position = 0`,
    `insert into router_ack (router_uuid, xid, position) select uuid, '900000000001', 0 from router`,
    `update change_floor set xid = '800000000000', position = 7`,
    'delete from log_history',
  ]) {
    await database.pool.query(statement);
  }
}

for (const known of [true, false]) {
  test(`a dump restored into a young cluster is healed at the start, its history ${known ? 'known' : 'unknown'}`, async () => {
    const database = await postgres.createDatabase();
    const provider = await seedProvider(database.pool);
    const [rule, gone] = [await seedRule(database.pool, provider), await seedRule(database.pool, provider)];
    await seedDeletion(database.pool, gone.uuid);
    const router = await enrolled(database, 'edge1');
    await leaveNumbersAhead(database);
    if (known) await database.pool.query(`insert into log_history (identity) values ('0123456789')`);
    const replica = await startReplica(database);
    const read = async () => {
      const { rows } = await database.pool.query(
        'select uuid::text as uuid, change_xid::text as xid, change_position as position from firewall_rule where uuid = $1',
        [rule.uuid],
      );
      return replica.agents.view.stateOf({ uuid: rule.uuid, change: rows[0], deleted: false }).state;
    };
    try {
      assert.equal(await read(), 'pending');
      const stream = await openStream(replica.base, router.key);
      try {
        await waitUntil(() => stream.cursor !== undefined, 'the snapshot');
        assert.deepEqual([...stream.rules.keys()], [rule.uuid]);
        const later = await seedRule(database.pool, provider);
        replica.tail.wake();
        await waitUntil(() => stream.rules.has(later.uuid), 'the later rule');
        await waitUntil(async () => {
          await report(replica.base, router.key, { ...(stream.cursor !== undefined && { cursor: stream.cursor }) });
          return replica.agents.view.stateOf({ ...later, deleted: false }).state === 'active';
        }, 'the later rule to be active');
        assert.equal(await read(), 'active');
        await sweepOnce(database.pool);
        const { rows } = await database.pool.query('select uuid::text from firewall_rule where uuid = $1', [gone.uuid]);
        assert.deepEqual(rows, [], 'the deleted rule is swept');
      } finally {
        stream.close();
      }
    } finally {
      await replica.stop();
    }
  });
}

test('a log that is only of unknown history keeps its entries and acknowledgements', async () => {
  const database = await postgres.createDatabase();
  await seedRule(database.pool, await seedProvider(database.pool));
  const [first, ...others] = await Promise.all([followLog(database), followLog(database), followLog(database)]);
  for (const each of others) assert.deepEqual(each, first);
  assert.equal(first?.rebased, false);
  assert.equal((await database.pool.query('select from change')).rowCount, 1);
});

test('a tail that comes back to another server says so, and hands out no cursor of the old one any more', async () => {
  const [before_, after_] = [await postgres.createDatabase(), await postgres.createDatabase()];
  let present = before_;
  const moving = {
    get pool() {
      return present.pool;
    },
    connect: (name: string, milliseconds?: number) => present.connect(name, milliseconds),
  };
  const tail = await startChangeTail(moving);
  try {
    let gaps = 0;
    tail.subscribe({ changes: () => {}, gap: () => gaps++ });
    const identity = tail.identity;
    present = after_;
    await before_.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'levee change tail' and datname = current_database()`,
    );
    await waitUntil(() => gaps > 0, 'the gap');
    assert.notEqual(tail.identity, identity);
    assert.equal(tail.identity, (await followLog(after_)).identity);
  } finally {
    await tail.stop();
  }
});
