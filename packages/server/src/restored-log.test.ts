import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openStream, post, report } from './agents/testing/agent-client.ts';
import { enrolled, startReplica } from './agents/testing/replica.ts';
import { type ApiFixture, startApi } from './http/testing/api-fixture.ts';
import { type ControlPlane, startControlPlane } from './http/testing/control-plane.ts';
import { propose } from './http/testing/propose.ts';
import { createTestRouter } from './http/testing/tunnel-world.ts';
import { logPlaces } from './store/change-places.ts';
import { startChangeTail } from './store/change-tail.ts';
import type { Database } from './store/database.ts';
import { followLog } from './store/log-history.ts';
import { seedDeletion, seedProvider, seedRule } from './store/testing/seed.ts';
import type { TestPostgres } from './store/testing/test-postgres.ts';
import { waitUntil } from './store/testing/wait-until.ts';
import { sweepOnce } from './sweep/sweeper.ts';

let api: ApiFixture;
let postgres: TestPostgres;
before(async () => {
  api = await startApi();
  postgres = api.postgres;
});
after(() => api?.stop());

const FORMER = '0123456789';

/** As a dump of a cluster that had reached far higher numbers leaves them behind. */
async function leaveNumbersAhead(database: Database, known: boolean): Promise<void> {
  const numbers = logPlaces.map(
    ({ table, column }) => `update ${table} set ${column} = (${column}::text::int8 + 900000000000)::text::xid8`,
  );
  for (const statement of [
    ...numbers,
    `update router set acked_xid = '900000900001', acked_position = 0`,
    `insert into router_ack (router_uuid, xid, position) select uuid, '900000900001', 0 from router`,
    `update event_log set log = '${FORMER}'`,
    'delete from log_history',
    ...(known ? [`insert into log_history (identity) values ('${FORMER}')`] : []),
  ]) {
    await database.pool.query(statement);
  }
}

async function placesAhead(database: Database): Promise<string[]> {
  const found: string[] = [];
  for (const { table, column } of logPlaces) {
    const { rows } = await database.pool.query(
      `select from ${table} where ${column} > pg_snapshot_xmax(pg_current_snapshot())`,
    );
    if (rows.length > 0) found.push(`${table}.${column}`);
  }
  return found;
}

test('every transaction number that the database keeps is one that a restore brings into the present log', async () => {
  const { rows } = await api.database.pool.query<{ place: string }>(
    `select c.relname || '.' || a.attname as place from pg_attribute a join pg_class c on c.oid = a.attrelid
      where a.atttypid = 'xid8'::regtype and c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`,
  );
  assert.deepEqual(
    rows.map(({ place }) => place).sort(),
    logPlaces.map(({ table, column }) => `${table}.${column}`).sort(),
  );
});

