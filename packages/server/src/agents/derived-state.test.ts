import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLocation, createRouter } from '../store/routers.ts';
import { type SeededChange, seedDeletion, seedRule } from '../store/testing/seed.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { createAppliedView } from './applied-view.ts';
import { report } from './testing/agent-client.ts';
import { enrolled } from './testing/replica.ts';
import { prepareWorlds, stateOf } from './testing/world.ts';
import { createWireCursors } from './wire-cursor.ts';

const inWorld = prepareWorlds();

test('without a router nothing is ever active', async () => {
  await inWorld(async ({ database, provider, one }) => {
    const state = stateOf(one, await seedRule(database.pool, provider));
    assert.equal(state.state, 'pending');
    assert.match(state.reason ?? '', /No router is enrolled/);
    assert.deepEqual(state.applied, []);
  });
});

test('a router that was announced and has not enrolled yet is not waited for', async () => {
  await inWorld(async ({ database, one }) => {
    await createLocation(database.pool, 'fra1');
    assert.equal((await createRouter(database.pool, { name: 'e', location: 'fra1', tunnelAddresses: [] })).ok, true);
    await one.agents.registry.refresh();
    assert.equal(one.agents.registry.routers.length, 0);
  });
});

test('what concerns routers of which none has enrolled says so and names them, few of many', async () => {
  await inWorld(async ({ database, provider, one, cursorOf }) => {
    const rule = await seedRule(database.pool, provider);
    const reasonOf = (names: readonly string[]) => stateOf(one, rule, { routers: new Set(names) }).reason;
    const alone = 'The only router that it concerns (ams1) has not enrolled: nothing enforces it yet.';
    assert.equal(reasonOf(['ams1']), alone, 'whether or not others have');
    const other = await enrolled(database, 'fra1');
    assert.equal((await report(one.base, other.key, { cursor: cursorOf(rule) })).status, 200);
    assert.equal(stateOf(one, rule).state, 'active');
    assert.equal(stateOf(one, rule, { routers: new Set(['ams1']) }).state, 'pending');
    assert.equal(reasonOf(['ams1']), alone);
    const many = Array.from({ length: 40 }, (_, index) => `r${index}`);
    assert.equal(
      reasonOf(many),
      'None of the routers that it concerns (r0, r1, r2, r3, r4 and 35 more) has enrolled: nothing enforces it yet.',
    );
    assert.equal(reasonOf(['fra1', 'ams1']), undefined, 'one of them has');
  });
});

test('a router whose agent cannot enforce it at all says so at once, one that has not spoken yet does not', async () => {
  await inWorld(async ({ database, provider, one, cursorOf }) => {
    const router = await enrolled(database, 'fra1');
    const needs = { capability: 'filter:20', words: 'filters of kind wireguard (20)' };
    const reasonOf = (rule: SeededChange) => stateOf(one, rule, { needs }).reason;
    const first = await seedRule(database.pool, provider);
    await one.agents.registry.refresh();
    assert.equal(reasonOf(first), 'fra1: the router has not connected since it was enrolled');
    assert.equal((await report(one.base, router.key, { cursor: cursorOf(first) })).status, 200);
    const next = await seedRule(database.pool, provider);
    assert.equal(reasonOf(next), 'fra1: its agent does not enforce filters of kind wireguard (20)', 'not taken up yet');
    assert.equal(reasonOf(first), reasonOf(next));
    const capabilities = ['filter:20'];
    assert.equal((await report(one.base, router.key, { cursor: cursorOf(first), capabilities })).status, 200);
    assert.equal(reasonOf(next), 'fra1: the router has not put it in force yet');
    // It can something, so it will say itself what it lacks.
    const other = { capability: 'tunnel:GRE', words: 'GRE tunnels' };
    const told = () => stateOf(one, next, { needs: other }).reason;
    assert.equal(told(), 'fra1: the router has not put it in force yet');
    assert.equal((await report(one.base, router.key, { cursor: cursorOf(next), capabilities })).status, 200);
    assert.equal(told(), 'fra1: its agent does not enforce GRE tunnels');
  });
});

