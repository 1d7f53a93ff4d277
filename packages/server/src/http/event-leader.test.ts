import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { post, report } from '../agents/testing/agent-client.ts';
import { openSse } from '../events/testing/sse-client.ts';
import type { Database } from '../store/database.ts';
import { type SeededProvider, seedDeletion, seedPriority, seedProvider, seedRule } from '../store/testing/seed.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { sweepOnce } from '../sweep/sweeper.ts';
import { type ApiFixture, startApi } from './testing/api-fixture.ts';
import { type ControlPlane, startControlPlane } from './testing/control-plane.ts';

let api: ApiFixture;
let database: Database;
let provider: SeededProvider;
let router: string;

before(async () => {
  api = await startApi();
  database = api.database;
  provider = await seedProvider(database.pool);
  await api.call('createLocation', {}, { key: api.operatorKey, body: { name: 'fra1' } });
  const body = { name: 'r1', location: 'fra1' };
  const created = await api.call('createRouter', {}, { key: api.operatorKey, body });
  router = created.body.enrollment_token;
});
after(() => api.stop());

const query = async <R extends object>(text: string, values: unknown[] = []) =>
  (await database.pool.query(text, values)).rows as R[];
const eventsOf = async (uuid: string) =>
  (await query<{ name: string }>('select name from event where object_uuid = $1 order by sequence', [uuid])).map(
    ({ name }) => name.split('.')[1],
  );
const count = async () => (await query<{ n: number }>('select count(*) as n from event'))[0]?.n ?? 0;
const followed = async () =>
  (
    await query(
      `select from event_log l where not exists (select from change c where (c.xid, c.position) > (l.xid, l.position))`,
    )
  ).length === 1;

async function acknowledge(plane: ControlPlane, key: string): Promise<void> {
  const [last] = await query<{ xid: string; position: number }>(
    `select xid::text as xid, position from change where xid < pg_snapshot_xmin(pg_current_snapshot())
      order by change.xid desc, position desc limit 1`,
  );
  const cursor = plane.agents.cursors.write({ xid: Number(last?.xid), position: last?.position ?? 0 });
  assert.equal((await report(plane.url, key, { cursor })).status, 200);
}

/** Rules as a bulk request makes them: many entries in one transaction. */
async function seedMany(rules: number): Promise<void> {
  await query(
    `with drawn as (select gen_random_uuid() as uuid, nextval('change_position') as position from generate_series(1, $3)),
      rules as (
        insert into firewall_rule (uuid, sequence, owner_uuid, provider_uuid, subnet, dst, fields, created_at, updated_at,
          change_position)
        select uuid, position, $1, $1, $2, '198.18.0.9',
          '{"dst":"198.18.0.9","protocol":"udp","action":"drop","priority":1000,"disabled":false}', now(), now(), position
        from drawn
      )
      insert into change (position, kind, object_uuid) select position, 'firewall_rule', uuid from drawn`,
    [provider.uuid, provider.prefix, rules],
  );
}

