import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let user: Holder;

before(async () => {
  api = await startApi();
  user = await api.user(await api.provider(['203.0.113.0/24']), ['203.0.113.0/28']);
});
after(() => api.stop());

async function issue(options: object = {}): Promise<{ uuid: string; key: string }> {
  const reply = await api.call('createApiKey', {}, { key: user.key, body: { name: 'a key', ...options } });
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}
const whoAmI = (key: string, url = api.url): Promise<Reply> => request(url, 'GET', '/v1/whoami', { key });

/** Asks until the answer has the status; fails when the deadline passes first. */
async function until(status: number, ask: () => Promise<Reply>, milliseconds: number): Promise<void> {
  const deadline = Date.now() + milliseconds;
  for (;;) {
    if ((await ask()).status === status) return;
    assert.ok(Date.now() < deadline, `not ${status} within ${milliseconds} ms`);
    await delay(20);
  }
}

test('a key is shown once, stored as a hash, and listed without its text', async () => {
  const { key, uuid } = await issue({
    read_only: true,
    sources: ['127.0.0.0/8', '2001:db8::/32'],
    expires_at: '2099-01-01T00:00:00Z',
  });
  assert.match(key, /^lv_u_[0-9A-Za-z]{22,}_[0-9A-Za-z]+$/);
  const listed = await api.call('listApiKeys', {}, { key: user.key });
  assert.ok(!listed.text.includes(key));
  const mine = listed.body.find((each: { uuid: string }) => each.uuid === uuid);
  assert.deepEqual(
    [mine.read_only, mine.sources, mine.expires_at],
    [true, ['127.0.0.0/8', '2001:db8::/32'], '2099-01-01T00:00:00.000Z'],
  );
  const { rows } = await api.database.pool.query('select row_to_json(k)::text as row from api_key k');
  assert.ok(rows.every(({ row }) => !row.includes(key.slice(5, 30))));
});

test('a revoked key stops at every replica within a second, also where it was in use', async () => {
  const replica = await api.openReplica();
  try {
    const { key, uuid } = await issue();
    assert.equal((await whoAmI(key)).status, 200);
    assert.equal((await whoAmI(key, replica.url)).status, 200);
    const revoked = await api.call('revokeApiKey', { uuid }, { key: user.key });
    assert.equal(revoked.status, 200);
    const since = Date.now();
    assert.equal((await whoAmI(key)).status, 401, 'where it was revoked: at once');
    await until(401, () => whoAmI(key, replica.url), 1000 - (Date.now() - since));
    const again = await api.call('revokeApiKey', { uuid }, { key: user.key });
    assert.equal(again.body.revoked_at, revoked.body.revoked_at);
  } finally {
    await replica.close();
  }
});

test('an expired key is refused from its moment on', async () => {
  const { key } = await issue({ expires_at: new Date(Date.now() + 1500).toISOString() });
  assert.equal((await whoAmI(key)).status, 200);
  await until(401, () => whoAmI(key), 3000);
  const past = await api.call(
    'createApiKey',
    {},
    { key: user.key, body: { name: 'late', expires_at: '2001-01-01T00:00:00Z' } },
  );
  assert.deepEqual([past.status, past.body.field], [400, '/expires_at']);
});

test('a key that is bound to addresses works from them and from nowhere else', async () => {
  const here = await issue({ sources: ['127.0.0.1'] });
  assert.equal((await whoAmI(here.key)).status, 200);
  const elsewhere = await issue({ sources: ['192.0.2.0/24', '2001:db8::/32'] });
  const reply = await whoAmI(elsewhere.key);
  assert.deepEqual([reply.status, reply.body.error], [403, 'source_not_allowed']);
});

test('a limited key makes none that is wider than itself', async () => {
  const ends = new Date(Date.now() + 60_000).toISOString();
  const limited = await issue({ sources: ['127.0.0.0/8', '192.0.2.0/24'], expires_at: ends });
  const make = (options: object) =>
    api.call('createApiKey', {}, { key: limited.key, body: { name: 'from a limited one', ...options } });
  const later = new Date(Date.parse(ends) + 1).toISOString();
  const wider: readonly [object, readonly string[]][] = [
    [{}, ['/expires_at', '/sources']],
    [{ expires_at: ends }, ['/sources']],
    [{ expires_at: later, sources: ['127.0.0.1'] }, ['/expires_at']],
    [{ expires_at: ends, sources: ['127.0.0.1', '192.0.2.0/23', '2001:db8::/32'] }, ['/sources/1', '/sources/2']],
    [{ expires_at: 'never', sources: ['127.0.0.1', 'x'] }, ['/expires_at', '/sources/1']],
  ];
  for (const [options, fields] of wider) {
    const reply = await make(options);
    assert.equal(reply.status, 400, reply.text);
    assert.deepEqual(
      reply.body.details.map((problem: { field: string }) => problem.field),
      fields,
      reply.text,
    );
  }
  assert.match((await make({ expires_at: ends })).body.message, /192\.0\.2\.0\/24/, 'says what is allowed');
  const narrower = await make({ expires_at: ends, sources: ['127.0.0.1', '192.0.2.128/25'] });
  assert.equal(narrower.status, 200, narrower.text);
  const free = await api.call('createApiKey', {}, { key: user.key, body: { name: 'from an unlimited one' } });
  assert.equal(free.status, 200);
});

