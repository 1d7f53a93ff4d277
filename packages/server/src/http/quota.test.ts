import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type QuotaKind, quotaKinds } from '@levee/contract/schemas/quota.ts';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;
let other: Holder;

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/28']);
  other = await api.user(provider, ['203.0.113.16/28']);
});
after(() => api.stop());

async function setQuota(holder: Holder, quotas: Partial<Record<QuotaKind, number | null>>): Promise<Reply> {
  const reply = await api.call('setQuota', { account_uuid: holder.uuid }, { key: api.operatorKey, body: quotas });
  assert.equal(reply.status, 200, reply.text);
  return reply;
}

const quotasOf = async (holder: Holder) => (await api.call('whoAmI', {}, { key: holder.key })).body.quotas;
const ruleOf = (holder: Holder) => ({
  dst: holder === user ? '203.0.113.7' : holder === other ? '203.0.113.17' : '203.0.113.200',
  protocol: 'udp',
  action: 'drop',
});
const createRule = (holder: Holder, headers: Record<string, string> = {}) =>
  api.call('createFirewallRule', {}, { key: holder.key, body: ruleOf(holder), headers });

async function forgetRules(): Promise<void> {
  await api.database.pool.query('delete from firewall_rule');
  await api.database.pool.query('delete from quota');
}

test('without a quota nothing is limited and whoami says nothing of one', async () => {
  await forgetRules();
  assert.equal(await quotasOf(user), undefined);
  for (let made = 0; made < 5; made++) assert.equal((await createRule(user)).status, 200);
});

test('creation beyond the quota is refused with the figures, and deletion makes room at once', async () => {
  await forgetRules();
  await setQuota(user, { firewall_rules: 2 });
  const first = await createRule(user);
  assert.equal((await createRule(user)).status, 200);
  const refused = await createRule(user);
  assert.deepEqual([refused.status, refused.body.error], [429, 'quota_exceeded']);
  assert.deepEqual(refused.body.details[0].quota, { kind: 'firewall_rules', maximum: 2, used: 2 });
  assert.equal(refused.headers.get('retry-after'), null, 'waiting does not help');
  assert.deepEqual(await quotasOf(user), { firewall_rules: { used: 2, maximum: 2 } });
  await api.call('deleteFirewallRule', { uuid: first.body.uuid }, { key: user.key });
  assert.deepEqual(await quotasOf(user), { firewall_rules: { used: 1, maximum: 2 } });
  assert.equal((await createRule(user)).status, 200);
});

test("a provider's quota counts its own and all of its users' objects, and a user is not told its figures", async () => {
  await forgetRules();
  await setQuota(provider, { firewall_rules: 3 });
  for (const holder of [provider, user, other]) assert.equal((await createRule(holder)).status, 200);
  const byUser = await createRule(user);
  assert.equal(byUser.body.error, 'quota_exceeded');
  assert.deepEqual(byUser.body.details[0].quota, { kind: 'firewall_rules' });
  assert.doesNotMatch(byUser.text, /\b3\b/);
  const byProvider = await createRule(provider);
  assert.deepEqual(byProvider.body.details[0].quota, { kind: 'firewall_rules', maximum: 3, used: 3 });
  // Both apply: room of its own does not help a user whose provider has none.
  await setQuota(user, { firewall_rules: 10 });
  assert.equal((await createRule(user)).status, 429);
});

test('of many creators at once, on two replicas and in every way, exactly as many succeed as there is room for', async () => {
  await forgetRules();
  await setQuota(provider, { firewall_rules: 20 });
  await setQuota(user, { firewall_rules: 12 });
  const replica = await api.openReplica();
  try {
    const ways = [user, other, provider].flatMap((holder) =>
      Array.from({ length: 24 }, (_, index) => async () => {
        const url = index % 2 === 0 ? api.url : replica.url;
        const headers: Record<string, string> = index % 3 === 0 ? { 'idempotency-key': `at-once-${index}` } : {};
        if (index % 4 !== 1)
          return request(url, 'POST', '/v1/firewall/rule', { key: holder.key, body: ruleOf(holder), headers });
        const body = { rules: [{ protocol: 'tcp', action: 'drop', priority: index + 1 }] };
        const { dst } = ruleOf(holder);
        const free = dst.replace(/\d+$/, (last) => String(Number(last) + (index % 7)));
        return request(url, 'PUT', `/v1/firewall/rules?dst=${free}`, { key: holder.key, body });
      }),
    );
    const replies = await Promise.all(ways.map((send) => send()));
    const statuses = new Set(replies.map((reply) => reply.status));
    assert.deepEqual(statuses, new Set([200, 429]), replies.find((reply) => reply.status > 429)?.text ?? '');
  } finally {
    await replica.close();
  }
  const live = async (condition: string, values: unknown[]) =>
    Number(
      (
        await api.database.pool.query(
          `select count(*) as n from firewall_rule where deletion_marked_at is null and ${condition}`,
          values,
        )
      ).rows[0].n,
    );
  assert.equal(await live('provider_uuid = $1', [provider.uuid]), 20);
  assert.ok((await live('owner_uuid = $1', [user.uuid])) <= 12);
});

