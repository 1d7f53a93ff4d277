import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ApiFixture, type Ask, type Holder, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/28', '2001:db8:7::/48']);
});
after(() => api.stop());

const minimal = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
const byUser = (ask: Ask = {}): Ask => ({ key: user.key, ...ask });

async function create(body: object, key = user.key) {
  const reply = await api.call('createFirewallRule', {}, { key, body });
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}

async function replace(dst: string, rules: readonly object[]) {
  const reply = await api.call('replaceFirewallRules', {}, byUser({ query: `?dst=${dst}`, body: { rules } }));
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}

test('a created rule is answered as canonicalised, with defaults, and reads back the same', async () => {
  const body = {
    dst: '2001:DB8:7:0:0:0:0:1/128',
    protocol: 'tcp',
    action: 'reject',
    descr: 'a "quoted" word, \u00fc',
    src: { start: '2001:db8:ffff::', end: '2001:db8:ffff::ffff' },
    port: { src: { start: 1024, end: 65535 }, dst: { start: 22 } },
    tcpflags: ['syn', 'ack'],
    ratelimit: 100,
    packetlength: 60,
    packettype: 'host',
    statetype: 'new',
    expires_at: '2099-01-01T00:00:00+01:00',
  };
  const created = await create(body);
  const { uuid, owner_uuid, state, applied, created_at, updated_at, state_reason, ...fields } = created;
  assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  assert.equal(owner_uuid, user.uuid);
  assert.deepEqual([state, applied, updated_at], ['pending', [], created_at]);
  assert.match(state_reason, /router/i);
  assert.deepEqual(fields, {
    ...body,
    dst: '2001:db8:7::1',
    priority: 1000,
    disabled: false,
    expires_at: '2098-12-31T23:00:00.000Z',
    hits: { packets: 0, bytes: 0 },
  });
  const read = await api.call('readFirewallRule', { uuid: uuid.toUpperCase() }, byUser());
  assert.deepEqual(read.body, [created]);
});

test('all problems of a body are told at once, each with its field, and nothing is stored', async () => {
  const before = (await api.call('listFirewallRules', {}, byUser())).body.length;
  const body = {
    dst: '203.0.113.7/24',
    protocol: 'udpx',
    action: 'allow',
    priority: 0,
    ratelimit: '5',
    packettype: 'all',
    colour: 'red',
    expires_at: '2001-01-01T00:00:00Z',
    confirm_within: 5,
  };
  const reply = await api.call('createFirewallRule', {}, byUser({ body }));
  assert.equal(reply.status, 400);
  const fields = reply.body.details.map((problem: { field: string }) => problem.field).sort();
  assert.deepEqual(
    fields,
    Object.keys(body)
      .map((name) => `/${name}`)
      .sort(),
  );
  assert.equal(reply.body.field, reply.body.details[0].field);
  const host = reply.body.details.find((problem: { field: string }) => problem.field === '/dst').message;
  assert.match(host, /203\.0\.113\.7\/24 has host bits set; did you mean 203\.0\.113\.0\/24 or 203\.0\.113\.7\/32\?/);
  assert.equal((await api.call('listFirewallRules', {}, byUser())).body.length, before);
});

test('a body that is no object is refused by every operation that takes one', async () => {
  for (const body of [null, [], 'text', 7, true]) {
    for (const id of ['createFirewallRule', 'explainPacket', 'createApiKey']) {
      const reply = await api.call(id, {}, byUser({ body }));
      assert.deepEqual([reply.status, reply.body.error], [400, 'validation_failed'], `${id} ${JSON.stringify(body)}`);
    }
  }
});

test('a change keeps what it does not name, removes what it nulls, and restores defaults', async () => {
  const { uuid, created_at } = await create({ ...minimal, priority: 5, descr: 'before', port: { dst: { start: 53 } } });
  const reply = await api.call(
    'changeFirewallRule',
    { uuid },
    byUser({ body: { action: 'accept', port: null, priority: null, expires_at: '2099-01-01T00:00:00Z' } }),
  );
  assert.equal(reply.status, 200, reply.text);
  const { action, descr, port, priority, expires_at } = reply.body;
  assert.deepEqual([action, descr, port, priority], ['accept', 'before', undefined, 1000]);
  assert.equal(expires_at, '2099-01-01T00:00:00.000Z');
  assert.equal(reply.body.created_at, created_at);
  const again = await api.call('changeFirewallRule', { uuid }, byUser({ body: { expires_at: null } }));
  assert.equal(again.body.expires_at, undefined);
  const { body } = await api.call('readFirewallRule', { uuid }, byUser());
  assert.deepEqual(body, [again.body]);
});

