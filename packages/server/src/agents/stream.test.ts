import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { pruneChanges } from '../store/change-log.ts';
import type { Database } from '../store/database.ts';
import { newUuid } from '../store/new-uuid.ts';
import { ensureLocalRouter, removeRouter } from '../store/routers.ts';
import { seedDeletion, seedPriority, seedProvider, seedRule } from '../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../store/testing/test-postgres.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { openStream } from './testing/agent-client.ts';
import { enrolled, type Replica, startReplica } from './testing/replica.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
after(() => postgres?.stop());

async function withReplica(work: (database: Database, replica: Replica) => Promise<void>): Promise<void> {
  const database = await postgres.createDatabase();
  const replica = await startReplica(database, { heartbeatSeconds: 0.2, stalledMilliseconds: 500 });
  try {
    await work(database, replica);
  } finally {
    await replica.stop();
  }
}

test('a router without a cursor gets the whole state, then every change as it commits', async () => {
  await withReplica(async (database, { base, tail }) => {
    const provider = await seedProvider(database.pool);
    const kept = await seedRule(database.pool, provider, { descr: 'kept "here"', ratelimit: 5 });
    const gone = await seedRule(database.pool, provider);
    await seedDeletion(database.pool, gone.uuid);
    const router = await enrolled(database, 'edge1');
    const stream = await openStream(base, router.key);
    await waitUntil(() => stream.cursor !== undefined, 'the snapshot');
    assert.deepEqual(
      stream.messages.map((message) => message.type),
      ['hello', 'snapshot_begin', 'rules', 'snapshot_end'],
    );
    assert.deepEqual(stream.messages[0], {
      type: 'hello',
      router: { uuid: router.uuid, name: 'edge1', location: 'at-edge1' },
      heartbeat_s: 0.2,
      tells: ['rules', 'filters', 'tunnels'],
    });
    assert.deepEqual(
      [...stream.rules.values()],
      [
        {
          uuid: kept.uuid,
          sequence: kept.change.position,
          dst: '198.18.0.1',
          protocol: 'udp',
          action: 'drop',
          priority: 1000,
          disabled: false,
          ratelimit: 5,
        },
      ],
    );

    const later = await seedRule(database.pool, provider);
    tail.wake();
    await waitUntil(() => stream.rules.has(later.uuid), 'the new rule');
    await seedPriority(database.pool, later.uuid, 7);
    tail.wake();
    await waitUntil(() => stream.rules.get(later.uuid)?.priority === 7, 'the changed rule');
    await seedDeletion(database.pool, kept.uuid);
    tail.wake();
    await waitUntil(() => !stream.rules.has(kept.uuid), 'the rule going');
    await waitUntil(() => stream.heartbeats > 1, 'heartbeats');
    stream.close();
  });
});

test('a snapshot longer than a line comes in lines of at most a thousand rules, in order of creation', async () => {
  await withReplica(async (database, { base }) => {
    const provider = await seedProvider(database.pool);
    await seedRule(database.pool, provider);
    await database.pool.query(
      `insert into firewall_rule (uuid, sequence, owner_uuid, provider_uuid, subnet, dst, fields, created_at, updated_at, change_position)
        select gen_random_uuid(), n, owner_uuid, provider_uuid, subnet, dst, fields, now(), now(), n
        from firewall_rule, lateral (select nextval('change_position') as n from generate_series(1, 2500)) numbers`,
    );
    const { key } = await enrolled(database, 'edge1');
    const stream = await openStream(base, key);
    await waitUntil(() => stream.cursor !== undefined, 'the snapshot');
    const lines = stream.messages.flatMap((message) => (message.type === 'rules' ? [message.rules.length] : []));
    assert.deepEqual(lines, [1000, 1000, 501]);
    const order = [...stream.rules.values()].map((rule) => rule.sequence as number);
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
    );
    stream.close();
  });
});

test('a router that comes back gets what it missed, and nothing else', async () => {
  await withReplica(async (database, { base, tail }) => {
    const provider = await seedProvider(database.pool);
    const old = await seedRule(database.pool, provider);
    const { key } = await enrolled(database, 'edge1');
    const first = await openStream(base, key);
    await waitUntil(() => first.cursor !== undefined, 'the snapshot');
    const cursor = first.cursor as string;
    first.close();
    const missed = await seedRule(database.pool, provider);
    await seedPriority(database.pool, missed.uuid, 3);
    await seedPriority(database.pool, missed.uuid, 4);
    const second = await openStream(base, key, cursor);
    await waitUntil(() => second.rules.has(missed.uuid), 'the missed rule');
    assert.ok(second.messages.every((message) => message.type === 'hello' || message.type === 'changes'));
    assert.equal(second.rules.get(missed.uuid)?.priority, 4);
    assert.equal(second.rules.has(old.uuid), false);
    const live = await seedRule(database.pool, provider);
    tail.wake();
    await waitUntil(() => second.rules.has(live.uuid), 'a change after coming back');
    second.close();
  });
});

