import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Database } from '../store/database.ts';
import { createLocation, createRouter } from '../store/routers.ts';
import { type SeededChange, type SeededProvider, seedDeletion, seedProvider, seedRule } from '../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../store/testing/test-postgres.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { createAppliedView, type DerivedState } from './applied-view.ts';
import { type Answered, post, report } from './testing/agent-client.ts';
import { enrolled, type Replica, startReplica } from './testing/replica.ts';
import { createWireCursors, type WireCursors } from './wire-cursor.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
after(() => postgres?.stop());

interface World {
  readonly database: Database;
  readonly provider: SeededProvider;
  readonly one: Replica;
  /** Another replica, with a pool and memory of its own. */
  readonly two: Replica;
}

async function inWorld(work: (world: World) => Promise<void>): Promise<void> {
  const database = await postgres.createDatabase();
  const one = await startReplica(database);
  const two = await startReplica(postgres.openAgain(database));
  cursors = one.agents.cursors;
  try {
    await work({ database, provider: await seedProvider(database.pool), one, two });
  } finally {
    await one.stop();
    await two.stop();
  }
}

/** Of the world that is open. */
let cursors: WireCursors;
const cursorOf = ({ change }: SeededChange): string =>
  cursors.write({ xid: Number(change.xid), position: change.position });

function stateOf(replica: Replica, rule: SeededChange, more: object = {}): DerivedState {
  return replica.agents.view.stateOf({ uuid: rule.uuid, change: rule.change, deleted: false, ...more });
}

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