test('a change is judged against the whole rule that would result', async () => {
  const { uuid } = await create({ ...minimal, port: { dst: { start: 53 } } });
  const reply = await api.call('changeFirewallRule', { uuid }, byUser({ body: { protocol: 'icmp' } }));
  assert.deepEqual([reply.status, reply.body.error, reply.body.field], [400, 'validation_failed', '/port']);
  const empty = await api.call('changeFirewallRule', { uuid }, byUser({ body: {} }));
  assert.equal(empty.status, 400);
});

test('deleting marks, answers so, and is no error the second time', async () => {
  const { uuid } = await create(minimal);
  for (let time = 0; time < 2; time++) {
    const reply = await api.call('deleteFirewallRule', { uuid }, byUser());
    assert.deepEqual([reply.status, reply.body.state], [200, 'marked_for_deletion']);
  }
  const { body } = await api.call('readFirewallRule', { uuid }, byUser());
  assert.equal(body[0].state, 'marked_for_deletion');
  const { rows } = await api.database.pool.query(`select count(*) as entries from change where object_uuid = $1`, [
    uuid,
  ]);
  assert.equal(rows[0].entries, 2);
});

test('replacing a destination keeps what is in both sets and orders the rest as given', async () => {
  const dst = '203.0.113.9';
  const udp = { protocol: 'udp', action: 'drop' };
  const tcp = { protocol: 'tcp', action: 'drop' };
  const esp = { protocol: 'esp', action: 'accept' };
  const elsewhere = await create({ ...minimal, dst: '203.0.113.10' });
  const first = await replace(dst, [udp, tcp]);
  assert.deepEqual([first.created, first.kept, first.removed], [2, 0, 0]);
  const same = await replace(dst, [udp, tcp]);
  assert.deepEqual(
    same.rules.map((rule: { uuid: string }) => rule.uuid),
    first.rules.map((rule: { uuid: string }) => rule.uuid),
  );
  assert.deepEqual([same.created, same.kept, same.removed], [0, 2, 0]);
  // A new rule between two of its priority comes before the second only when that is created anew.
  const between = await replace(dst, [udp, esp, tcp]);
  assert.deepEqual([between.created, between.kept, between.removed], [2, 1, 1]);
  const { body: listed } = await api.call('listFirewallRules', {}, byUser({ query: `?dst=${dst}&state=pending` }));
  assert.deepEqual(
    listed.map((rule: { protocol: string }) => rule.protocol),
    ['udp', 'esp', 'tcp'],
  );
  const none = await replace(dst, []);
  assert.deepEqual([none.created, none.kept, none.removed, none.rules], [0, 0, 3, []]);
  const { body } = await api.call('readFirewallRule', { uuid: elsewhere.uuid }, byUser());
  assert.equal(body[0].state, 'pending');
});

test('replacing is all or nothing: one wrong rule and the set stays', async () => {
  const dst = '203.0.113.11';
  await replace(dst, [{ protocol: 'udp', action: 'drop' }]);
  const rules = [
    { protocol: 'tcp', action: 'drop' },
    { protocol: 'tcp', action: 'drop', dst: '203.0.113.1' },
    { action: 'x' },
  ];
  const reply = await api.call('replaceFirewallRules', {}, byUser({ query: `?dst=${dst}`, body: { rules } }));
  assert.equal(reply.status, 400);
  const fields = reply.body.details.map((problem: { field: string }) => problem.field);
  assert.ok(
    fields.includes('/rules/1/dst') && fields.includes('/rules/2/action') && fields.includes('/rules/2/protocol'),
  );
  const { body } = await api.call('listFirewallRules', {}, byUser({ query: `?dst=${dst}` }));
  assert.deepEqual(
    body.map((rule: { protocol: string; state: string }) => [rule.protocol, rule.state]),
    [['udp', 'pending']],
  );
});

test('two replacements of one destination at once leave exactly one of the two sets', async () => {
  const dst = '203.0.113.12';
  const sets = ['udp', 'tcp', 'sctp', 'esp'].map((protocol) =>
    [1, 2, 3].map((priority) => ({ protocol, action: 'drop', priority })),
  );
  await Promise.all(sets.map((rules) => replace(dst, rules)));
  const { body } = await api.call('listFirewallRules', {}, byUser({ query: `?dst=${dst}&state=pending` }));
  assert.equal(body.length, 3);
  assert.equal(new Set(body.map((rule: { protocol: string }) => rule.protocol)).size, 1);
});