for (const known of [true, false]) {
  test(`a dump restored into a young cluster is healed at the start, its history ${known ? 'known' : 'unknown'}`, async () => {
    const database = await postgres.createDatabase();
    const provider = await seedProvider(database.pool);
    const [rule, gone] = [await seedRule(database.pool, provider), await seedRule(database.pool, provider)];
    await seedDeletion(database.pool, gone.uuid);
    const router = await enrolled(database, 'edge1');
    await leaveNumbersAhead(database, known);
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

/** Until `done`, a router that can do everything acknowledges what it is handed. */
async function acknowledgeUntil(plane: ControlPlane, key: string, done: () => Promise<boolean>, what: string) {
  const stream = await openStream(plane.url, key);
  const capabilities = ['filter:20', 'tunnel:GRE'];
  try {
    await waitUntil(async () => {
      await report(plane.url, key, { capabilities, ...(stream.cursor !== undefined && { cursor: stream.cursor }) });
      return done();
    }, what);
  } finally {
    stream.close();
  }
}

test('after a restore objects of every kind settle, are told of and go, and so does the account of a deleted user', async (context) => {
  const { database, operatorKey } = api;
  const provider = await api.provider(['203.0.113.0/24']);
  const alice = await api.user(provider, ['203.0.113.0/28']);
  const bob = await api.user(provider, ['203.0.113.64/28']);
  await api.call('createLocation', {}, { key: operatorKey, body: { name: 'fra1' } });
  const router = await createTestRouter(api, 'edge1', 'fra1', ['192.0.2.1']);

  const made = async (operation: string, key: string, body: object): Promise<string> => {
    const { status, body: object, text } = await api.call(operation, {}, { key, body });
    assert.equal(status, 200, text);
    return object.uuid;
  };
  const protection = async (key: string, host: string) => ({
    firewall_rule: await made('createFirewallRule', key, { dst: host, protocol: 'udp', action: 'drop' }),
    filter: await made('createFilter', key, { dst: host, filter: 20 }),
    tunnel: await made('createTunnel', key, { ips: [host], endpoint: '198.51.100.9', type: 'GRE' }),
  });
  const eventsOf = async (uuid: string): Promise<string[]> =>
    (await database.pool.query('select name from event where object_uuid = $1 order by sequence', [uuid])).rows.map(
      ({ name }) => name.split('.')[1],
    );
  const lastOf = async (uuids: Iterable<string>) =>
    new Set(await Promise.all([...uuids].map(async (uuid) => (await eventsOf(uuid)).at(-1))));
  const are = async (objects: object, state: string) => {
    const states = await lastOf(Object.values(objects));
    return states.size === 1 && states.has(state);
  };

  let plane = await startControlPlane(database);
  context.after(() => plane.stop());
  const { body: renewed } = await api.call('renewRouterToken', { uuid: router }, { key: operatorKey });
  const key = String((await post(plane.url, '/agent/v1/enroll', { token: renewed.enrollment_token })).body.key);

  const settled = await protection(bob.key, '203.0.113.65');
  const doomed = await protection(alice.key, '203.0.113.1');
  await acknowledgeUntil(plane, key, () => are({ ...settled, ...doomed }, 'active'), 'the first are in force');
  const attack = await made('recordAttack', operatorKey, { source: 'scrub', dst: '203.0.113.66', state: 'started' });
  const rdns = await made('createRdns', bob.key, { ips: '203.0.113.66', record: 'mail.example.net' });
  const { uuid: flowrule } = await propose(database.pool, '203.0.113.66');
  const told = await protection(bob.key, '203.0.113.67');
  assert.equal((await api.call('deleteUser', { uuid: alice.uuid }, { key: provider.key })).status, 200);
  await waitUntil(() => are(told, 'pending'), 'those that wait are told of');
  await waitUntil(() => are(doomed, 'marked_for_deletion'), 'and those that go');
  await waitUntil(async () => (await eventsOf(attack)).join() === 'started', 'and the attack');
  await plane.stop();
  const untold = await protection(bob.key, '203.0.113.68');
  await leaveNumbersAhead(database, true);

  plane = await startControlPlane(database);
  await waitUntil(async () => (await placesAhead(database)).length === 0, 'no number lies ahead any more');
  await acknowledgeUntil(plane, key, () => are({ ...told }, 'active'), 'what waited is in force');
  await acknowledgeUntil(plane, key, () => are({ ...untold }, 'active'), 'and what nobody had told of');
  const unrelated = await made('createFirewallRule', provider.key, {
    dst: '203.0.113.200',
    protocol: 'tcp',
    action: 'drop',
  });
  await acknowledgeUntil(
    plane,
    key,
    async () => (await eventsOf(unrelated)).at(-1) === 'active',
    'a new one of another',
  );
  for (const uuid of Object.values(settled)) {
    assert.equal(
      (await eventsOf(uuid)).filter((what) => what === 'active').length,
      1,
      'what was told is not told again',
    );
  }
  for (const [kind, uuid] of Object.entries({ ...told, ...untold })) {
    const read = await fetch(`${plane.url}/v1/${kind === 'firewall_rule' ? 'firewall/rule' : kind}/${uuid}`, {
      headers: { 'x-api-key': bob.key },
    });
    const [object] = (await read.json()) as { state: string }[];
    assert.equal(object?.state, 'active', kind);
  }

  const account = async () => (await database.pool.query('select from account where uuid = $1', [alice.uuid])).rowCount;
  await waitUntil(async () => {
    await sweepOnce(database.pool);
    return (await account()) === 0;
  }, 'the account of the deleted user goes');
  await waitUntil(() => are(doomed, 'deleted'), 'and the end of its objects is told');

  await made('recordAttack', operatorKey, { source: 'scrub', dst: '203.0.113.66', state: 'ended' });
  await waitUntil(async () => (await eventsOf(attack)).join() === 'started,ended', 'the end of the attack is told');
  const gone = { key: bob.key, body: { ips: '203.0.113.66' } };
  assert.equal((await api.call('deleteRdns', {}, gone)).status, 200);
  await database.pool.query('update flowrule set expires_at = now() where uuid = $1', [flowrule]);
  await sweepOnce(database.pool);
  await waitUntil(() => are({ rdns }, 'marked_for_deletion'), 'what becomes of the record');
  await waitUntil(async () => {
    await sweepOnce(database.pool);
    return are({ flowrule }, 'deleted');
  }, 'and of the flowrule');
});

test('a log that is only of unknown history keeps its entries and acknowledgements', async () => {
  const database = await postgres.createDatabase();
  await seedRule(database.pool, await seedProvider(database.pool));
  const [first, ...others] = await Promise.all([followLog(database), followLog(database), followLog(database)]);
  for (const each of others) assert.deepEqual(each, first);
  assert.equal(first?.rebased, false);
  // Of the provider's prefix, and of the rule.
  assert.equal((await database.pool.query('select from change')).rowCount, 2);
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
