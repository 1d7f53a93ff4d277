import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ChangesSince, changesSince } from '../store/change-log.ts';
import type { Database } from '../store/database.ts';
import { newUuid } from '../store/new-uuid.ts';
import { type StoredReport, saveReports } from '../store/reports.ts';
import { createLocation, createRouter, enrolRouter, removeRouter } from '../store/routers.ts';
import { type SeededProvider, seedDeletion, seedPriority, seedProvider, seedRule } from '../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../store/testing/test-postgres.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import type { UndoEntry } from '../store/undo.ts';
import { removeGone } from './marked-objects.ts';
import { forgetOld, startSweeper, sweepOnce } from './sweeper.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
after(() => postgres?.stop());

async function setUp(): Promise<{ database: Database; provider: SeededProvider }> {
  const database = await postgres.createDatabase();
  return { database, provider: await seedProvider(database.pool) };
}

async function ruleRow(database: Database, uuid: string): Promise<Record<string, unknown> | undefined> {
  const { rows } = await database.pool.query(
    `select (fields->>'priority')::int as priority, deletion_marked_at is not null as deleted, subnet, expires_at,
      change_position, sequence, created_at from firewall_rule where uuid = $1`,
    [uuid],
  );
  return rows[0];
}

async function router(database: Database, name: string): Promise<string> {
  await createLocation(database.pool, name);
  const made = await createRouter(database.pool, { name, location: name, tunnelAddresses: [] });
  assert.ok(made.ok);
  assert.ok((await enrolRouter(database.pool, made.token)).ok);
  return made.router.uuid;
}

async function acknowledge(
  database: Database,
  routerUuid: string,
  change: { xid: string; position: number },
  more: Partial<StoredReport> = {},
) {
  const { rows } = await database.pool.query(`select encode(key_hash, 'hex') as key from router where uuid = $1`, [
    routerUuid,
  ]);
  return saveReports(database.pool, [
    {
      routerUuid,
      keyHash: rows[0].key,
      cursor: { xid: Number(change.xid), position: change.position },
      enforcement: 'kernel',
      enforcementReason: undefined,
      failures: [],
      counters: undefined,
      status: undefined,
      ...more,
    },
  ]);
}

function wholeLog(database: Database): Promise<ChangesSince> {
  return changesSince(database.pool, { xid: 0, position: 0 }, 10_000);
}

test('a deleted rule stays until the last enrolled router has acknowledged its deletion', async () => {
  const { database, provider } = await setUp();
  const [a, b] = [await router(database, 'a'), await router(database, 'b')];
  const made = await seedRule(database.pool, provider);
  const other = await seedRule(database.pool, provider);
  await acknowledge(database, a, other.change);
  await acknowledge(database, b, other.change);
  const { change } = await seedDeletion(database.pool, made.uuid);
  await sweepOnce(database.pool);
  assert.ok(await ruleRow(database, made.uuid));
  await acknowledge(database, a, change);
  await sweepOnce(database.pool);
  assert.ok(await ruleRow(database, made.uuid), 'one router still has it');
  await acknowledge(database, b, change);
  await sweepOnce(database.pool);
  assert.equal(await ruleRow(database, made.uuid), undefined);
  assert.ok(await ruleRow(database, other.uuid), 'a rule that nobody deleted stays');
});

test('a dry router holds a deleted rule back as long as an older table is left in its kernel', async () => {
  const { database, provider } = await setUp();
  const edge = await router(database, 'a');
  const made = await seedRule(database.pool, provider);
  const { change } = await seedDeletion(database.pool, made.uuid);
  const dry = { enforcement: 'dry', enforcementReason: 'not root' } as const;
  await acknowledge(database, edge, change, { ...dry, tableLeft: true });
  await sweepOnce(database.pool);
  assert.ok(await ruleRow(database, made.uuid));
  await acknowledge(database, edge, change, dry);
  await sweepOnce(database.pool);
  assert.equal(await ruleRow(database, made.uuid), undefined);
});

test('a router that never reported holds a deleted rule back, until the router is removed', async () => {
  const { database, provider } = await setUp();
  const silent = await router(database, 'silent');
  const made = await seedRule(database.pool, provider);
  await seedDeletion(database.pool, made.uuid);
  await sweepOnce(database.pool);
  assert.ok(await ruleRow(database, made.uuid));
  await removeRouter(database.pool, silent);
  await sweepOnce(database.pool);
  assert.equal(await ruleRow(database, made.uuid), undefined);
});