test('a change to be confirmed says until when, keeps how to undo it, and is confirmed once and again', async () => {
  const { uuid } = await create(minimal);
  const changed = await api.call(
    'changeFirewallRule',
    { uuid },
    byUser({ body: { action: 'accept', confirm_within: 60 } }),
  );
  const { change_uuid, confirm_by } = changed.body;
  const seconds = (Date.parse(confirm_by) - Date.now()) / 1000;
  assert.ok(seconds > 50 && seconds < 61, confirm_by);
  const { rows } = await api.database.pool.query(`select undo from confirmation where change_uuid = $1`, [change_uuid]);
  assert.equal(rows[0].undo[0].uuid, uuid);
  assert.equal(rows[0].undo[0].before.fields.action, 'drop');
  const first = await api.call('confirmChange', { change_uuid }, byUser());
  const second = await api.call('confirmChange', { change_uuid }, byUser());
  assert.deepEqual([first.status, second.body], [200, first.body]);
});

test('a list shows only what was asked for and its pages join to the whole', async () => {
  const everyone = await api.user(provider, ['203.0.113.64/27']);
  const made: string[] = [];
  for (let last = 64; last < 74; last++) {
    made.push((await create({ ...minimal, dst: `203.0.113.${last}` }, everyone.key)).uuid);
  }
  const wide = await create({ ...minimal, dst: '203.0.113.64/30' }, everyone.key);
  const ask = (query: string) => api.call('listFirewallRules', {}, { key: everyone.key, query });
  const uuids = (body: { uuid: string }[]) => body.map((rule) => rule.uuid);

  assert.deepEqual(uuids((await ask('')).body), [...made, wide.uuid]);
  assert.deepEqual(uuids((await ask('?dst=203.0.113.64/31')).body), [made[0], made[1], wide.uuid]);
  assert.deepEqual((await ask('?state=active')).body, []);

  const joined: string[] = [];
  let query = '?limit=4';
  for (let pages = 0; pages < 5; pages++) {
    const page = await ask(query);
    joined.push(...uuids(page.body));
    const next = /<[^?>]+(\?[^>]+)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1];
    if (next === undefined) break;
    query = next;
  }
  assert.deepEqual(joined, [...made, wide.uuid]);
});

test("a provider's list holds its own and its users' rules, or one account's", async () => {
  await create({ ...minimal, dst: '203.0.113.250' }, provider.key);
  const all = await api.call('listProviderFirewallRules', {}, { key: provider.key });
  const owners = new Set(all.body.map((rule: { owner_uuid: string }) => rule.owner_uuid));
  assert.ok(owners.has(provider.uuid) && owners.has(user.uuid));
  const query = `?user_uuid=${user.uuid}`;
  const one = await api.call('listProviderFirewallRules', {}, { key: provider.key, query });
  assert.ok(one.body.length > 0 && one.body.every((rule: { owner_uuid: string }) => rule.owner_uuid === user.uuid));
});

test('a query that means nothing is refused, not ignored', async () => {
  for (const query of [
    '?state=on',
    '?limit=0',
    '?limit=1001',
    '?limit=x',
    '?dst=203.0.113.7/24',
    '?cursor=-',
    '?dst=a&dst=b',
    '?page=2',
  ]) {
    const reply = await api.call('listFirewallRules', {}, byUser({ query }));
    assert.deepEqual([reply.status, reply.body.error], [400, 'validation_failed'], query);
    assert.match(reply.body.field, /^\?\w+/);
  }
});

test('a query that an operation does not know is refused by it, and nothing is done', async () => {
  const { uuid } = await create(minimal);
  const asked: readonly [string, Record<string, string>, Ask][] = [
    ['createFirewallRule', {}, { body: minimal }],
    ['changeFirewallRule', { uuid }, { body: { disabled: true } }],
    ['deleteFirewallRule', { uuid }, {}],
    ['readFirewallRule', { uuid }, {}],
    ['whoAmI', {}, {}],
  ];
  for (const [id, params, ask] of asked) {
    const reply = await api.call(id, params, byUser({ ...ask, query: '?dry_run=1' }));
    assert.deepEqual([reply.status, reply.body.field], [400, '?dry_run'], id);
  }
  const { body } = await api.call('readFirewallRule', { uuid }, byUser());
  assert.deepEqual([body[0].state, body[0].disabled], ['pending', false]);
});

