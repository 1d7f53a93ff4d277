import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Database } from '../store/database.ts';
import { newUuid } from '../store/new-uuid.ts';
import {
  createLocation,
  createRouter,
  enrolRouter,
  ensureLocalRouter,
  removeRouter,
  renewEnrolment,
} from '../store/routers.ts';
import { seedRule } from '../store/testing/seed.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { post, report } from './testing/agent-client.ts';
import { enrolled } from './testing/replica.ts';
import { prepareWorlds, stateOf } from './testing/world.ts';

const inWorld = prepareWorlds();

test('a token enrols once, whoever is first; a used, an expired and an unknown one are refused', async () => {
  await inWorld(async ({ database, one, two }) => {
    const location = await createLocation(database.pool, 'fra1');
    const created = await createRouter(database.pool, { name: 'edge1', location: location.uuid, tunnelAddresses: [] });
    assert.ok(created.ok);
    const token = { token: created.token };
    const both = await Promise.all([one, two].map((at) => post(at.base, '/agent/v1/enroll', token)));
    assert.deepEqual(both.map(({ status }) => status).sort(), [200, 401]);
    const body = both.find(({ status }) => status === 200)?.body ?? {};
    assert.deepEqual([body.router_uuid, body.name, body.location], [created.router.uuid, 'edge1', 'fra1']);
    assert.equal((await report(two.base, String(body.key), {})).status, 200);
    assert.equal((await post(one.base, '/agent/v1/enroll', token)).status, 401);

    const late = await createRouter(database.pool, { name: 'edge2', location: 'fra1', tunnelAddresses: ['192.0.2.1'] });
    assert.ok(late.ok);
    assert.deepEqual(late.router.tunnel_addresses, ['192.0.2.1']);
    assert.ok(Math.abs(late.expiresAt.getTime() - Date.now() - 3_600_000) < 60_000);
    await database.pool.query(`update router set enrolment_expires_at = now() - interval '1 second'`);
    for (const wrong of [late.token, 'unknown-token-unknown-token', 'x', '']) {
      assert.equal((await post(one.base, '/agent/v1/enroll', { token: wrong })).status, 401);
    }
    assert.equal((await post(one.base, '/agent/v1/enroll', { token: 7 })).status, 400);
    const missing = await createRouter(database.pool, { name: 'edge3', location: 'nowhere', tunnelAddresses: [] });
    assert.deepEqual(missing, { ok: false, code: 'location_not_found' });
  });
});

test('keys and tokens are nowhere in the database', async () => {
  await inWorld(async ({ database }) => {
    const { key } = await enrolled(database, 'edge1');
    const created = await createRouter(database.pool, { name: 'e2', location: 'at-edge1', tunnelAddresses: [] });
    assert.ok(created.ok);
    const { rows } = await database.pool.query('select r::text as row from router r');
    for (const secret of [key, created.token]) {
      const hex = Buffer.from(secret).toString('hex');
      assert.ok(rows.every(({ row }) => !row.includes(secret) && !row.includes(hex)));
    }
  });
});

test('a removed router is not waited for any more, and its key opens nothing within a moment', async () => {
  await inWorld(async ({ database, provider, one, two, cursorOf }) => {
    const [stays, goes] = [await enrolled(database, 'stays'), await enrolled(database, 'goes')];
    const rule = await seedRule(database.pool, provider);
    await report(one.base, stays.key, { cursor: cursorOf(rule) });
    await report(one.base, goes.key, {});
    assert.equal(stateOf(one, rule).state, 'pending');
    assert.equal(await removeRouter(database.pool, goes.uuid), true);
    assert.equal((await report(two.base, goes.key, {})).status, 401);
    await one.agents.registry.refresh();
    for (const replica of [one, two]) await waitUntil(() => stateOf(replica, rule).state === 'active', 'the state');
    assert.equal(await removeRouter(database.pool, goes.uuid), false);
  });
});

test('the local router is made once, keeps a key that is still good, and gets a fresh one otherwise', async () => {
  await inWorld(async ({ database, one }) => {
    const own = { uuid: newUuid(), hostName: 'here' };
    const made = await Promise.all([ensureLocalRouter(database.pool, own), ensureLocalRouter(database.pool, own)]);
    assert.deepEqual(new Set(made.map((each) => each.routerUuid)), new Set([own.uuid]));
    const fresh = await ensureLocalRouter(database.pool, { ...own, presentKey: 'lv_r_wrong' });
    assert.equal(fresh.fresh, true);
    const kept = await ensureLocalRouter(database.pool, { ...own, presentKey: fresh.key });
    assert.deepEqual(kept, { ...fresh, fresh: false });
    assert.equal((await report(one.base, fresh.key, {})).status, 200);
    assert.equal((await report(one.base, made[0]?.key ?? '', {})).status, 401);
  });
});