test('an expired rule is marked for deletion with an entry in the log, at most a second late', async () => {
  const { database, provider } = await setUp();
  await router(database, 'a');
  let committed = 0;
  const sweeper = startSweeper(database.pool, { committed: () => committed++ });
  try {
    const expiresAt = new Date(Date.now() + 1_500);
    const rule = await seedRule(database.pool, provider, {}, expiresAt);
    const keeps = await seedRule(database.pool, provider, {}, new Date(Date.now() + 3_600_000));
    await waitUntil(async () => (await ruleRow(database, rule.uuid))?.deleted === true, 'the expiry', 6_000);
    const { rows } = await database.pool.query(
      `select (extract(epoch from deletion_marked_at - expires_at) * 1000)::float8 as late from firewall_rule where uuid = $1`,
      [rule.uuid],
    );
    assert.ok(rows[0].late >= -1 && rows[0].late < 1_000, `${rows[0].late} ms late`);
    await waitUntil(() => committed > 0, 'the tail being woken');
    const log = await wholeLog(database);
    assert.equal(log.entries.at(-1)?.objectUuid, rule.uuid);
    assert.ok(log.remove.includes(rule.uuid));
    assert.equal((await ruleRow(database, keeps.uuid))?.deleted, false);
  } finally {
    await sweeper.stop();
  }
});

async function unconfirmed(database: Database, owner: string, undo: readonly UndoEntry[]): Promise<string> {
  const change = newUuid();
  await database.pool.query(
    `insert into confirmation (change_uuid, owner_uuid, deadline, undo) values ($1, $2, now() - interval '1 second', $3)`,
    [change, owner, JSON.stringify(undo)],
  );
  return change;
}

function before_(provider: SeededProvider, sequence: number, priority: number, dst = '198.18.0.1') {
  return {
    owner_uuid: provider.uuid,
    provider_uuid: provider.uuid,
    sequence,
    fields: { dst, protocol: 'udp', action: 'drop', priority, disabled: false },
    expires_at: null,
    created_at: '2026-01-01T00:00:00.000Z',
  };
}

test('an unconfirmed creation, change and deletion are undone, in one transaction', async () => {
  const { database, provider } = await setUp();
  await router(database, 'a');
  const created = await seedRule(database.pool, provider);
  const [first, second] = [await seedRule(database.pool, provider), await seedRule(database.pool, provider)];
  const changed = await seedPriority(database.pool, first.uuid, 5);
  const deleted = await seedDeletion(database.pool, second.uuid);
  const confirmation = await unconfirmed(database, provider.uuid, [
    { uuid: created.uuid, position: created.change.position, before: null },
    { uuid: changed.uuid, position: changed.change.position, before: before_(provider, first.change.position, 1000) },
    { uuid: deleted.uuid, position: deleted.change.position, before: before_(provider, second.change.position, 1000) },
  ]);
  const { cursor } = await wholeLog(database);
  assert.equal(await sweepOnce(database.pool), true);
  assert.equal((await ruleRow(database, created.uuid))?.deleted, true);
  assert.equal((await ruleRow(database, changed.uuid))?.priority, 1000);
  assert.deepEqual(
    [(await ruleRow(database, deleted.uuid))?.deleted, (await ruleRow(database, deleted.uuid))?.subnet],
    [false, provider.prefix],
  );
  const log = await changesSince(database.pool, cursor, 100);
  assert.equal(log.entries.length, 3);
  assert.equal(new Set(log.entries.map((entry) => entry.xid)).size, 1);
  assert.deepEqual(log.remove, [created.uuid]);
  const { rows } = await database.pool.query('select rolled_back_at from confirmation where change_uuid = $1', [
    confirmation,
  ]);
  assert.ok(rows[0].rolled_back_at);
  assert.equal(await sweepOnce(database.pool), false, 'nothing is undone twice');
});

test('a rule that an unconfirmed change deleted is kept to come back, whatever routers let go of', async () => {
  const { database, provider } = await setUp();
  const made = await seedRule(database.pool, provider);
  const deleted = await seedDeletion(database.pool, made.uuid);
  const change = await unconfirmed(database, provider.uuid, [
    { uuid: made.uuid, position: deleted.change.position, before: before_(provider, made.change.position, 77) },
  ]);
  await removeGone(database.pool);
  assert.equal((await ruleRow(database, made.uuid))?.deleted, true);
  await sweepOnce(database.pool);
  const row = await ruleRow(database, made.uuid);
  assert.deepEqual([row?.priority, row?.sequence, row?.deleted], [77, made.change.position, false]);

  const again = await seedDeletion(database.pool, made.uuid);
  await database.pool.query(
    `update confirmation set rolled_back_at = null, undo = json_build_array(json_build_object('uuid', $2::text,
      'position', $3::int8, 'before', undo->0->'before')) where change_uuid = $1`,
    [change, made.uuid, again.change.position - 1],
  );
  await removeGone(database.pool);
  assert.equal(await ruleRow(database, made.uuid), undefined, 'another change deleted it: it goes');
  await sweepOnce(database.pool);
  assert.equal(await ruleRow(database, made.uuid), undefined, 'and does not come back');
});