test('a cursor that has expired, is foreign or is mangled gets a snapshot', async () => {
  await withReplica(async (database, { base, agents }) => {
    const provider = await seedProvider(database.pool);
    const { key } = await enrolled(database, 'edge1');
    const first = await openStream(base, key);
    await waitUntil(() => first.cursor !== undefined, 'the snapshot');
    const expired = first.cursor as string;
    const rule = await seedRule(database.pool, provider);
    await waitUntil(() => first.rules.has(rule.uuid), 'the rule');
    first.close();
    // That of the provider's prefix, and that of the rule.
    assert.equal(await pruneChanges(database.pool, 0), 2);
    const latest = first.cursor as string;
    // The same place in the log of a database that was replaced or restored.
    const elsewhere = latest.replace(/[^.]+$/, '0123456789');
    const future = agents.cursors.write({ xid: 35_184_372_088_832, position: 1 });
    for (const cursor of [expired, elsewhere, future, '35184372088832.1', 'x', '1', '99999999999999999999.0']) {
      const stream = await openStream(base, key, cursor);
      await waitUntil(() => stream.cursor !== undefined, `an answer to ${cursor}`);
      assert.ok(
        stream.messages.some((message) => message.type === 'snapshot_end'),
        `${cursor}: no snapshot`,
      );
      assert.equal(stream.rules.has(rule.uuid), true);
      stream.close();
    }
  });
});

test('no key, a key of another role and an unknown key open nothing', async () => {
  await withReplica(async (database, { base }) => {
    const { key } = await enrolled(database, 'edge1');
    for (const wrong of ['', 'x', key.replace('lv_r_', 'lv_o_'), `${key}0`]) {
      const stream = await openStream(base, wrong);
      assert.equal(stream.status, 401);
      stream.close();
    }
  });
});

test('the stream of a router that was removed, or whose key was replaced, ends', async () => {
  await withReplica(async (database, { base, agents }) => {
    const gone = await enrolled(database, 'gone');
    const own = { uuid: newUuid(), hostName: 'here' };
    const local = await ensureLocalRouter(database.pool, own);
    const streams = await Promise.all([gone.key, local.key].map((key) => openStream(base, key)));
    await waitUntil(() => streams.every((stream) => stream.heartbeats > 0), 'both streams');
    await removeRouter(database.pool, gone.uuid);
    await ensureLocalRouter(database.pool, own);
    await agents.registry.refresh();
    await waitUntil(() => streams.every((stream) => stream.closed), 'their end', 2_000);
  });
});

test('a router that does not read is dropped, the others are not held up, and it resumes by its cursor', async () => {
  await withReplica(async (database, { base, tail, agents }) => {
    const provider = await seedProvider(database.pool);
    const slow = await enrolled(database, 'slow');
    const quick = await enrolled(database, 'quick');
    const slowStream = await openStream(base, slow.key);
    const quickStream = await openStream(base, quick.key);
    await waitUntil(() => slowStream.cursor !== undefined && quickStream.cursor !== undefined, 'both snapshots');
    await waitUntil(() => agents.hub.streams === 2, 'both streams');
    const cursor = slowStream.cursor as string;
    slowStream.pause();
    let last = '';
    const filler = 'x'.repeat(200_000);
    for (let i = 0; i < 200 && agents.hub.streams === 2; i++) {
      last = (await seedRule(database.pool, provider, { src: filler })).uuid;
      tail.wake();
      await waitUntil(() => quickStream.rules.has(last), 'the change at the router that reads');
    }
    await waitUntil(() => agents.hub.streams === 1, 'the slow one being dropped');
    const again = await openStream(base, slow.key, cursor);
    await waitUntil(() => again.rules.has(last), 'everything after coming back');
    assert.equal(again.rules.size, quickStream.rules.size);
    for (const stream of [slowStream, quickStream, again]) stream.close();
  });
});

test('streams outlive a database that goes away, and go on by themselves', async () => {
  const own = await startTestPostgres();
  let replica: Replica | undefined;
  try {
    const database = await own.createDatabase();
    replica = await startReplica(database, { heartbeatSeconds: 0.2 });
    const provider = await seedProvider(database.pool);
    const { key } = await enrolled(database, 'edge1');
    const stream = await openStream(replica.base, key);
    await waitUntil(() => stream.cursor !== undefined, 'the snapshot');
    process.kill(own.server.pid, 'SIGKILL');
    await waitUntil(() => own.server.restarts === 1, 'the database starting again');
    let made: string | undefined;
    await waitUntil(
      () =>
        seedRule(database.pool, provider).then(
          (rule) => {
            made = rule.uuid;
            return true;
          },
          () => false,
        ),
      'a write',
      20_000,
    );
    await waitUntil(() => made !== undefined && stream.rules.has(made), 'the change after the outage');
    assert.equal(stream.closed, false);
    stream.close();
  } finally {
    await replica?.stop();
    await own.stop();
  }
});