test('a router that enrols anew has acknowledged, refused and told nothing, on every replica, until it reports', async () => {
  await inWorld(async ({ database, provider, one, two, cursorOf }) => {
    const former = await enrolled(database, 'edge1');
    const [rule, bad] = [await seedRule(database.pool, provider), await seedRule(database.pool, provider)];
    const hit = { uuid: rule.uuid, packets: 1, bytes: 100, last_hit_at: '2026-01-01T00:00:00Z' };
    const counters = { run: '0198a000-0000-7000-8000-00000000000a', number: 7, hits: [hit] };
    const failures = [{ uuid: bad.uuid, reason: 'Operation not supported' }];
    const told = { cursor: cursorOf(bad), failures, counters };
    assert.equal((await report(one.base, former.key, told)).status, 200);
    for (const replica of [one, two]) {
      await waitUntil(() => stateOf(replica, rule).state === 'active', 'the former machine');
      assert.equal(stateOf(replica, bad).state, 'failed');
    }

    const renewed = await renewEnrolment(database.pool, former.uuid);
    assert.ok(renewed !== undefined);
    assert.equal((await report(one.base, former.key, told)).status, 200, 'a token that waits changes nothing');
    assert.equal(stateOf(one, rule).state, 'active');
    const answer = await post(one.base, '/agent/v1/enroll', { token: renewed.token });
    assert.equal(answer.status, 200);
    assert.equal(stateOf(one, rule).state, 'pending', 'where it enrolled, at once');
    for (const replica of [one, two]) {
      await waitUntil(() => stateOf(replica, rule).state === 'pending', 'the fresh machine', 4_000);
      for (const each of [rule, bad]) {
        const { state, reason } = stateOf(replica, each);
        assert.deepEqual([state, reason], ['pending', 'edge1: the router has not connected since it was enrolled']);
      }
    }
    const { rows } = await database.pool.query(
      `select acked_xid, acked_position, enforcement, enforcement_reason, table_left, last_seen_at, counters_run,
        counters_number, (select count(*) from router_ack) as acks, (select count(*) from router_failure) as failures
        from router`,
    );
    assert.deepEqual(rows, [
      {
        acked_xid: null,
        acked_position: null,
        enforcement: null,
        enforcement_reason: null,
        table_left: false,
        last_seen_at: null,
        counters_run: null,
        counters_number: null,
        acks: 0,
        failures: 0,
      },
    ]);

    const key = String(answer.body.key);
    assert.equal((await report(two.base, key, { cursor: cursorOf(bad) })).status, 200);
    for (const replica of [one, two]) {
      await waitUntil(() => [rule, bad].every((each) => stateOf(replica, each).state === 'active'), 'its first report');
    }
  });
});

test('a report that its former machine sent before, and that comes to be stored after, acknowledges nothing', async () => {
  await inWorld(async ({ database, provider, one, cursorOf }) => {
    const former = await enrolled(database, 'edge1');
    const rule = await seedRule(database.pool, provider);
    assert.equal((await report(one.base, former.key, {})).status, 200);
    const renewed = await renewEnrolment(database.pool, former.uuid);
    assert.ok(renewed !== undefined);
    const holder = await database.connect('levee test');
    try {
      await holder.query('begin');
      await holder.query('select from router for update');
      const enrolling = enrolRouter(database.pool, renewed.token);
      await waitUntil(() => waitingForLocks(database, 1), 'the enrolment');
      const late = report(one.base, former.key, { cursor: cursorOf(rule) });
      await waitUntil(() => waitingForLocks(database, 2), 'the report');
      await holder.query('rollback');
      assert.equal((await enrolling).ok, true);
      assert.equal((await late).status, 401);
    } finally {
      await holder.end();
    }
    await one.agents.registry.refresh();
    assert.equal(stateOf(one, rule).state, 'pending');
    const { rows } = await database.pool.query('select acked_xid, last_seen_at from router');
    assert.deepEqual(rows, [{ acked_xid: null, last_seen_at: null }]);
  });
});

async function waitingForLocks(database: Database, count: number): Promise<boolean> {
  const { rows } = await database.pool.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows.length >= count;
}
