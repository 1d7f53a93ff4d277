import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { waitUntil } from '../store/testing/wait-until.ts';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './testing/api-fixture.ts';
import { ensureTestRouter } from './testing/tunnel-world.ts';

let api: ApiFixture;
let provider: Holder;
before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
});
after(() => api.stop());

let made = 0;
const newUser = (more: object = {}) => {
  const username = `someone${++made}`;
  return { username, email: `${username}@example.net`, password: 'ochre-meadow-tin-71', ips: [] as string[], ...more };
};
const create = (body: object): Promise<Reply> => api.call('createUser', {}, { key: provider.key, body });
const list = (query: string, key = provider.key): Promise<Reply> => api.call('listUsers', {}, { key, query });
const names = (reply: Reply): string[] => reply.body.map(({ username }: { username: string }) => username);

test('a user made with exactly the four fields that the given page requires is complete', async () => {
  const { username, email, password, ips } = newUser({ ips: ['203.0.113.1'] });
  const reply = await create({ username, email, password, ips });
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual([reply.body.name, reply.body.username, reply.body.ips], [username, username, ['203.0.113.1']]);
  const read = await api.call('readUser', { uuid: reply.body.uuid }, { key: provider.key });
  assert.deepEqual(read.body, reply.body, 'a read answers what the creation did');
});