test('a replacement may not grow beyond the quota, and may always shrink or keep its size', async () => {
  await forgetRules();
  const query = '?dst=203.0.113.7';
  const put = (count: number, protocol: string) => {
    const rules = Array.from({ length: count }, (_, index) => ({ protocol, action: 'drop', priority: index + 1 }));
    return api.call('replaceFirewallRules', {}, { key: user.key, query, body: { rules } });
  };
  await setQuota(user, { firewall_rules: 4 });
  assert.equal((await put(4, 'udp')).status, 200);
  assert.equal((await put(5, 'udp')).body.error, 'quota_exceeded');
  assert.equal((await put(4, 'tcp')).status, 200, 'all of them replaced');
  await setQuota(user, { firewall_rules: 2 });
  assert.equal((await put(4, 'sctp')).status, 200, 'as many as before');
  assert.equal((await put(3, 'sctp')).status, 200);
  assert.equal((await createRule(user)).body.details[0].quota.used, 3);
});

test('users and keys are counted: keys that are revoked or expired no more', async () => {
  await forgetRules();
  const small = await api.provider(['198.51.100.0/24']);
  await setQuota(small, { users: 1, api_keys: 3 });
  const create = (name: string) => {
    const body = { username: name, email: `${name}@example.net`, password: 'ochre-meadow-tin-95', ips: [] };
    return api.call('createUser', {}, { key: small.key, body });
  };
  const made = await create('only');
  assert.equal(made.status, 200);
  assert.equal((await create('another')).body.error, 'quota_exceeded');
  const key = (account_uuid: string) =>
    api.call('createApiKey', {}, { key: small.key, body: { account_uuid, name: 'counted' } });
  assert.equal((await key(made.body.uuid)).status, 200);
  const third = await key(small.uuid);
  assert.equal(third.status, 200);
  assert.equal((await key(made.body.uuid)).body.error, 'quota_exceeded');
  await api.call('revokeApiKey', { uuid: third.body.uuid }, { key: small.key });
  assert.equal((await key(small.uuid)).status, 200);
  await api.database.pool.query(`update api_key set expires_at = now() where account_uuid = $1 and name = 'counted'`, [
    made.body.uuid,
  ]);
  assert.deepEqual((await quotasOf(small)).api_keys, { used: 2, maximum: 3 });
});

test('every kind can be set, counted and taken away again; what is absent or null is without a quota', async () => {
  const all = Object.fromEntries(quotaKinds.map((kind) => [kind, 7]));
  const { body } = await setQuota(provider, all);
  assert.deepEqual(Object.keys(body.quotas), [...quotaKinds]);
  for (const kind of quotaKinds) assert.equal(body.quotas[kind].maximum, 7);
  const reread = await api.call('readQuota', { account_uuid: provider.uuid }, { key: api.operatorKey });
  assert.deepEqual(reread.body, body);
  const { body: fewer } = await setQuota(provider, { filters: 1, tunnels: null });
  assert.deepEqual(fewer.quotas, { filters: { used: 0, maximum: 1 } });
  assert.deepEqual((await setQuota(provider, {})).body, { account_uuid: provider.uuid, quotas: {} });
});

test('a user has no quota of users, the operator none at all, and what is no number is told', async () => {
  const set = (uuid: string, body: object) =>
    api.call('setQuota', { account_uuid: uuid }, { key: api.operatorKey, body });
  assert.equal((await set(user.uuid, { users: 1 })).body.field, '/users');
  const { body: self } = await api.call('whoAmI', {}, { key: api.operatorKey });
  assert.equal((await set(self.account.uuid, { filters: 1 })).status, 404);
  const wrong = await set(user.uuid, { filters: -1, tunnels: '7', cats: 1, rdns: 1.5 });
  const fields = wrong.body.details.map((each: { field: string }) => each.field).sort();
  assert.deepEqual(fields, ['/cats', '/filters', '/rdns', '/tunnels']);
});
