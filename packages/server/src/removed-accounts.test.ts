import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { forget } from './backends/webhook/forget.ts';
import { type ApiFixture, type Holder, startApi } from './http/testing/api-fixture.ts';
import { propose } from './http/testing/propose.ts';
import { waitUntil } from './store/testing/wait-until.ts';
import { HISTORY_TABLES, KEEPING_TABLES, removeAccounts } from './sweep/removed-accounts.ts';
import { sweepOnce } from './sweep/sweeper.ts';

let api: ApiFixture;
let provider: Holder;
before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24']);
});
after(() => api.stop());

const accounts = async (uuid: string) =>
  (await api.database.pool.query('select from account where uuid = $1', [uuid])).rowCount;
const remove = (uuid: string) => api.call('deleteUser', { uuid }, { key: provider.key });

test("the account goes when the last of its objects is gone, and its attacks and flowrules become the provider's", async () => {
  const user = await api.user(provider, ['203.0.113.0/28']);
  const dst = '203.0.113.7';
  const rule = { dst, protocol: 'udp', action: 'drop' };
  assert.equal((await api.call('createFirewallRule', {}, { key: user.key, body: rule })).status, 200);
  const report = { source: 'elsewhere', external_id: 'one', dst, state: 'started' };
  const attack = (await api.call('recordAttack', {}, { key: api.operatorKey, body: report })).body;
  assert.equal(attack.owner_uuid, user.uuid);
  const flowrule = await propose(api.database.pool, dst, { attackUuid: attack.uuid });
  assert.equal((await remove(user.uuid)).status, 200);

  // What holds the rule: a router that is enrolled and has not acknowledged its removal.
  await api.database.pool.query(`with place as (insert into location (uuid, name) values (gen_random_uuid(), 'x') returning uuid)
    insert into router (uuid, name, location_uuid, key_hash, enrolled_at)
    select gen_random_uuid(), 'edge', uuid, '\\x00', now() from place`);
  await sweepOnce(api.database.pool);
  assert.equal(await accounts(user.uuid), 1);
  const { body: marked } = await api.call('readUser', { uuid: user.uuid }, { key: provider.key });
  assert.equal(marked.state, 'marked_for_deletion', 'as long as its objects name it');
  assert.equal((await remove(user.uuid)).status, 200, 'it is there still');
  await api.database.pool.query('delete from router');
  assert.equal(await sweepOnce(api.database.pool), true, 'the change log has the inheritance');
  assert.equal(await accounts(user.uuid), 0);
  assert.equal((await remove(user.uuid)).status, 404);
  assert.equal((await api.call('readUser', { uuid: user.uuid }, { key: provider.key })).status, 404);

  const [read] = (await api.call('readAttack', { uuid: attack.uuid }, { key: provider.key })).body;
  assert.equal(read.owner_uuid, provider.uuid);
  const [rest] = (await api.call('readFlowrule', { uuid: flowrule.uuid }, { key: provider.key })).body;
  assert.equal(rest.owner_uuid, provider.uuid);
  const { rows } = await api.database.pool.query('select kind from change where object_uuid = any($1)', [
    [attack.uuid, flowrule.uuid],
  ]);
  assert.deepEqual(rows.map(({ kind }) => kind).toSorted(), ['attack', 'attack', 'flowrule', 'flowrule']);
  const keys = await api.database.pool.query('select from api_key where account_uuid = $1', [user.uuid]);
  assert.equal(keys.rowCount, 0);
});

test('an account with nothing left goes at the next sweep, whichever replica does it', async () => {
  const users = await Promise.all(Array.from({ length: 6 }, () => api.user(provider, [])));
  for (const { uuid } of users) assert.equal((await remove(uuid)).status, 200);
  const other = api.postgres.openAgain(api.database);
  await Promise.all([removeAccounts(api.database.pool), removeAccounts(other.pool)]);
  for (const { uuid } of users) assert.equal(await accounts(uuid), 0);
});

test("an account's webhooks are gone to everybody at once, and it goes when their rows have", async () => {
  const user = await api.user(provider, []);
  const body = { url: 'https://hooks.example.net/', events: ['*'] };
  const { uuid } = (await api.call('createWebhook', {}, { key: user.key, body })).body;
  await api.call('testWebhook', { uuid }, { key: user.key });
  assert.equal((await remove(user.uuid)).status, 200);
  await sweepOnce(api.database.pool);
  assert.equal(await accounts(user.uuid), 1);
  await forget(api.database.pool, new AbortController().signal);
  await sweepOnce(api.database.pool);
  assert.equal(await accounts(user.uuid), 0);
});

test('an account that is not marked stays, however empty', async () => {
  const user = await api.user(provider, []);
  await sweepOnce(api.database.pool);
  assert.equal(await accounts(user.uuid), 1);
});

test("everything that refers to an account keeps it, becomes the provider's, or goes with it", async () => {
  const { rows } = await api.database.pool.query(
    `select conrelid::regclass::text as table, confdeltype as on_delete from pg_constraint
      where contype = 'f' and confrelid = 'account'::regclass`,
  );
  const known = new Set<string>([...KEEPING_TABLES, ...HISTORY_TABLES, 'account']);
  const left = rows.filter(({ table, on_delete }) => on_delete !== 'c' && !known.has(table));
  assert.deepEqual(left, []);
});

test('a flowrule that was marked goes when no speaker has it, and stays for the speaker that has', async () => {
  const [shown, announced] = [
    await propose(api.database.pool, '203.0.113.200'),
    await propose(api.database.pool, '203.0.113.200'),
  ];
  const { pool } = api.database;
  await pool.query('update flowrule set applied_position = change_position where uuid = $1', [announced.uuid]);
  await pool.query(`update flowrule set expires_at = now() where uuid = any($1)`, [[shown.uuid, announced.uuid]]);
  const stateOf = async (uuid: string) => {
    const reply = await api.call('readFlowrule', { uuid }, { key: provider.key });
    return reply.status === 200 ? reply.body[0].state : reply.status;
  };
  await waitUntil(async () => {
    await sweepOnce(pool);
    return (await stateOf(shown.uuid)) === 404;
  }, 'the one that nobody has is gone');
  assert.equal(await stateOf(announced.uuid), 'marked_for_deletion');
});