test('users are listed in the order of their creation, found by name, by address and by what they hold, and paged', async () => {
  const owner = await api.provider(['198.51.100.0/24']);
  const ask = { key: owner.key };
  const users = ['zoe', 'adam', 'mia'].map((username, index) => ({
    ...newUser({ ips: [`198.51.100.${16 * index}/28`] }),
    username,
    email: `${username}.x@Example.net`,
  }));
  for (const body of users) assert.equal((await api.call('createUser', {}, { ...ask, body })).status, 200);
  const by = async (query: string) => names(await list(query, owner.key));
  assert.deepEqual(await by(''), ['zoe', 'adam', 'mia']);
  assert.deepEqual(await by('?username=adam'), ['adam']);
  assert.deepEqual(await by('?email=ADAM.X@example.net'), ['adam']);
  assert.deepEqual(await by('?email=adam.x@example.net&username=zoe'), []);
  assert.deepEqual(await by('?username=ada'), []);
  assert.deepEqual(await by('?dst=198.51.100.20'), ['adam']);
  assert.deepEqual(await by('?dst=198.51.100.16/29'), ['adam']);
  assert.deepEqual(await by('?dst=198.51.100.0/27'), ['zoe', 'adam']);
  assert.deepEqual(await by('?dst=198.51.100.20&username=mia'), []);
  const first = await list('?limit=2', owner.key);
  assert.deepEqual(names(first), ['zoe', 'adam']);
  const next = /<[^>?]+\?([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1];
  const second = await list(`?${next}`, owner.key);
  assert.deepEqual([names(second), second.headers.get('link')], [['mia'], null]);
});

test('a deleted user is gone at once: keys, names, addresses and objects, on every replica', async () => {
  const replica = await api.openReplica();
  try {
    const body = newUser({ ips: ['203.0.113.16/28', '2001:db8:7::/48'] });
    const user = (await create(body)).body;
    const keys = [await api.key(user.uuid), await api.key(user.uuid)];
    const rule = { dst: '203.0.113.17', protocol: 'udp', action: 'drop' };
    for (const key of keys) {
      assert.equal((await api.call('createFirewallRule', {}, { key, body: rule })).status, 200);
      assert.equal((await request(replica.url, 'GET', '/v1/whoami', { key })).status, 200);
    }
    const filter = { dst: '203.0.113.18', filter: 10 };
    assert.equal((await api.call('createFilter', {}, { key: keys[0], body: filter })).status, 200);

    const deleted = await api.call('deleteUser', { uuid: user.uuid }, { key: provider.key });
    const gone = Date.now();
    assert.equal(deleted.status, 200, deleted.text);
    assert.deepEqual(
      [deleted.body.state, deleted.body.removed],
      ['marked_for_deletion', { firewall_rules: 2, filters: 1, tunnels: 0, rdns: 0 }],
    );
    for (const key of keys) assert.equal((await api.call('whoAmI', {}, { key })).status, 401);
    const void_ = async () => {
      const replies = await Promise.all(keys.map((key) => request(replica.url, 'GET', '/v1/whoami', { key })));
      return replies.every(({ status }) => status === 401);
    };
    await waitUntil(void_, 'the keys are void at the other replica');
    assert.ok(Date.now() - gone < 1_000, `${Date.now() - gone} ms`);

    const { body: marked } = await api.call('readUser', { uuid: user.uuid }, { key: provider.key });
    assert.deepEqual([marked.uuid, marked.state, marked.ips], [user.uuid, 'marked_for_deletion', []]);
    const listedAs = async (query: string) =>
      (await list(query)).body.some((each: { uuid: string }) => each.uuid === user.uuid);
    assert.ok(await listedAs(''));
    assert.ok(await listedAs('?state=marked_for_deletion'));
    assert.ok(!(await listedAs('?state=active')));
    assert.deepEqual(names(await list(`?username=${body.username}`)), [], 'the name is free');
    const again = await api.call('deleteUser', { uuid: user.uuid }, { key: provider.key });
    assert.deepEqual(
      [again.status, again.body.removed],
      [200, { firewall_rules: 0, filters: 0, tunnels: 0, rdns: 0 }],
      again.text,
    );
    const rules = await api.call(
      'listProviderFirewallRules',
      {},
      { key: provider.key, query: `?user_uuid=${user.uuid}` },
    );
    assert.deepEqual(
      rules.body.map(({ state }: { state: string }) => state),
      ['marked_for_deletion', 'marked_for_deletion'],
    );
    const heir = await create({ ...body, password: 'vermilion-lantern-72-quay' });
    assert.equal(heir.status, 200, heir.text);
    assert.deepEqual(heir.body.ips, ['203.0.113.16/28', '2001:db8:7::/48']);
    const reset = { email: body.email, password: 'vermilion-lantern-73-quay' };
    assert.equal((await api.call('resetUserPassword', {}, { key: provider.key, body: reset })).status, 200);
    for (const id of ['addUserIps', 'deleteUserIps']) {
      const ips = { user_uuid: user.uuid, ips: ['203.0.113.99'] };
      assert.equal((await api.call(id, {}, { key: provider.key, body: ips })).status, 404);
    }
    assert.equal(
      (await api.call('createApiKey', {}, { key: api.operatorKey, body: { account_uuid: user.uuid, name: 'x' } }))
        .status,
      404,
    );
  } finally {
    await replica.close();
  }
});

test('of two that create the same user or give the same subnet at once over two replicas one wins and the other gets 409', async () => {
  const replica = await api.openReplica();
  try {
    const rivals: [string, () => object][] = [
      ['username', () => newUser({ username: `rival${made}`.replace(/\d+$/, 'x') })],
      ['email', () => newUser({ email: 'Rival.Two@example.net' })],
      ['subnet', () => newUser({ ips: ['203.0.113.160/29'] })],
    ];
    for (const [what, body] of rivals) {
      const both = [body(), body()];
      const replies = await Promise.all(
        [api.url, replica.url].map((url, index) =>
          request(url, 'POST', '/v1/user', { key: provider.key, body: both[index] }),
        ),
      );
      assert.deepEqual(
        replies.map(({ status }) => status).sort(),
        [200, 409],
        `${what}: ${replies.map(({ text }) => text)}`,
      );
    }
    const holders = [await api.user(provider, []), await api.user(provider, [])];
    const given = await Promise.all(
      [api.url, replica.url].map((url, index) => {
        const body = { user_uuid: holders[index]?.uuid, ips: [index === 0 ? '203.0.113.176/29' : '203.0.113.177'] };
        return request(url, 'POST', '/v1/user/add-ips', { key: provider.key, body });
      }),
    );
    assert.deepEqual(given.map(({ status }) => status).sort(), [200, 409]);
  } finally {
    await replica.close();
  }
});

test('of many that delete one user at once each is answered, and its objects are removed once', async () => {
  const user = await api.user(provider, ['203.0.113.200/29']);
  const rule = { dst: '203.0.113.201', protocol: 'udp', action: 'drop' };
  for (let count = 0; count < 3; count++) await api.call('createFirewallRule', {}, { key: user.key, body: rule });
  const replies = await Promise.all(
    Array.from({ length: 5 }, () => api.call('deleteUser', { uuid: user.uuid }, { key: provider.key })),
  );
  assert.ok(replies.every(({ status }) => status === 200));
  assert.deepEqual(replies.map(({ body }) => body.removed.firewall_rules).sort(), [0, 0, 0, 0, 3]);
  const { rows } = await api.database.pool.query(
    `select kind, count(*)::int as entries from audit where operation = 'deleteUser' and owner_uuid = $1 group by kind`,
    [user.uuid],
  );
  assert.deepEqual(Object.fromEntries(rows.map(({ kind, entries }) => [kind, entries])), {
    account: 1,
    api_key: 1,
    firewall_rule: 3,
  });
});

test('a provider that gives addresses away is told what of its own is on them', async () => {
  await api.call('createLocation', {}, { key: api.operatorKey, body: { name: 'fra1' } });
  await ensureTestRouter(api);
  const owner = await api.provider(['198.18.5.0/24', '3fff:5::/48']);
  const ask = { key: owner.key };
  const make = async (id: string, body: object) => {
    const reply = await api.call(id, {}, { ...ask, body });
    assert.equal(reply.status, 200, reply.text);
    return reply.body.uuid as string;
  };
  const rules = [];
  for (const dst of ['198.18.5.0/24', '198.18.5.7', '198.18.5.9']) {
    rules.push(await make('createFirewallRule', { dst, protocol: 'udp', action: 'drop' }));
  }
  const tunnel = await make('createTunnel', { ips: ['198.18.5.0/28'], endpoint: '192.0.2.77', type: 'GRE' });
  await make('createRdns', { ips: '198.18.5.7', record: 'host.example.net' });

  const user = { ...newUser({ ips: ['198.18.5.4/30', '198.18.5.8'] }) };
  const created = await api.call('createUser', {}, { ...ask, body: user });
  assert.equal(created.status, 200, created.text);
  const told = created.body.warnings.map(({ kind, count }: { kind: string; count: number }) => `${kind} ${count}`);
  assert.deepEqual(told, ['firewall_rule 2', 'tunnel 1', 'rdns 1']);
  assert.deepEqual(created.body.warnings[0].uuids, rules.slice(0, 2));
  assert.deepEqual(created.body.warnings[1].uuids, [tunnel]);

  const key = await api.key(created.body.uuid);
  const own = { ips: ['198.18.5.4/30'], endpoint: '192.0.2.78', type: 'GRE' };
  const refused = await api.call('createTunnel', {}, { key, body: own });
  assert.deepEqual([refused.status, refused.body.details[0].code], [409, 'subnet_already_routed']);
  assert.match(refused.body.message, /a tunnel of the provider's own .* the provider must delete or change/);
  assert.ok(!refused.text.includes(tunnel), 'which one is not the user’s to know');

  assert.equal((await api.call('deleteTunnel', { uuid: tunnel }, ask)).status, 200);
  const first = await api.call('createTunnel', {}, { key, body: own });
  assert.equal(first.status, 200, first.text);
  const again = await api.call('createTunnel', {}, { key, body: { ...own, ips: ['198.18.5.4'] } });
  assert.match(again.body.message, new RegExp(`${first.body.uuid} routes already: delete or change that tunnel first`));

  const add = (ips: string[]) => api.call('addUserIps', {}, { ...ask, body: { user_uuid: created.body.uuid, ips } });
  const added = await add(['198.18.5.9']);
  assert.deepEqual(
    added.body.warnings.map(({ uuids }: { uuids: string[] }) => uuids),
    [[rules[0], rules[2]]],
  );
  assert.equal((await add(['3fff:5:1::/64'])).body.warnings, undefined);
});