test('a rule is active once every router has acknowledged it, on every replica, with where, when and how fast', async () => {
  await inWorld(async ({ database, provider, one, two }) => {
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
  await inWorld(async ({ database, provider, one }) => {
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

test('a place in the log of another database acknowledges nothing, and the rest of the report is taken', async () => {
  await inWorld(async ({ database, provider, one }) => {
    const router = await enrolled(database, 'edge1');
    const rule = await seedRule(database.pool, provider);
    const elsewhere = createWireCursors(() => '0123456789').write({ xid: Number(rule.change.xid) + 1000, position: 1 });
    const answer = await report(one.base, router.key, { cursor: elsewhere });
    assert.equal(answer.status, 200);
    assert.equal(stateOf(one, rule).state, 'pending');
    assert.equal(one.agents.registry.routers[0]?.enforcement, 'kernel');
  });
});

test('a dry router makes nothing active, and its reason is passed on', async () => {
  await inWorld(async ({ database, provider, one }) => {
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
  await inWorld(async ({ database, provider, one, two }) => {
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
  await inWorld(async ({ database, provider, one }) => {
    const router = await enrolled(database, 'edge1');
    const [first, second] = [await seedRule(database.pool, provider), await seedRule(database.pool, provider)];
    await report(one.base, router.key, { cursor: cursorOf(second) });
    assert.equal(stateOf(one, second).state, 'active');
    await report(one.base, router.key, { cursor: cursorOf(first) });
    assert.deepEqual([stateOf(one, first).state, stateOf(one, second).state], ['active', 'pending']);
    await report(one.base, router.key, {});
    assert.equal(stateOf(one, first).state, 'pending');
    const { rows } = await database.pool.query('select count(*) as left from router_ack');
    assert.equal(rows[0].left, 0);
  });
});

test('a silent router says since when it holds up new rules', async () => {
  await inWorld(async ({ database, provider, one }) => {
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
  await inWorld(async ({ database, provider, one }) => {
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
  await inWorld(async ({ database, provider, one, two }) => {
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

test('hits are added, once a number and run, and those of unknown rules are left aside', async () => {
  await inWorld(async ({ database, provider, one, two }) => {
    const router = await enrolled(database, 'edge1');
    const rule = await seedRule(database.pool, provider);
    const hit = (packets: number, minute: number, uuid = rule.uuid) => ({
      uuid,
      packets,
      bytes: packets * 100,
      last_hit_at: `2026-01-01T00:0${minute}:00Z`,
    });
    const [a, b] = ['0198a000-0000-7000-8000-00000000000a', '0198a000-0000-7000-8000-00000000000b'];
    const unknown = hit(9, 1, '0198a000-0000-7000-8000-0000000000ff');
    const counters = [
      { run: a, number: 1, hits: [hit(1, 5), unknown] },
      { run: a, number: 1, hits: [hit(1, 5), unknown] },
      { run: a, number: 2, hits: [hit(10, 3), hit(100, 4)] },
      { run: b, number: 1, hits: [{ ...hit(1000, 6), shared_by: 3 }] },
      { run: b, number: 1, hits: [{ ...hit(1000, 6), shared_by: 3 }] },
    ];
    for (const [index, each] of counters.entries()) {
      const answer = await report((index % 2 === 0 ? one : two).base, router.key, { counters: each });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    }
    const { rows } = await database.pool.query('select packets, bytes, last_hit_at, shared_by from rule_hit');
    assert.deepEqual(rows, [
      { packets: 1111, bytes: 111100, last_hit_at: new Date('2026-01-01T00:06:00Z'), shared_by: 3 },
    ]);
  });
});

test('a removal is not confirmed by a dry router that left a table in its kernel, and its reason is told', async () => {
  await inWorld(async ({ database, provider, one, two }) => {
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
  await inWorld(async ({ database, provider, one, two }) => {
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

test('what a router miscounts, or dates wrongly, neither overflows nor takes others down', async () => {
  await inWorld(async ({ database, provider, one }) => {
    const most = Number.MAX_SAFE_INTEGER;
    const [wild, wilder] = [await enrolled(database, 'wild'), await enrolled(database, 'wilder')];
    const rule = await seedRule(database.pool, provider);
    const run = '0198a000-0000-7000-8000-00000000000a';
    const times = ['+200000-01-01T00:00:00Z', '-271821-04-20T00:00:00Z', '2999-01-01T00:00:00Z'];
    for (const router of [wild, wilder]) {
      for (const [index, last_hit_at] of times.entries()) {
        const hit = { uuid: rule.uuid, packets: most, bytes: most, last_hit_at };
        for (const half of [0, 1]) {
          const counters = { run, number: 2 * index + half, hits: [hit, hit] };
          assert.equal((await report(one.base, router.key, { counters })).status, 200);
        }
      }
    }
    const { rows } = await database.pool.query('select packets, bytes, last_hit_at from rule_hit');
    assert.equal(rows.length, 2);
    for (const { packets, bytes, last_hit_at } of rows) {
      assert.deepEqual([packets, bytes], [most, most]);
      assert.ok(Math.abs(last_hit_at.getTime() - Date.now()) < 60_000);
    }
  });
});

test('a cursor beyond the end of the log is refused: later rules do not become active by it', async () => {
  await inWorld(async ({ database, provider, one }) => {
    const router = await enrolled(database, 'edge1');
    assert.equal((await report(one.base, router.key, {})).status, 200);
    const ahead = one.agents.cursors.write({ xid: Number.MAX_SAFE_INTEGER, position: 1 });
    const answer = await report(one.base, router.key, { cursor: ahead, enforcement: { mode: 'dry' } });
    assert.equal(answer.status, 400);
    assert.equal(answer.body.field, '/cursor');
    assert.equal(stateOf(one, await seedRule(database.pool, provider)).state, 'pending');
    assert.equal(one.agents.registry.routers[0]?.enforcement, 'kernel');
    const rule = await seedRule(database.pool, provider);
    assert.equal((await report(one.base, router.key, { cursor: cursorOf(rule) })).status, 200);
    assert.equal(stateOf(one, rule).state, 'active');
  });
});

test('a report that cannot be stored does not lose those that were gathered with it', async () => {
  await inWorld(async ({ database, provider, one }) => {
    const routers: { key: string }[] = [];
    for (let i = 0; i < 6; i++) routers.push(await enrolled(database, `edge${i}`));
    const rule = await seedRule(database.pool, provider);
    await database.pool.query(`create function refuse() returns trigger language plpgsql as
      $$ begin if new.enforcement_reason = 'poison' then raise exception 'refused'; end if; return new; end $$`);
    await database.pool.query('create trigger refuse before update on router for each row execute function refuse()');
    for (let round = 0; round < 3; round++) {
      const answers: Answered[] = await Promise.all(
        routers.map(({ key }, index) =>
          report(one.base, key, {
            cursor: cursorOf(rule),
            enforcement: { mode: 'kernel', ...(index === 2 && { reason: 'poison' }) },
          }),
        ),
      );
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 500, 200, 200, 200],
      );
    }
  });
});

test('many reports at once, of many routers and twice of the same, are all stored', async () => {
  await inWorld(async ({ database, provider, one, two }) => {
    const routers = [];
    for (let i = 0; i < 20; i++) routers.push(await enrolled(database, `edge${i}`));
    const rules: SeededChange[] = [];
    for (let i = 0; i < 4; i++) rules.push(await seedRule(database.pool, provider));
    for (const rule of rules) {
      const answers = await Promise.all(
        routers.flatMap(({ key }) => [one, two].map((at) => report(at.base, key, { cursor: cursorOf(rule) }))),
      );
      assert.ok(answers.every(({ status }) => status === 200));
    }
    for (const replica of [one, two]) {
      await waitUntil(() => rules.every((rule) => stateOf(replica, rule).state === 'active'), 'all of them');
    }
    const { rows } = await database.pool.query('select count(*) as acks from router_ack');
    assert.equal(rows[0].acks, 80);
  });
});

test('a malformed report is refused with the field, and changes nothing', async () => {
  await inWorld(async ({ database, one }) => {
    const router = await enrolled(database, 'edge1');
    const uuid = '0198a000-0000-7000-8000-00000000000a';
    const hit = { uuid, packets: 1, bytes: 1, last_hit_at: '2026-01-01T00:00:00Z' };
    const cases: [object, string][] = [
      [{ enforcement: { mode: 'loud' } }, '/enforcement/mode'],
      [{ enforcement: null }, '/enforcement'],
      [{ failures: {} }, '/failures'],
      [{ failures: [{ uuid: 'x', reason: '' }] }, '/failures/0/uuid'],
      [{ cursor: 'x' }, '/cursor'],
      [{ cursor: 7 }, '/cursor'],
      [{ counters: { run: uuid, number: -1, hits: [] } }, '/counters/number'],
      [{ counters: { run: uuid, number: 1, hits: [{ ...hit, packets: 1.5 }] } }, '/counters/hits/0/packets'],
      [{ counters: { run: uuid, number: 1, hits: [{ ...hit, last_hit_at: 'soon' }] } }, '/counters/hits/0/last_hit_at'],
      [{ status: [] }, '/status'],
    ];
    for (const [fields, field] of cases) {
      const answer = await report(one.base, router.key, fields as never);
      assert.equal(answer.status, 400, field);
      assert.equal(answer.body.field, field);
      assert.equal(answer.body.error, 'validation_failed');
    }
    assert.equal((await post(one.base, '/agent/v1/report', [], router.key)).status, 400);
    const { rows } = await database.pool.query('select enforcement, last_seen_at from router');
    assert.deepEqual(rows, [{ enforcement: null, last_seen_at: null }]);
  });
});

test('with the database away a report is answered 503 and taken once it is back; what was known is still told', async () => {
  const own = await startTestPostgres();
  let replica: Replica | undefined;
  try {
    const database = await own.createDatabase();
    replica = await startReplica(database);
    const { base, agents } = replica;
    const router = await enrolled(database, 'edge1');
    const provider = await seedProvider(database.pool);
    const [old, young] = [await seedRule(database.pool, provider), await seedRule(database.pool, provider)];
    const cursor = (rule: SeededChange) =>
      agents.cursors.write({ xid: Number(rule.change.xid), position: rule.change.position });
    assert.equal((await report(base, router.key, { cursor: cursor(old) })).status, 200);
    process.kill(own.server.pid, 'SIGKILL');
    await waitUntil(async () => {
      const answer = await report(base, router.key, { cursor: cursor(old) });
      if (answer.status === 200) return false;
      assert.equal(answer.status, 503);
      assert.equal(answer.headers.get('retry-after'), '1');
      assert.equal(answer.body.error, 'unavailable');
      return true;
    }, 'a report being refused');
    assert.equal(agents.view.stateOf({ uuid: old.uuid, change: old.change, deleted: false }).state, 'active');
    await waitUntil(
      async () => {
        const { status } = await report(base, router.key, { cursor: cursor(young) });
        assert.ok(status === 200 || status === 503, String(status));
        return status === 200;
      },
      'the report being taken',
      30_000,
    );
    assert.equal(agents.view.stateOf({ uuid: young.uuid, change: young.change, deleted: false }).state, 'active');
  } finally {
    await replica?.stop();
    await own.stop();
  }
});