test('a later change outlives the undoing of an earlier one', async () => {
  const { database, provider } = await setUp();
  const made = await seedRule(database.pool, provider);
  const changed = await seedPriority(database.pool, made.uuid, 5);
  await unconfirmed(database, provider.uuid, [
    { uuid: made.uuid, position: changed.change.position, before: before_(provider, made.change.position, 1000) },
  ]);
  await seedPriority(database.pool, made.uuid, 9);
  await sweepOnce(database.pool);
  assert.equal((await ruleRow(database, made.uuid))?.priority, 9);
});

test('a rule whose addresses its owner lost is not restored, and its unconfirmed form does not stay', async () => {
  const { database, provider } = await setUp();
  await router(database, 'a');
  const moved = await seedRule(database.pool, provider);
  const gone = await seedRule(database.pool, provider);
  const deleted = await seedDeletion(database.pool, gone.uuid);
  await unconfirmed(database, provider.uuid, [
    { uuid: moved.uuid, position: moved.change.position, before: before_(provider, 1, 5, '203.0.113.1') },
    { uuid: gone.uuid, position: deleted.change.position, before: before_(provider, 2, 5, '203.0.113.2') },
  ]);
  await sweepOnce(database.pool);
  assert.equal((await ruleRow(database, moved.uuid))?.deleted, true);
  assert.equal((await ruleRow(database, gone.uuid))?.deleted, true);
});

test('a provider gets no rule back for addresses that a user holds by now', async () => {
  const { database, provider } = await setUp();
  await router(database, 'a');
  const made = await seedRule(database.pool, provider);
  const deleted = await seedDeletion(database.pool, made.uuid);
  const user = newUuid();
  await database.pool.query(
    `with account as (
        insert into account (uuid, role, provider_uuid, name, username, email, password_hash)
        values ($1, 'user', $2, 'u', 'u', 'u@example.net', 'x')
      )
      insert into subnet (account_uuid, subnet, role, provider_uuid, provider_subnet)
      values ($1, '198.18.0.0/24', 'user', $2, $3)`,
    [user, provider.uuid, provider.prefix],
  );
  await unconfirmed(database, provider.uuid, [
    { uuid: made.uuid, position: deleted.change.position, before: before_(provider, made.change.position, 5) },
  ]);
  await sweepOnce(database.pool);
  assert.equal((await ruleRow(database, made.uuid))?.deleted, true);
});

test('three replicas that sweep at once do everything once', async () => {
  const { database, provider } = await setUp();
  await router(database, 'a');
  const past = new Date(Date.now() - 1_000);
  for (let i = 0; i < 60; i++) await seedRule(database.pool, provider, {}, past);
  for (let i = 0; i < 20; i++) {
    const made = await seedRule(database.pool, provider);
    await unconfirmed(database, provider.uuid, [{ uuid: made.uuid, position: made.change.position, before: null }]);
  }
  const { cursor } = await wholeLog(database);
  const replicas = [database, postgres.openAgain(database), postgres.openAgain(database)];
  await Promise.all(replicas.flatMap(({ pool }) => [sweepOnce(pool), sweepOnce(pool)]));
  const log = await changesSince(database.pool, cursor, 10_000);
  assert.equal(log.entries.length, 80);
  assert.equal(new Set(log.entries.map((entry) => entry.objectUuid)).size, 80);
});

test('old answers, acknowledgements and changes are forgotten, young ones and each last one are not', async () => {
  const { database, provider } = await setUp();
  const edge = await router(database, 'a');
  const rules = [];
  for (let i = 0; i < 3; i++) rules.push(await seedRule(database.pool, provider));
  for (const { change } of rules) await acknowledge(database, edge, change);
  await database.pool.query(`update router_ack set at = now() - interval '2 days'`);
  await database.pool.query(`update change set at = now() - interval '2 days'`);
  const young = await seedRule(database.pool, provider);
  const key = newUuid();
  await database.pool.query(
    `with key as (insert into api_key (uuid, account_uuid, hash, name) values ($1, $2, sha256('x'), 'k'))
      insert into idempotency (key_uuid, key, request_hash, answer, created_at)
      values ($1, 'old', 'x', 'x', now() - interval '25 hours'), ($1, 'young', 'x', 'x', now() - interval '23 hours')`,
    [key, provider.uuid],
  );
  await forgetOld(database.pool);
  const { rows } = await database.pool.query(
    `select (select array_agg(position::text) from router_ack) as acks, (select array_agg(key) from idempotency) as keys,
      (select array_agg(object_uuid::text) from change) as changes`,
  );
  assert.deepEqual(rows[0], {
    acks: [String(rules[2]?.change.position)],
    keys: ['young'],
    changes: [young.uuid],
  });
});

test('a sweeper outlives a database that goes away', async () => {
  const { database, provider } = await setUp();
  await router(database, 'a');
  const sweeper = startSweeper(database.pool, { committed: () => {}, longestSleepMilliseconds: 50 });
  try {
    await database.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`);
    const rule = await seedRule(database.pool, provider, {}, new Date());
    await waitUntil(async () => (await ruleRow(database, rule.uuid))?.deleted === true, 'the expiry', 5_000);
  } finally {
    await sweeper.stop();
  }
});
