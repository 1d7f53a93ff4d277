import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ApiFixture, type Holder, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
});
after(() => api.stop());

let made = 0;
const newUser = (more: object = {}) => {
  const username = `person${++made}`;
  return { username, email: `${username}@example.net`, password: 'ochre-meadow-tin-51', ips: [] as string[], ...more };
};
const createUser = (body: object) => api.call('createUser', {}, { key: provider.key, body });

test('a user is answered with canonical subnets, a name, and no trace of its password', async () => {
  const body = newUser({ ips: ['2001:DB8:0::/48', '203.0.113.1', '203.0.113.2/32'] });
  const reply = await createUser(body);
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(reply.body.ips, ['203.0.113.1', '203.0.113.2', '2001:db8::/48']);
  assert.equal(reply.body.name, body.username);
  assert.doesNotMatch(reply.text, /ochre|argon|password/);
  const { rows } = await api.database.pool.query('select password_hash from account where uuid = $1', [
    reply.body.uuid,
  ]);
  assert.match(rows[0].password_hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
});

test('of two that create the same user, email or subnet at once, one wins and the other gets 409', async () => {
  const rivals: [string, () => object][] = [
    ['username', () => newUser({ username: 'rival' })],
    ['email', () => newUser({ email: 'Rival@example.net' })],
    ['subnet', () => newUser({ ips: ['203.0.113.80/29'] })],
    ['overlapping subnets', () => newUser({ ips: [made % 2 === 0 ? '203.0.113.88/29' : '203.0.113.90'] })],
  ];
  for (const [what, body] of rivals) {
    const replies = await Promise.all([createUser(body()), createUser(body())]);
    assert.deepEqual(replies.map((reply) => reply.status).sort(), [200, 409], what);
    const refused = replies.find((reply) => reply.status === 409);
    assert.equal(refused?.body.error, 'conflict');
    assert.match(refused?.body.details[0].code, /already_exists|ip_in_use/);
  }
  const { rows } = await api.database.pool.query(
    `select count(*) as users from account where lower(email) = 'rival@example.net'`,
  );
  assert.equal(rows[0].users, 1);
});

test('a user that is refused leaves nothing behind', async () => {
  const body = newUser({ ips: ['203.0.113.100', '192.0.2.1', '198.51.100.0/24'] });
  const reply = await createUser(body);
  assert.deepEqual([reply.status, reply.body.error], [403, 'ip_not_allowed']);
  assert.deepEqual(
    reply.body.details.map((problem: { field: string }) => problem.field),
    ['/ips/1', '/ips/2'],
  );
  const { rowCount } = await api.database.pool.query('select from account where username = $1', [body.username]);
  assert.equal(rowCount, 0);
  assert.equal((await createUser({ ...body, ips: ['203.0.113.100'] })).status, 200);
});

test('everything that is taken or not allowed is told at once, by its place in the request', async () => {
  const first = newUser({ ips: ['203.0.113.104/30'] });
  assert.equal((await createUser(first)).status, 200);
  const codes = (reply: { body: { details: { field: string; code: string }[] } }) =>
    reply.body.details.map(({ field, code }) => `${field} ${code}`);
  const rival = {
    ...newUser(),
    username: first.username,
    email: first.email.toUpperCase(),
    ips: ['203.0.113.104', '203.0.113.108', '203.0.113.106/31'],
  };
  const reply = await createUser(rival);
  assert.deepEqual([reply.status, reply.body.error], [409, 'conflict'], reply.text);
  const taken = ['/username already_exists', '/email already_exists', '/ips/0 ip_in_use', '/ips/2 ip_in_use'];
  assert.deepEqual(codes(reply), taken);
  const outside = await createUser({ ...rival, ips: [...rival.ips, '192.0.2.1'] });
  assert.deepEqual([outside.status, outside.body.error], [403, 'ip_not_allowed'], outside.text);
  assert.deepEqual(codes(outside), [...taken, '/ips/3 ip_not_allowed']);
  const other = await api.user(provider, ['203.0.113.112']);
  const body = { user_uuid: other.uuid, ips: ['203.0.113.112', '203.0.113.112/31', '203.0.113.104', '203.0.113.105'] };
  const added = await api.call('addUserIps', {}, { key: provider.key, body: { ...body, ips: body.ips.slice(2) } });
  assert.deepEqual([added.status, codes(added)], [409, ['/ips/0 ip_in_use', '/ips/1 ip_in_use']]);
  const wider = await api.call('addUserIps', {}, { key: provider.key, body: { ...body, ips: ['203.0.113.112/31'] } });
  assert.deepEqual([wider.status, codes(wider)], [409, ['/ips/0 ip_in_use']], 'it holds a part of it already');
});

test('weak passwords are refused, by creation and by reset, and are not repeated in the answer', async () => {
  const user = newUser();
  assert.equal((await createUser(user)).status, 200);
  const weak = [
    'tiny-7',
    'passwordpassword',
    '123456789012',
    'aaaaaaaaaaaaaa',
    'Qwertyuiop123',
    'zxcasdqwe123',
    `${user.username}!2024`,
    user.email,
  ];
  for (const password of weak) {
    for (const reply of [
      await createUser({ ...newUser(), username: user.username, email: user.email, password }),
      await api.call('resetUserPassword', {}, { key: provider.key, body: { email: user.email, password: password } }),
    ]) {
      if (password.includes(user.username) && reply.status === 200) continue;
      assert.deepEqual([reply.status, reply.body.field], [400, '/password'], `${password}: ${reply.text}`);
      assert.ok(!reply.text.includes(password), reply.text);
    }
  }
});

test('a reset finds the user by email without case and replaces the hash', async () => {
  const user = newUser();
  const { body } = await createUser(user);
  const hashOf = async () =>
    (await api.database.pool.query('select password_hash from account where uuid = $1', [body.uuid])).rows[0]
      .password_hash;
  const before = await hashOf();
  const reset = { email: user.email.toUpperCase(), password: 'another-long-sentence' };
  const reply = await api.call('resetUserPassword', {}, { key: provider.key, body: reset });
  assert.equal(reply.status, 200, reply.text);
  assert.notEqual(await hashOf(), before);
});

test('subnets in one request may not repeat or overlap each other', async () => {
  const reply = await createUser(newUser({ ips: ['203.0.113.160/28', '203.0.113.161', 'nonsense', '203.0.113.5/24'] }));
  assert.equal(reply.status, 400);
  assert.deepEqual(
    reply.body.details.map((problem: { field: string }) => problem.field),
    ['/ips/1', '/ips/2', '/ips/3'],
  );
});

test('adding what the user has already changes nothing; adding more takes effect at once', async () => {
  const user = await api.user(provider, ['203.0.113.128/30']);
  const body = { user_uuid: user.uuid, ips: ['203.0.113.128/30', '203.0.113.132'] };
  const added = await api.call('addUserIps', {}, { key: provider.key, body });
  assert.deepEqual(added.body.ips, ['203.0.113.128/30', '203.0.113.132']);
  const rule = { dst: '203.0.113.132', protocol: 'udp', action: 'drop' };
  assert.equal((await api.call('createFirewallRule', {}, { key: user.key, body: rule })).status, 200);
});

test('taking addresses away marks the rules they carried, moves the others, and counts', async () => {
  const user = await api.user(provider, ['203.0.113.192/28', '2001:db8:5::/48']);
  const make = async (dst: string) => {
    const reply = await api.call(
      'createFirewallRule',
      {},
      { key: user.key, body: { dst, protocol: 'udp', action: 'drop' } },
    );
    assert.equal(reply.status, 200, reply.text);
    return reply.body.uuid;
  };
  const inside = await make('203.0.113.197');
  const across = await make('203.0.113.192/29');
  const apart = await make('203.0.113.200');
  const other = await make('2001:db8:5::1');
  const body = { user_uuid: user.uuid, ips: ['203.0.113.196/31'] };
  const reply = await api.call('deleteUserIps', {}, { key: provider.key, body });
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(reply.body.removed, { firewall_rules: 2, filters: 0, tunnels: 0, rdns: 0 });
  assert.equal(reply.body.tunnels_changed, 0);
  assert.deepEqual(reply.body.ips, ['203.0.113.192/30', '203.0.113.198/31', '203.0.113.200/29', '2001:db8:5::/48']);
  const { body: rules } = await api.call('listFirewallRules', {}, { key: user.key });
  const states = new Map(rules.map((rule: { uuid: string; state: string }) => [rule.uuid, rule.state]));
  assert.deepEqual(
    [inside, across, apart, other].map((uuid) => states.get(uuid)),
    ['marked_for_deletion', 'marked_for_deletion', 'pending', 'pending'],
  );
  const { rows } = await api.database.pool.query('select subnet::text from firewall_rule where uuid = $1', [apart]);
  assert.equal(rows[0].subnet, '203.0.113.200/29');
  const refused = await api.call(
    'createFirewallRule',
    {},
    {
      key: user.key,
      body: { dst: '203.0.113.197', protocol: 'udp', action: 'drop' },
    },
  );
  assert.equal(refused.status, 403);
  const given = await api.user(provider, ['203.0.113.196/31']);
  assert.ok(given.uuid, 'what was taken is free for another user');
});

test('taking away what the user does not hold is refused and takes nothing', async () => {
  const user = await api.user(provider, ['203.0.113.224/30']);
  const body = { user_uuid: user.uuid, ips: ['203.0.113.224', '203.0.113.240'] };
  const reply = await api.call('deleteUserIps', {}, { key: provider.key, body });
  assert.deepEqual([reply.status, reply.body.field], [400, '/ips/1']);
  const me = await api.call('whoAmI', {}, { key: user.key });
  assert.deepEqual(me.body.account.subnets, ['203.0.113.224/30']);
});

test('a rule created while its subnet is taken away is either marked or refused, never left in force', async () => {
  for (let round = 0; round < 10; round++) {
    const user = await api.user(provider, ['203.0.113.244/30']);
    const rules = Array.from({ length: 6 }, (_, index) =>
      api.call(
        'createFirewallRule',
        {},
        {
          key: user.key,
          body: { dst: `203.0.113.${244 + (index % 4)}`, protocol: 'udp', action: 'drop' },
        },
      ),
    );
    const taking = api.call(
      'deleteUserIps',
      {},
      {
        key: provider.key,
        body: { user_uuid: user.uuid, ips: ['203.0.113.244/30'] },
      },
    );
    const taken = await taking;
    const statuses = (await Promise.all(rules)).map((reply) => reply.status);
    assert.equal(taken.status, 200, taken.text);
    assert.ok(
      statuses.every((status) => status === 200 || status === 403),
      `${statuses}`,
    );
    const { rows } = await api.database.pool.query(
      'select count(*) as left from firewall_rule where owner_uuid = $1 and deletion_marked_at is null',
      [user.uuid],
    );
    assert.equal(rows[0].left, 0);
  }
});

test('a provider is told its name and every prefix that is taken at once', async () => {
  const make = (body: object) => api.call('createProvider', {}, { key: api.operatorKey, body });
  assert.equal((await make({ name: 'east', prefixes: ['198.18.0.0/16'] })).status, 200);
  const reply = await make({ name: 'east', prefixes: ['198.18.5.0/24', '198.20.0.0/16', '203.0.112.0/23'] });
  assert.deepEqual(
    [reply.status, reply.body.details.map(({ field, code }: { field: string; code: string }) => `${field} ${code}`)],
    [409, ['/name already_exists', '/prefixes/0 ip_in_use', '/prefixes/2 ip_in_use']],
  );
});

test('two providers that are created with one prefix at once: one wins', async () => {
  const make = (name: string) =>
    api.call('createProvider', {}, { key: api.operatorKey, body: { name, prefixes: ['192.0.2.0/24'] } });
  const replies = await Promise.all([make('north'), make('south')]);
  assert.deepEqual(replies.map((reply) => reply.status).sort(), [200, 409]);
});