test('a key that is limited to operations may call those and no other, whatever they do', async () => {
  const operations = ['whoAmI', 'createFirewallRule', 'createApiKey'];
  const limited = await issue({ operations });
  const mine = await whoAmI(limited.key);
  assert.deepEqual([mine.status, mine.body.api_key.operations], [200, operations]);
  const rule = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
  assert.equal((await api.call('createFirewallRule', {}, { key: limited.key, body: rule })).status, 200);
  for (const [id, ask] of [
    ['listFirewallRules', {}],
    ['listApiKeys', {}],
    ['createFilter', { body: {} }],
  ] as const) {
    const reply = await api.call(id, {}, { key: limited.key, ...ask });
    assert.deepEqual([reply.status, reply.body.error], [403, 'operation_not_allowed'], reply.text);
    assert.match(reply.body.message, new RegExp(`whoAmI, createFirewallRule, createApiKey .* is ${id}`));
  }
  const listed = await api.call('listApiKeys', {}, { key: user.key });
  const facts = listed.body.find(({ uuid }: { uuid: string }) => uuid === limited.uuid);
  assert.deepEqual(facts.operations, operations);
  const { rows } = await api.database.pool.query(`select after from audit where object_uuid = $1`, [limited.uuid]);
  assert.deepEqual(rows[0].after.operations, operations);

  const make = (options: object) =>
    api.call('createApiKey', {}, { key: limited.key, body: { name: 'from a limited one', ...options } });
  assert.equal((await make({ operations: ['whoAmI'] })).status, 200);
  for (const [options, faults] of [
    [{}, ['/operations wider_than_own']],
    [{ operations: ['whoAmI', 'listApiKeys'] }, ['/operations/1 wider_than_own']],
    [{ operations: ['listNothing'] }, ['/operations/0 unknown_operation']],
    [{ operations: [] }, ['/operations too_few']],
  ] as const) {
    const reply = await make(options);
    const found = reply.body.details.map(({ field, code }: { field: string; code: string }) => `${field} ${code}`);
    assert.deepEqual([reply.status, found], [400, faults], reply.text);
  }
});

test('a key is not made for operations that its account’s role may not call', async () => {
  const body = { name: 'detector', account_uuid: user.uuid, operations: ['whoAmI', 'recordAttack'] };
  const reply = await api.call('createApiKey', {}, { key: api.operatorKey, body });
  assert.deepEqual([reply.status, reply.body.field, reply.body.details[0].code], [400, '/operations/1', 'not_of_role']);
  assert.match(reply.body.message, /recordAttack is for keys of operator; the key is to be of user/);
});

test('a key of a provider that is limited makes none that is wider for its users either', async () => {
  const provider = await api.provider(['198.51.100.0/24']);
  const its = await api.user(provider, ['198.51.100.0/28']);
  const limited = await api.key(provider.uuid, { sources: ['127.0.0.0/8'] });
  const ask = { key: limited, body: { name: 'for a user', account_uuid: its.uuid } };
  const reply = await api.call('createApiKey', {}, ask);
  assert.deepEqual([reply.status, reply.body.field], [400, '/sources']);
});

test('when a key was last used is written, without a write a request', async () => {
  const { key, uuid } = await issue();
  for (let time = 0; time < 5; time++) await whoAmI(key);
  await api.api.keys.flush();
  const listed = await api.call('listApiKeys', {}, { key: user.key });
  const { last_used_at } = listed.body.find((each: { uuid: string }) => each.uuid === uuid);
  assert.ok(Math.abs(Date.now() - Date.parse(last_used_at)) < 5000);
});

test('the last operator key without restrictions cannot be revoked; with another one it can', async () => {
  const { body: me } = await api.call('whoAmI', {}, { key: api.operatorKey });
  for (const limit of [{ read_only: true }, { operations: ['whoAmI'] }]) {
    const made = await api.call('createApiKey', {}, { key: api.operatorKey, body: { name: 'restricted', ...limit } });
    assert.equal(made.status, 200, made.text);
  }
  const refused = await api.call('revokeApiKey', { uuid: me.api_key.uuid }, { key: api.operatorKey });
  assert.deepEqual([refused.status, refused.body.error], [409, 'conflict']);
  const { body: second } = await api.call('createApiKey', {}, { key: api.operatorKey, body: { name: 'second' } });
  assert.equal((await api.call('revokeApiKey', { uuid: second.uuid }, { key: api.operatorKey })).status, 200);
});