test('one of the replicas writes what becomes of objects; when it dies another goes on, and nothing is told twice', async (context) => {
  const existing = await seedRule(database.pool, provider);
  await seedMany(2_000);
  const planes: ControlPlane[] = [];
  context.after(() => Promise.all(planes.map((plane) => plane.stop())));
  const start = async (of: Database) => {
    const plane = await startControlPlane(of);
    planes.push(plane);
    return plane;
  };
  const one = await start(database);
  const two = await start(api.postgres.openAgain(database));
  const { body } = await post(one.url, '/agent/v1/enroll', { token: router });
  const key = String(body.key);
  const leader = () => planes.filter(({ events }) => events.leads);
  await waitUntil(() => leader().length === 1, 'one leads');

  await context.test('what was there before the first of them is no news', async () => {
    await acknowledge(one, key);
    const { uuid } = await seedRule(database.pool, provider);
    await waitUntil(async () => (await eventsOf(uuid)).length > 0, 'a new one is');
    await acknowledge(one, key);
    await waitUntil(async () => (await eventsOf(uuid)).length === 2, 'and its state');
    assert.equal(await count(), 2);
    await seedPriority(database.pool, existing.uuid, 7);
    await waitUntil(async () => (await eventsOf(existing.uuid)).join() === 'pending', 'a change of an old one is');
  });

  await context.test('it is taken over within 2 s, with every change told once, whoever streams it', async () => {
    const streams = await Promise.all(planes.map((plane) => openSse(plane.url, api.operatorKey)));
    const uuids: string[] = [];
    let slowest = 0;
    for (let round = 0; round < 4; round++) {
      for (let each = 0; each < 20; each++) uuids.push((await seedRule(database.pool, provider)).uuid);
      const [killed] = await query<{ gone: boolean }>(
        `select pg_terminate_backend(l.pid) as gone from pg_locks l join pg_stat_activity a on a.pid = l.pid
          where l.locktype = 'advisory' and a.application_name = 'levee events' and a.datname = current_database()`,
      );
      assert.equal(killed?.gone, true);
      const begin = Date.now();
      const last = uuids.at(-1) ?? '';
      await waitUntil(async () => (await eventsOf(last)).length > 0, 'another one goes on');
      slowest = Math.max(slowest, Date.now() - begin);
      await acknowledge(round % 2 === 0 ? one : two, key);
    }
    assert.ok(slowest < 2_000, `${slowest} ms`);
    for (const uuid of uuids) await waitUntil(async () => (await eventsOf(uuid)).length === 2, 'all are in force');
    for (const uuid of uuids) assert.deepEqual(await eventsOf(uuid), ['pending', 'active']);
    for (const stream of streams) {
      const seen = () => stream.messages.filter(({ data }) => uuids.includes(data.data.uuid)).length;
      await waitUntil(() => seen() === 2 * uuids.length, 'every stream has them');
      stream.close();
    }
  });

  await context.test('what became of objects while nobody led is told by the next leader', async () => {
    const marked = await seedRule(database.pool, provider);
    const gone = await seedRule(database.pool, provider);
    await acknowledge(one, key);
    await waitUntil(async () => (await eventsOf(gone.uuid)).at(-1) === 'active', 'they are in force');
    await seedDeletion(database.pool, marked.uuid);
    await waitUntil(async () => (await eventsOf(marked.uuid)).at(-1) === 'marked_for_deletion', 'it is told');
    await Promise.all(planes.splice(0).map((plane) => plane.stop()));
    await seedDeletion(database.pool, gone.uuid);
    const waiting = await seedRule(database.pool, provider);
    await database.pool.query(
      `update router set acked_xid = pg_snapshot_xmax(pg_current_snapshot()), acked_position = 0, enforcement = 'kernel',
        last_seen_at = now()`,
    );
    await sweepOnce(database.pool);
    await start(database);
    await waitUntil(async () => (await eventsOf(marked.uuid)).at(-1) === 'deleted', 'the marked one is gone');
    assert.deepEqual((await eventsOf(marked.uuid)).slice(-3), ['active', 'marked_for_deletion', 'deleted']);
    await waitUntil(async () => (await eventsOf(gone.uuid)).at(-1) === 'deleted', 'the other one too');
    await waitUntil(async () => (await eventsOf(waiting.uuid)).join() === 'active', 'the new one is in force');
  });

  await context.test('a burst of creations is told in batches, and in force soon after', async () => {
    const [plane] = planes;
    assert.ok(plane);
    const begin = await count();
    await seedMany(3_000);
    await waitUntil(async () => (await count()) >= begin + 3_000, 'all are told');
    await waitUntil(followed, 'the log is followed to its end');
    await acknowledge(plane, key);
    await waitUntil(async () => (await count()) >= begin + 6_000, 'all are in force');
    const doubles = await query(
      'select from event group by object_uuid, name having count(*) > 1 and name not like $1',
      ['%.pending'],
    );
    assert.equal(doubles.length, 0);
    const [open] = await query<{ n: number }>('select count(*) as n from event_object where open');
    assert.equal(open?.n, 0);
  });

  await context.test('when entries of the log were missed, every client is told to look for itself', async () => {
    const [plane] = planes;
    assert.ok(plane);
    const stream = await openSse(plane.url, api.operatorKey);
    await waitUntil(() => stream.lastId !== undefined, 'the stream stands');
    await database.pool.query(`update event_log set log = 'of another database'`);
    await database.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'levee events' and datname = current_database()`);
    await waitUntil(() => stream.names().includes('gap'), 'the gap is told');
    const { uuid } = await seedRule(database.pool, provider);
    await waitUntil(() => stream.messages.some(({ data }) => data.data?.uuid === uuid), 'and the stream goes on');
    const [epoch] = stream.messages[0]?.id?.split('-') ?? [];
    assert.ok(stream.messages.every(({ id }) => id?.startsWith(`${epoch}-`)));
    stream.close();
  });
});
