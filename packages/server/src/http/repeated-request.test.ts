import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { type ApiFixture, type Holder, request, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24']);
  user = await api.user(provider, ['203.0.113.0/28']);
});
after(() => api.stop());

let made = 0;
const headers = () => ({ 'idempotency-key': `request-${++made}` });
const rule = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
const count = async () => (await api.call('listFirewallRules', {}, { key: user.key })).body.length;

test('the same request under the same key is carried out once and answered alike', async () => {
  const before = await count();
  const ask = { key: user.key, body: rule, headers: headers() };
  const first = await api.call('createFirewallRule', {}, ask);
  const again = await api.call(
    'createFirewallRule',
    {},
    { ...ask, body: { action: 'drop', protocol: 'udp', dst: '203.0.113.7' } },
  );
  assert.deepEqual([first.status, again.text], [200, first.text]);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.equal(await count(), before + 1);
});

test('the answer is replayed by another replica, and after a restart', async () => {
  const ask = { key: user.key, body: rule, headers: headers() };
  const first = await api.call('createFirewallRule', {}, ask);
  const replica = await api.openReplica();
  try {
    const again = await request(replica.url, 'POST', '/v1/firewall/rule', ask);
    assert.equal(again.text, first.text);
  } finally {
    await replica.close();
  }
  const restarted = await api.openReplica();
  try {
    assert.equal((await request(restarted.url, 'POST', '/v1/firewall/rule', ask)).text, first.text);
  } finally {
    await restarted.close();
  }
});

test('of many at once under one key, over two replicas, one is carried out and all get its answer', async () => {
  const replica = await api.openReplica();
  try {
    const before = await count();
    const ask = { key: user.key, body: rule, headers: headers() };
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        request(index % 2 === 0 ? api.url : replica.url, 'POST', '/v1/firewall/rule', ask),
      ),
    );
    assert.deepEqual(
      [...new Set(replies.map((reply) => `${reply.status} ${reply.text}`))],
      [`200 ${replies[0]?.text}`],
    );
    assert.equal(await count(), before + 1);
  } finally {
    await replica.close();
  }
});

test('one key with another request is refused and changes nothing', async () => {
  const named = headers();
  await api.call('createFirewallRule', {}, { key: user.key, body: rule, headers: named });
  const before = await count();
  const other = await api.call(
    'createFirewallRule',
    {},
    { key: user.key, body: { ...rule, action: 'accept' }, headers: named },
  );
  assert.deepEqual([other.status, other.body.error], [422, 'idempotency_key_reused']);
  assert.equal(await count(), before);
});

test('a refused request is not kept: the same key can carry the corrected one', async () => {
  const named = headers();
  const wrong = await api.call(
    'createFirewallRule',
    {},
    { key: user.key, body: { ...rule, dst: '192.0.2.1' }, headers: named },
  );
  assert.equal(wrong.status, 403);
  const right = await api.call('createFirewallRule', {}, { key: user.key, body: rule, headers: named });
  assert.equal(right.status, 200);
});

test("another caller's request under the same key is another request", async () => {
  const named = headers();
  const body = { name: 'mine' };
  const first = await api.call('createApiKey', {}, { key: user.key, body, headers: named });
  const second = await api.call('createApiKey', {}, { key: provider.key, body, headers: named });
  assert.deepEqual([first.status, second.status], [200, 200]);
  assert.notEqual(first.body.key, second.body.key);
});

test('a replayed key is the very key, and the database cannot give it away', async () => {
  const ask = { key: user.key, body: { name: 'kept' }, headers: headers() };
  const first = await api.call('createApiKey', {}, ask);
  const again = await api.call('createApiKey', {}, ask);
  assert.equal(again.body.key, first.body.key);
  const { rows } = await api.database.pool.query('select answer from idempotency');
  for (const { answer } of rows as { answer: Buffer }[]) assert.ok(!answer.includes(first.body.key.slice(5, 20)));
});

test('what is kept of a request does not let anyone try passwords against it', async () => {
  const named = headers();
  const body = { email: user.email, password: 'ochre-meadow-tin-71' };
  const marks: string[] = [];
  for (const key of [provider.key, await api.key(provider.uuid)]) {
    const reply = await api.call('resetUserPassword', {}, { key, body, headers: named });
    assert.equal(reply.status, 200, reply.text);
  }
  const { rows } = await api.database.pool.query('select request_hash from idempotency where key = $1', [
    named['idempotency-key'],
  ]);
  for (const { request_hash } of rows as { request_hash: Buffer }[]) marks.push(request_hash.toString('hex'));
  assert.equal(marks.length, 2);
  assert.notEqual(marks[0], marks[1], 'the same request of another key leaves another mark');
  const guess = `POST /v1/user/reset-password\n${JSON.stringify(body)}`;
  assert.ok(!marks.includes(hash('sha256', guess, 'hex')), 'a guess that is right cannot be told from a wrong one');
});

test('after 24 hours the key is free again', async () => {
  const ask = { key: user.key, body: rule, headers: headers() };
  const first = await api.call('createFirewallRule', {}, ask);
  await api.database.pool.query(`update idempotency set created_at = now() - interval '25 hours' where key = $1`, [
    ask.headers['idempotency-key'],
  ]);
  const later = await api.call('createFirewallRule', {}, ask);
  assert.deepEqual([later.status, later.body.uuid === first.body.uuid], [200, false]);
});