test('a rule is active once every router has acknowledged it, on every replica, with where, when and how fast', async () => {
  await inWorld(async ({ database, provider, one, two, cursorOf }) => {
    const [fast, slow] = [await enrolled(database, 'fast'), await enrolled(database, 'slow')];
    const before_ = await seedRule(database.pool, provider);
    for (const router of [fast, slow]) {
      assert.equal((await report(one.base, router.key, { cursor: cursorOf(before_) })).status, 200);
    }
    const changedMilliseconds = Date.now();
    const rule = await seedRule(database.pool, provider);
    assert.equal((await report(one.base, fast.key, { cursor: cursorOf(rule) })).status, 200);
    for (const replica of [one, two]) {
      await waitUntil(() => stateOf(replica, rule).applied.some((entry) => entry.state === 'active'), 'the first');
      const { state, reason, applied } = stateOf(replica, rule);
      assert.equal(state, 'pending');
      assert.match(reason ?? '', /^slow: /);
      assert.deepEqual(
        applied.map((entry) => [entry.location, entry.router, entry.state]),
        [
          ['at-fast', 'fast', 'active'],
          ['at-slow', 'slow', 'pending'],
        ],
      );
    }
    assert.equal((await report(two.base, slow.key, { cursor: cursorOf(rule) })).status, 200);
    for (const replica of [one, two]) {
      await waitUntil(() => stateOf(replica, rule).state === 'active', 'both routers', 4_000);
      const { applied, reason } = stateOf(replica, rule, { changedMilliseconds });
      assert.equal(reason, undefined);
      for (const entry of applied) {
        assert.ok(Math.abs(Date.parse(entry.at ?? '') - Date.now()) < 60_000);
        assert.ok(entry.latency_ms !== undefined && entry.latency_ms < 60_000);
      }
    }
  });
});

test('acknowledging a place acknowledges everything before it and nothing after it', async () => {
  await inWorld(async ({ database, provider, one, cursorOf }) => {
    const router = await enrolled(database, 'edge1');
    const rules = [];
    for (let i = 0; i < 5; i++) rules.push(await seedRule(database.pool, provider));
    await report(one.base, router.key, { cursor: cursorOf(rules[2] as SeededChange) });
    assert.deepEqual(
      rules.map((rule) => stateOf(one, rule).state),
      ['active', 'active', 'active', 'pending', 'pending'],
    );
  });
});

test('a dry router makes nothing active, and its reason is passed on', async () => {
  await inWorld(async ({ database, provider, one, cursorOf }) => {
    const router = await enrolled(database, 'edge1');
    const rule = await seedRule(database.pool, provider);
    const enforcement = { mode: 'dry', reason: 'not run as root' } as const;
    await report(one.base, router.key, { cursor: cursorOf(rule), enforcement });
    assert.equal(stateOf(one, rule).state, 'pending');
    assert.match(stateOf(one, rule).reason ?? '', /not run as root/);
    await report(one.base, router.key, { cursor: cursorOf(rule) });
    assert.equal(stateOf(one, rule).state, 'active');
  });
});

test('a refused rule is failed with the reason, until the router no longer lists it', async () => {
  await inWorld(async ({ database, provider, one, two, cursorOf }) => {
    const router = await enrolled(database, 'edge1');
    const [bad, good] = [await seedRule(database.pool, provider), await seedRule(database.pool, provider)];
    const failures = [{ uuid: bad.uuid, reason: 'Operation not supported' }];
    await report(one.base, router.key, { cursor: cursorOf(good), failures });
    for (const replica of [one, two]) {
      await waitUntil(() => stateOf(replica, bad).state === 'failed', 'the failure');
      assert.match(stateOf(replica, bad).reason ?? '', /Operation not supported/);
      assert.equal(stateOf(replica, good).state, 'active');
    }
    await report(two.base, router.key, { cursor: cursorOf(good), failures: [] });
    for (const replica of [one, two]) await waitUntil(() => stateOf(replica, bad).state === 'active', 'the recovery');
    const { rows } = await database.pool.query('select count(*) as left from router_failure');
    assert.equal(rows[0].left, 0);
  });
});

test('a router that falls back takes back what it had acknowledged', async () => {
  await inWorld(async ({ database, provider, one, cursorOf }) => {
    const router = await enrolled(database, 'edge1');
    const [first, second] = [await seedRule(database.pool, provider), await seedRule(database.pool, provider)];
    await report(one.base, router.key, { cursor: cursorOf(second) });
    assert.equal(stateOf(one, second).state, 'active');
    await report(one.base, router.key, { cursor: cursorOf(first) });
    assert.deepEqual([stateOf(one, first).state, stateOf(one, second).state], ['active', 'pending']);
    const { rows } = await database.pool.query('select count(*) as left from router_ack');
    assert.equal(rows[0].left, 1);
  });
});