test('a long list arrives whole, in order, over more than one chunk', async () => {
  const owner = await api.user(provider, ['203.0.113.96/28']);
  await api.database.pool.query(
    `insert into firewall_rule (uuid, sequence, owner_uuid, provider_uuid, subnet, dst, fields, created_at, updated_at, change_position)
      select gen_random_uuid(), position, $1, $2, '203.0.113.96/28', '203.0.113.97',
        '{"dst":"203.0.113.97","protocol":"udp","action":"drop","priority":1000,"disabled":false}', now(), now(), position
      from (select nextval('change_position') as position from generate_series(1, 5000)) drawn`,
    [owner.uuid, provider.uuid],
  );
  const { body } = await api.call('listFirewallRules', {}, { key: owner.key });
  assert.equal(body.length, 5000);
  assert.equal(new Set(body.map((rule: { uuid: string }) => rule.uuid)).size, 5000);
});

test('a wide rule of another account decides and is not shown', async () => {
  const dst = '203.0.113.14';
  await create({ dst, protocol: 'tcp', action: 'continue', priority: 2 });
  const owner = await api.user(provider, ['203.0.113.112/28']);
  const foreign = await create({ dst: '203.0.113.112', protocol: 'tcp', action: 'drop' }, owner.key);
  const explain = (key: string, address: string) =>
    api.call('explainPacket', {}, { key, body: { dst: address, src: '192.0.2.1', protocol: 'tcp' } });
  const mine = await explain(user.key, dst);
  assert.deepEqual([mine.body.verdict, mine.body.decided_by, mine.body.trail.length], ['accept', 'default', 1]);
  const provided = await explain(provider.key, '203.0.113.112');
  assert.equal(provided.body.decided_by, foreign.uuid);
  // A rule of the provider's own over a grant given later: the user meets it and may not read it.
  const held = await create({ dst: '203.0.113.240', protocol: 'tcp', action: 'drop' }, provider.key);
  const late = await api.user(provider, ['203.0.113.240']);
  const met = await explain(late.key, '203.0.113.240');
  assert.deepEqual([met.body.verdict, met.body.decided_by], ['drop', 'other']);
  assert.doesNotMatch(met.text, new RegExp(held.uuid));
});

test('a provider may not put a rule where any user holds an address, wide or narrow', async () => {
  for (const dst of ['203.0.113.7', '203.0.113.0/24', '203.0.113.0/27']) {
    const reply = await api.call('createFirewallRule', {}, { key: provider.key, body: { ...minimal, dst } });
    assert.deepEqual([reply.status, reply.body.error, reply.body.field], [403, 'ip_not_allowed', '/dst'], dst);
  }
  await create({ ...minimal, dst: '203.0.113.251' }, provider.key);
});

test("a provider's rule over addresses granted later can be changed where it is, and moved only where one could be made", async () => {
  const dst = '203.0.113.248/31';
  const { uuid } = await create({ ...minimal, dst }, provider.key);
  const owner = await api.user(provider, ['203.0.113.248']);
  const change = (body: object) => api.call('changeFirewallRule', { uuid }, { key: provider.key, body });
  const again = await api.call('createFirewallRule', {}, { key: provider.key, body: { ...minimal, dst } });
  assert.deepEqual([again.status, again.body.field], [403, '/dst'], 'no new one there');
  for (const body of [{ action: 'accept' }, { dst }, { dst: '203.0.113.248/31', disabled: true }]) {
    assert.equal((await change(body)).status, 200, JSON.stringify(body));
  }
  for (const to of ['203.0.113.248', '203.0.113.248/30', '203.0.113.7', '198.51.100.1']) {
    const reply = await change({ dst: to });
    assert.deepEqual([reply.status, reply.body.error, reply.body.field], [403, 'ip_not_allowed', '/dst'], to);
  }
  const moved = await change({ dst: '203.0.113.249' });
  assert.deepEqual([moved.status, moved.body.dst], [200, '203.0.113.249']);
  const back = await change({ dst });
  assert.equal(back.status, 403, 'once it has left, the way back is closed');
  assert.ok(owner.uuid);
});

test('rules created at once are each stored once and each answered with its own', async () => {
  const addresses = Array.from({ length: 60 }, (_, index) => `2001:db8:7::${(index + 1).toString(16)}`);
  const foreign = '2001:db8:8::1';
  const replies = await Promise.all(
    [...addresses, foreign].map((dst) => api.call('createFirewallRule', {}, byUser({ body: { ...minimal, dst } }))),
  );
  assert.equal(replies.at(-1)?.status, 403);
  assert.deepEqual(
    replies.slice(0, -1).map((reply) => reply.body.dst),
    addresses,
  );
  assert.equal(new Set(replies.slice(0, -1).map((reply) => reply.body.uuid)).size, addresses.length);
});
