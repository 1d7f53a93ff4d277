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
const followed = async (of = database) =>
  (
    await of.pool.query(
      `select from event_log l where not exists (select from change c where (c.xid, c.position) > (l.xid, l.position))`,
    )
  ).rows.length === 1;

async function acknowledge(plane: ControlPlane, key: string, refused: Iterable<string> = []): Promise<void> {
  const [last] = await query<{ xid: string; position: number }>(
    `select xid::text as xid, position from change where xid < pg_snapshot_xmin(pg_current_snapshot())
      order by change.xid desc, position desc limit 1`,
  );
  const failures = [...refused].map((uuid) => ({ uuid, reason: 'a test' }));
  const cursor = plane.agents.cursors.write({ xid: Number(last?.xid), position: last?.position ?? 0 });
  assert.equal((await report(plane.url, key, { cursor, failures })).status, 200);
}

/** False: nobody leads at the moment. */
async function killLeader(): Promise<boolean> {
  const killed = await query<{ gone: boolean }>(
    `select pg_terminate_backend(l.pid) as gone from pg_locks l join pg_stat_activity a on a.pid = l.pid
      where l.locktype = 'advisory' and a.application_name = 'levee events' and a.datname = current_database()`,
  );
  return killed[0]?.gone === true;
}

/** xorshift: the same numbers in every run. */
let seed = Number(process.env.LEVEE_TEST_SEED ?? 20260131);
function random(below: number): number {
  seed ^= seed << 13;
  seed ^= seed >>> 17;
  seed ^= seed << 5;
  return (seed >>> 0) % below;
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

test('entries are followed in the order of their numbers, also where these get another digit', async () => {
  const fresh = await api.postgres.createDatabase();
  const owner = await seedProvider(fresh.pool);
  const first = await startControlPlane(fresh);
  const log = async () => (await fresh.pool.query('select from event_log')).rows.length;
  await waitUntil(async () => (await log()) === 1, 'events are written');
  await first.stop();
  const { rows } = await fresh.pool.query<{ xid: number }>('select pg_current_xact_id()::text::int8 as xid');
  const xid = rows[0]?.xid ?? 0;
  const missing = 10 ** String(xid).length - 4 - xid;
  await fresh.pool.query(
    `do $$ begin for i in 1..${missing} loop perform pg_current_xact_id(); commit; end loop; end $$`,
  );
  const uuids: string[] = [];
  for (let each = 0; each < 8; each++) uuids.push((await seedRule(fresh.pool, owner)).uuid);
  const second = await startControlPlane(fresh);
  const told = async () =>
    (await fresh.pool.query<{ uuid: string }>('select object_uuid::text as uuid from event order by sequence')).rows;
  try {
    await waitUntil(async () => (await told()).length >= uuids.length, 'all are told');
    await waitUntil(() => followed(fresh), 'the cursor stands behind the last of them');
    uuids.push((await seedRule(fresh.pool, owner)).uuid);
    await waitUntil(async () => (await told()).length >= uuids.length, 'and what comes after them');
    assert.deepEqual((await told()).map(({ uuid }) => uuid).sort(), uuids.sort());
  } finally {
    await second.stop();
  }
});

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
      assert.equal(await killLeader(), true);
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
    await waitUntil(() => followed(), 'the log is followed to its end');
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

  await context.test('whatever happens in whatever order, the last word is the state that is read', async () => {
    const other = await start(api.postgres.openAgain(database));
    const rules = await Promise.all(Array.from({ length: 12 }, () => seedRule(database.pool, provider)));
    const left = new Set(rules.map(({ uuid }) => uuid));
    // One that came and went unseen is told of by nobody.
    for (const uuid of left) await waitUntil(async () => (await eventsOf(uuid)).length > 0, 'each is told of');
    const refused = new Set<string>();
    for (let step = 0; step < 150; step++) {
      const [uuid = ''] = [...left].slice(random(left.size));
      const what = random(20);
      if (what < 8) await seedPriority(database.pool, uuid, step + 1);
      else if (what < 14) await acknowledge(random(2) === 0 ? other : (planes[0] ?? other), key, refused);
      else if (what < 16) refused.add(uuid);
      else if (what < 18) refused.delete([...refused][0] ?? '');
      else if (what < 19 && left.size > 4) {
        await seedDeletion(database.pool, uuid);
        left.delete(uuid);
      } else await killLeader();
      if (random(4) === 0) await sweepOnce(database.pool);
      if (random(6) === 0) await waitUntil(() => followed(), 'somebody follows');
    }
    refused.clear();
    for (const uuid of [...left].slice(0, 2)) refused.add(uuid);
    await acknowledge(other, key, refused);
    await sweepOnce(database.pool);
    const expected = (uuid: string) => (!left.has(uuid) ? 'deleted' : refused.has(uuid) ? 'failed' : 'active');
    for (const { uuid } of rules) {
      await waitUntil(async () => (await eventsOf(uuid)).at(-1) === expected(uuid), `${uuid} is ${expected(uuid)}`);
    }
    // Of one change the same is never told twice in a row, and it is pending once at most.
    const repeated = await query(
      `select from (
          select name, data->>'updated_at' as change, lag(name) over w as before, lag(data->>'updated_at') over w as former
          from event where object_uuid = any($1) window w as (partition by object_uuid order by sequence)
        ) e where name = before and change = former`,
      [rules.map(({ uuid }) => uuid)],
    );
    assert.deepEqual(repeated, []);
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
