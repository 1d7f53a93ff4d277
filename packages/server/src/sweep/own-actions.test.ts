import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Database } from '../store/database.ts';
import { newUuid } from '../store/new-uuid.ts';
import { createLocation, createRouter, enrolRouter, ensureLocalRouter } from '../store/routers.ts';
import { type SeededProvider, seedDeletion, seedPriority, seedProvider, seedRule } from '../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../store/testing/test-postgres.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { pruneAudit } from './audit-retention.ts';
import { startSweeper, sweepOnce } from './sweeper.ts';

let postgres: TestPostgres;
let database: Database;
let provider: SeededProvider;
before(async () => {
  postgres = await startTestPostgres();
  database = await postgres.createDatabase();
  provider = await seedProvider(database.pool);
});
after(() => postgres?.stop());

async function entriesOf(uuid: string) {
  const { rows } = await database.pool.query(
    `select operation, kind, actor_uuid, owner_uuid, before->>'priority' as before, after->>'priority' as after,
      before->>'expires_at' as expires_at from audit where object_uuid = $1 order by sequence`,
    [uuid],
  );
  return rows;
}

test('an expiry is in the log as the service’s own, with what expired', async () => {
  const past = new Date(Date.now() - 1000);
  const { uuid } = await seedRule(database.pool, provider, { priority: 7 }, past);
  await sweepOnce(database.pool);
  await sweepOnce(database.pool);
  assert.deepEqual(await entriesOf(uuid), [
    {
      operation: 'expire',
      kind: 'firewall_rule',
      actor_uuid: null,
      owner_uuid: provider.uuid,
      before: '7',
      after: null,
      expires_at: past.toISOString(),
    },
  ]);
});

test('what undoing an unconfirmed change did is in the log, rule by rule', async () => {
  const kept = { protocol: 'udp', action: 'drop', dst: '198.18.0.1', disabled: false, priority: 5 };
  const created = await seedRule(database.pool, provider, { priority: 1 });
  const changed = await seedRule(database.pool, provider, { priority: 5 });
  const deleted = await seedRule(database.pool, provider, { priority: 5 });
  const change = await seedPriority(database.pool, changed.uuid, 6);
  const deletion = await seedDeletion(database.pool, deleted.uuid);
  const stored = { owner_uuid: provider.uuid, provider_uuid: provider.uuid, sequence: 1, fields: kept };
  const before = { ...stored, expires_at: null, created_at: new Date().toISOString() };
  const undo = [
    { uuid: created.uuid, position: created.change.position, before: null },
    { uuid: changed.uuid, position: change.change.position, before },
    { uuid: deleted.uuid, position: deletion.change.position, before },
  ];
  await database.pool.query(
    `insert into confirmation (change_uuid, owner_uuid, deadline, undo) values ($1, $2, now(), $3)`,
    [newUuid(), provider.uuid, JSON.stringify(undo)],
  );
  await sweepOnce(database.pool);
  const told = async (uuid: string) =>
    (await entriesOf(uuid)).map(({ operation, before: was, after: is }) => [operation, was, is]);
  assert.deepEqual(await told(created.uuid), [['undo', '1', null]]);
  assert.deepEqual(await told(changed.uuid), [['undo', '6', '5']]);
  assert.deepEqual(await told(deleted.uuid), [['undo', null, '5']]);
});

test('a router’s enrolment is in the log, by token and on this machine, without its key', async () => {
  await createLocation(database.pool, 'fra1');
  const made = await createRouter(database.pool, { name: 'edge1', location: 'fra1', tunnelAddresses: [] });
  assert.ok(made.ok);
  const enrolled = await enrolRouter(database.pool, made.token);
  assert.ok(enrolled.ok);
  const local = await ensureLocalRouter(database.pool, { uuid: newUuid(), hostName: 'here' });
  for (const [uuid, key] of [
    [made.router.uuid, enrolled.key],
    [local.routerUuid, local.key],
  ] as const) {
    const { rows } = await database.pool.query(
      'select audit::text as text, operation from audit where object_uuid = $1',
      [uuid],
    );
    assert.deepEqual([rows.length, rows[0].operation], [1, 'enrol']);
    assert.ok(!rows[0].text.includes(key) && !rows[0].text.includes(made.token));
  }
});

test('entries older than the installation keeps them go, also many, and younger ones stay', async () => {
  await database.pool.query(
    `insert into audit (operation, kind, object_uuid, written_at)
      select 'expire', 'filter', gen_random_uuid(), now() - make_interval(days => 10 + n % 2) from generate_series(1, 12002) n`,
  );
  assert.equal(await pruneAudit(database.pool, 11), 6001);
  assert.equal(await pruneAudit(database.pool, 11), 0);
  const { rows } = await database.pool.query(`select count(*)::int as n from audit where kind = 'filter'`);
  assert.equal(rows[0].n, 6001);
});

test('the sweeper forgets as it was told, and nothing when it was told nothing', async () => {
  const old = async () =>
    (await database.pool.query(`select from audit where written_at < now() - interval '9 days'`)).rows.length;
  const begun = await old();
  assert.ok(begun > 0);
  let sweeps = 0;
  const committed = () => {};
  const watched = new Proxy(database.pool, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (name === 'query') sweeps++;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const keeping = startSweeper(watched, { committed, longestSleepMilliseconds: 10, forgetEveryMilliseconds: 0 });
  await waitUntil(() => sweeps > 50, 'some sweeps').finally(() => keeping.stop());
  assert.equal(await old(), begun);
  const forgetting = startSweeper(database.pool, { committed, auditKeepDays: 9 });
  await waitUntil(async () => (await old()) === 0, 'the old entries to go').finally(() => forgetting.stop());
});