test('a router that cannot tell how far it is takes nothing back as far as it resumes, and when that came into force stays', async () => {
  await inWorld(async ({ database, provider, one, two, cursorOf }) => {
    const router = await enrolled(database, 'edge1');
    const rules = [];
    for (let i = 0; i < 4; i++) rules.push(await seedRule(database.pool, provider));
    const [oldest, first, bad, second] = rules as [SeededChange, SeededChange, SeededChange, SeededChange];
    const failures = [{ uuid: bad.uuid, reason: 'Operation not supported' }];
    const told = async (replica: typeof one, body: object): Promise<void> => {
      const answer = await report(replica.base, router.key, body);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    };
    const changedMilliseconds = Date.now();
    const look = (replica: typeof one, rule: SeededChange) => {
      const { state, applied } = stateOf(replica, rule, { changedMilliseconds });
      return [state, applied[0]?.at, applied[0]?.latency_ms];
    };
    await told(one, { cursor: cursorOf(oldest) });
    await told(one, { cursor: cursorOf(bad), failures });
    const before = look(one, first);
    assert.deepEqual([before[0], typeof before[2]], ['active', 'number']);
    await waitUntil(() => look(two, first)[0] === 'active', 'the other replica');

    const later = [{ uuid: second.uuid, reason: 'No buffer space' }];
    await told(two, { resumes: cursorOf(second), capabilities: ['tunnel:GRE'], failures: later, waits_for: 'tunnels' });
    for (const replica of [one, two]) {
      const known = replica.agents.registry.routers;
      await waitUntil(
        () => known[0]?.capabilities.has('tunnel:GRE') || stateOf(replica, second).state === 'failed',
        'it',
      );
      assert.deepEqual(look(replica, first), before, 'in force as before');
      assert.equal(stateOf(replica, bad).state, 'failed', 'and what failed still fails');
      const young = await seedRule(database.pool, provider);
      const waiting = 'edge1: the router has not acknowledged it yet: it is still at work on tunnels';
      assert.equal(stateOf(replica, young).reason, waiting);
    }

    await told(one, {});
    for (const replica of [one, two])
      await waitUntil(() => look(replica, first)[0] === 'pending', 'a state that is lost');
    await told(two, { resumes: cursorOf(second) });
    assert.equal(look(two, first)[0], 'pending', 'nothing that stands');
    await told(one, { cursor: cursorOf(second) });
    for (const replica of [one, two]) {
      await waitUntil(() => look(replica, second)[0] === 'active', 'the snapshot');
      assert.deepEqual(look(replica, first), before);
    }

    await told(one, { resumes: cursorOf(first) });
    for (const replica of [one, two]) {
      await waitUntil(() => look(replica, second)[0] === 'pending', 'what is beyond an older state');
      assert.equal(look(replica, first)[0], 'active');
    }

    const elsewhere = createWireCursors(() => '0123456789').write({ xid: Number(first.change.xid), position: 1 });
    await told(one, { resumes: elsewhere });
    for (const replica of [one, two]) await waitUntil(() => look(replica, first)[0] === 'pending', 'another log');
    await told(two, { cursor: cursorOf(second) });
    for (const replica of [one, two]) {
      await waitUntil(() => look(replica, first)[0] === 'active', 'the new beginning');
      assert.notEqual(look(replica, first)[1], before[1]);
    }
  });
});

test('what a dry router took note of does not stand when it begins to enforce', async () => {
  await inWorld(async ({ database, provider, one, cursorOf }) => {
    const router = await enrolled(database, 'edge1');
    const rule = await seedRule(database.pool, provider);
    await report(one.base, router.key, { cursor: cursorOf(rule), enforcement: { mode: 'dry', reason: 'not root' } });
    await report(one.base, router.key, { resumes: cursorOf(rule) });
    assert.equal(stateOf(one, rule).reason, 'edge1: the router has not put it in force yet');
  });
});

test('a silent router says since when it holds up new rules', async () => {
  await inWorld(async ({ database, provider, one, cursorOf }) => {
    const router = await enrolled(database, 'edge1');
    const old = await seedRule(database.pool, provider);
    await report(one.base, router.key, { cursor: cursorOf(old) });
    await database.pool.query(`update router set last_seen_at = '2020-01-02T03:04:05Z'`);
    await one.agents.registry.refresh();
    const state = stateOf(one, await seedRule(database.pool, provider));
    assert.equal(state.state, 'pending');
    assert.match(state.reason ?? '', /2020-01-02T03:04:05/);
  });
});

