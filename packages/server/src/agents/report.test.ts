import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SeededChange, seedProvider, seedRule } from '../store/testing/seed.ts';
import { startTestPostgres } from '../store/testing/test-postgres.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { type Answered, post, report } from './testing/agent-client.ts';
import { enrolled, type Replica, startReplica } from './testing/replica.ts';
import { cursorOf, prepareWorlds, stateOf } from './testing/world.ts';
import { createWireCursors } from './wire-cursor.ts';

const inWorld = prepareWorlds();

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
  await inWorld(async ({ database, provider, one, cursorOf }) => {
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
  await inWorld(async ({ database, provider, one, cursorOf }) => {
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
  await inWorld(async ({ database, provider, one, two, cursorOf }) => {
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
    const probe = { uuid, sent: 1, received: 1, rtt_ms: { min: 1, avg: 1, max: 1 } };
    const cases: [object, string][] = [
      [{ enforcement: { mode: 'loud' } }, '/enforcement/mode'],
      [{ enforcement: null }, '/enforcement'],
      [{ failures: {} }, '/failures'],
      [{ failures: [{ uuid: 'x', reason: '' }] }, '/failures/0/uuid'],
      [{ cursor: 'x' }, '/cursor'],
      [{ cursor: 7 }, '/cursor'],
      [{ resumes: 'x' }, '/resumes'],
      [{ waits_for: 'rules' }, '/waits_for'],
      [{ counters: { run: uuid, number: -1, hits: [] } }, '/counters/number'],
      [{ counters: { run: uuid, number: 1, hits: [{ ...hit, packets: 1.5 }] } }, '/counters/hits/0/packets'],
      [{ counters: { run: uuid, number: 1, hits: [{ ...hit, last_hit_at: 'soon' }] } }, '/counters/hits/0/last_hit_at'],
      [{ probes: {} }, '/probes'],
      [{ probes: [{ ...probe, uuid: 'x' }] }, '/probes/0/uuid'],
      [{ probes: [probe, { ...probe, sent: -1 }] }, '/probes/1/sent'],
      [{ probes: [{ ...probe, received: 1_000_001 }] }, '/probes/0/received'],
      [{ probes: [{ ...probe, rtt_ms: 5 }] }, '/probes/0/rtt_ms'],
      [{ probes: [{ ...probe, rtt_ms: { ...probe.rtt_ms, avg: -1 } }] }, '/probes/0/rtt_ms/avg'],
      [{ probes: [{ ...probe, rtt_ms: { ...probe.rtt_ms, max: '2' } }] }, '/probes/0/rtt_ms/max'],
      [{ probes: [{ ...probe, last_answer_at: 'soon' }] }, '/probes/0/last_answer_at'],
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
    assert.equal((await report(base, router.key, { cursor: cursorOf({ agents }, old) })).status, 200);
    process.kill(own.server.pid, 'SIGKILL');
    await waitUntil(async () => {
      const answer = await report(base, router.key, { cursor: cursorOf({ agents }, old) });
      if (answer.status === 200) return false;
      assert.equal(answer.status, 503);
      assert.equal(answer.headers.get('retry-after'), '1');
      assert.equal(answer.body.error, 'unavailable');
      return true;
    }, 'a report being refused');
    assert.equal(agents.view.stateOf({ uuid: old.uuid, change: old.change, deleted: false }).state, 'active');
    await waitUntil(
      async () => {
        const { status } = await report(base, router.key, { cursor: cursorOf({ agents }, young) });
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