test('a deleted rule is gone from a router when the router has acknowledged its deletion', async () => {
  await inWorld(async ({ database, provider, one, cursorOf }) => {
    const router = await enrolled(database, 'edge1');
    const made = await seedRule(database.pool, provider);
    const rule = await seedDeletion(database.pool, made.uuid);
    assert.equal(stateOf(one, rule, { deleted: true }).state, 'pending');
    await report(one.base, router.key, { cursor: cursorOf(rule) });
    assert.deepEqual(
      stateOf(one, rule, { deleted: true }).applied.map((entry) => entry.state),
      ['removed'],
    );
  });
});

test('whoever waits is told at the acknowledgement, wherever it arrives, and at the end of its time', async () => {
  await inWorld(async ({ database, provider, one, two, cursorOf }) => {
    const router = await enrolled(database, 'edge1');
    const [rule, never] = [await seedRule(database.pool, provider), await seedRule(database.pool, provider)];
    for (const { agents } of [one, two]) await agents.registry.refresh();
    const waits = [one, two].map((replica) => replica.agents.view.waitApplied(rule.change, 20_000));
    const vain = one.agents.view.waitApplied(never.change, 300);
    const startedAt = Date.now();
    await report(one.base, router.key, { cursor: cursorOf(rule) });
    assert.deepEqual(await Promise.all(waits), ['applied', 'applied']);
    assert.ok(Date.now() - startedAt < 4_000, 'the second replica was told, it did not find out by looking');
    assert.equal(await vain, 'timeout');
    assert.equal(await one.agents.view.waitApplied(rule.change, 0), 'applied');
  });
});

test('a removal is not confirmed by a dry router that left a table in its kernel, and its reason is told', async () => {
  await inWorld(async ({ database, provider, one, two, cursorOf }) => {
    const router = await enrolled(database, 'edge1');
    const rule = await seedRule(database.pool, provider);
    const cursor = cursorOf(rule);
    const reason = 'not root; an older table may still be in force';
    const left = { cursor, enforcement: { mode: 'dry', reason, table_left: true } } as const;
    assert.equal((await report(one.base, router.key, left)).status, 200);
    for (const replica of [one, two]) {
      await waitUntil(
        () => stateOf(replica, rule, { deleted: true }).applied[0]?.reason?.includes(reason) === true,
        'it',
      );
      const { state, applied } = stateOf(replica, rule, { deleted: true });
      assert.deepEqual([state, applied[0]?.state], ['pending', 'pending']);
    }
    assert.equal((await report(one.base, router.key, { cursor, enforcement: { mode: 'dry', reason } })).status, 200);
    for (const replica of [one, two]) {
      await waitUntil(() => stateOf(replica, rule, { deleted: true }).state === 'active', 'gone');
      assert.equal(stateOf(replica, rule).state, 'pending');
    }
    const odd = { enforcement: { mode: 'dry', table_left: 'yes' } };
    assert.equal((await report(one.base, router.key, odd as never)).body.field, '/enforcement/table_left');
  });
});

test('what a router that has been silent for a minute enforces is not called active, on any replica', async () => {
  await inWorld(async ({ database, provider, one, two, cursorOf }) => {
    const router = await enrolled(database, 'edge1');
    const [rule, gone] = [await seedRule(database.pool, provider), await seedRule(database.pool, provider)];
    const cursor = cursorOf(gone);
    assert.equal((await report(one.base, router.key, { cursor })).status, 200);
    let ahead = 0;
    const view = createAppliedView(one.agents.registry, () => Date.now() + ahead);
    const subject = { uuid: rule.uuid, change: rule.change, deleted: false };
    assert.equal(view.stateOf(subject).state, 'active');
    ahead = 55_000;
    assert.equal(view.stateOf(subject).state, 'active', 'a few reports that are missing change nothing');
    ahead = 61_000;
    assert.equal(view.stateOf(subject).state, 'pending', 'time alone does it');
    assert.equal(view.stateOf({ ...subject, deleted: true }).state, 'active', 'what was removed stays removed');
    view.stop();

    await database.pool.query(`update router set last_seen_at = now() - interval '61 seconds'`);
    for (const replica of [one, two]) {
      await replica.agents.registry.refresh();
      const { state, reason, applied } = stateOf(replica, rule);
      assert.equal(state, 'pending');
      assert.match(reason ?? '', /^edge1: not heard of since \d{4}-.* stay in its kernel, but it cannot be asked$/);
      assert.ok(Date.now() - Date.parse(applied[0]?.last_seen_at ?? '') > 60_000);
    }
    assert.equal((await report(two.base, router.key, { cursor })).status, 200);
    for (const replica of [one, two]) await waitUntil(() => stateOf(replica, rule).state === 'active', 'its return');
  });
});
