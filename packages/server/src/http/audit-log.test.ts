import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { waitUntil } from '../store/testing/wait-until.ts';
import { type ApiFixture, type Reply, startApi } from './testing/api-fixture.ts';
import { operationCases } from './testing/operation-cases.ts';
import { buildWorld, type World } from './testing/world.ts';

let api: ApiFixture;
let world: World;

before(async () => {
  api = await startApi();
  world = await buildWorld(api);
});
after(() => api.stop());

interface Entry {
  readonly sequence: number;
  readonly at: string;
  readonly operation: string;
  readonly kind: string;
  readonly object_uuid: string;
  readonly owner_uuid?: string;
  readonly actor?: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the object is.
  readonly before?: any;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the object is.
  readonly after?: any;
}

async function log(key: string, query = ''): Promise<readonly Entry[]> {
  const reply = await api.call('listAudit', {}, { key, query });
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}

/** Values that must be in no entry, from what was sent and what was answered. */
function secretsIn(value: unknown, name = ''): string[] {
  if (typeof value === 'string') {
    // Of an address a token may be the rest.
    if (name === 'url' && URL.canParse(value)) return secretOf(new URL(value));
    return value.length >= 8 && /^(password|secret|key|api_key|enrollment_token)$/.test(name) ? [value] : [];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => secretsIn(each, key));
}

const secretOf = ({ pathname, search }: URL) => [pathname, search.slice(1)].filter((part) => part.length >= 6);

/** It has an event sent, and changes nothing that anyone holds. */
const changesNothing = new Set(['testWebhook']);

test('every operation that changes something leaves an entry with its id and request, and no entry holds a secret', async (context) => {
  const cases = operationCases(api, world);
  const secrets: string[] = [];
  const writing = api.api.operations.filter(({ id, access }) => access === 'write' && !changesNothing.has(id));
  assert.ok(writing.length > 15);
  for (const operation of writing) {
    await context.test(operation.id, async () => {
      const request = await cases[operation.id]?.good();
      assert.ok(request);
      const requestId = `audit-${operation.id}`;
      const headers = { ...request.ask.headers, 'x-request-id': requestId };
      const reply = await api.call(operation.id, request.params, { ...request.ask, headers });
      assert.equal(reply.status, 200, reply.text);
      secrets.push(...secretsIn(request.ask.body), ...secretsIn(reply.body), request.ask.key ?? '');
      const { rows } = await api.database.pool.query(
        'select operation, key_uuid, host(source) as source, actor_uuid, before, after from audit where request_id = $1',
        [requestId],
      );
      assert.ok(rows.length > 0, 'no entry');
      for (const row of rows) {
        assert.equal(row.operation, operation.id);
        assert.equal(row.actor_uuid, request.account);
        assert.ok(row.key_uuid);
        assert.equal(row.source, '127.0.0.1');
      }
    });
  }
  assert.ok(secrets.length > writing.length, 'passwords, keys and tokens were sent and answered');
  const { rows } = await api.database.pool.query('select audit::text as text from audit');
  for (const { text } of rows as { text: string }[]) {
    for (const secret of secrets) assert.ok(!text.includes(secret), text);
    assert.doesNotMatch(text, /\$argon2|lv_[oupr]_|whsec_/);
  }
});

test('what a request that is refused would have done is not in the log', async () => {
  const count = async () => Number((await api.database.pool.query('select count(*) as n from audit')).rows[0].n);
  const before = await count();
  const { user } = world.holders;
  const wrong = { dst: world.addressOf.sibling, protocol: 'udp', action: 'drop' };
  assert.equal((await api.call('createFirewallRule', {}, { key: user.key, body: wrong })).status, 403);
  const headers = { 'idempotency-key': 'refused' };
  assert.equal((await api.call('createFirewallRule', {}, { key: user.key, body: wrong, headers })).status, 403);
  const taken = { username: 'taken', email: user.email, password: 'ochre-meadow-tin-91', ips: [] };
  assert.equal((await api.call('createUser', {}, { key: world.holders.provider.key, body: taken })).status, 409);
  const { uuid } = await world.rule('user');
  await api.call('deleteFirewallRule', { uuid }, { key: user.key });
  await api.call('deleteFirewallRule', { uuid }, { key: user.key });
  assert.equal(await count(), before + 2, 'the creation and one deletion');
});

test('the life of a rule stands in the log as it was before and after each change', async () => {
  const { user } = world.holders;
  const expires_at = '2040-01-31T12:00:00.000Z';
  const { uuid } = await world.rule('user', { descr: 'first', expires_at });
  await api.call('changeFirewallRule', { uuid }, { key: user.key, body: { descr: 'second', expires_at: null } });
  await api.call('deleteFirewallRule', { uuid }, { key: user.key });
  const entries = await log(user.key, `?object_uuid=${uuid}`);
  assert.deepEqual(
    entries.map(({ operation, before, after }) => [operation, before?.descr, after?.descr]),
    [
      ['createFirewallRule', undefined, 'first'],
      ['changeFirewallRule', 'first', 'second'],
      ['deleteFirewallRule', 'second', undefined],
    ],
  );
  assert.deepEqual(
    entries.map(({ before, after }) => [before?.expires_at, after?.expires_at]),
    [
      [undefined, expires_at],
      [expires_at, undefined],
      [undefined, undefined],
    ],
  );
  for (const entry of entries) assert.deepEqual([entry.kind, entry.owner_uuid], ['firewall_rule', user.uuid]);
});

test('a replacement and a confirmation name the rules that they concern', async () => {
  const { sibling } = world.holders;
  const { uuid: former } = await world.rule('sibling');
  const body = { rules: [{ protocol: 'tcp', action: 'accept' }], confirm_within: 60 };
  const query = `?dst=${world.addressOf.sibling}`;
  const replaced = await api.call('replaceFirewallRules', {}, { key: sibling.key, body, query });
  const { change_uuid, rules } = replaced.body;
  assert.equal((await api.call('confirmChange', { change_uuid }, { key: sibling.key })).status, 200);
  const [removed] = (await log(sibling.key, `?object_uuid=${former}&operation=replaceFirewallRules`)) as [Entry];
  assert.deepEqual([removed.before.protocol, removed.after], ['udp', undefined]);
  const [created] = (await log(sibling.key, `?object_uuid=${rules[0].uuid}`)) as [Entry];
  assert.deepEqual([created.before, created.after.change_uuid], [undefined, change_uuid]);
  const [confirmed] = (await log(sibling.key, `?object_uuid=${change_uuid}`)) as [Entry];
  assert.equal(confirmed.kind, 'change');
  assert.deepEqual(confirmed.after.firewall_rules.toSorted(), [former, rules[0].uuid].toSorted());
});

test('a user sees what its provider and the operator did to it, not with which key, from where and in which request', async () => {
  const { user, provider } = world.holders;
  const { uuid } = await world.rule('user');
  await api.call('deleteFirewallRule', { uuid }, { key: provider.key });
  await api.call('setQuota', { account_uuid: user.uuid }, { key: api.operatorKey, body: { tunnels: 99 } });
  const shown = async (key: string) => {
    const [deleted] = (await log(key, `?object_uuid=${uuid}&operation=deleteFirewallRule`)) as [Entry];
    const quotas = await log(key, `?kind=quota&object_uuid=${user.uuid}&order=desc&limit=1`);
    return [deleted, quotas[0] as Entry] as const;
  };
  const [deletedForUser, quotaForUser] = await shown(user.key);
  assert.deepEqual(deletedForUser.actor, { uuid: provider.uuid, role: 'provider' });
  assert.deepEqual(Object.keys(quotaForUser.actor ?? {}), ['uuid', 'role']);
  assert.deepEqual(quotaForUser.after, { tunnels: 99 });
  const [deletedForProvider, quotaForProvider] = await shown(provider.key);
  assert.deepEqual(deletedForProvider.actor?.source, '127.0.0.1');
  assert.deepEqual(Object.keys(quotaForProvider.actor ?? {}), ['uuid', 'role']);
  const [own] = (await log(provider.key, `?object_uuid=${uuid}&operation=createFirewallRule`)) as [Entry];
  assert.equal(own.actor?.source, '127.0.0.1', 'a provider is shown where its users came from');
  for (const entry of await shown(api.operatorKey)) {
    assert.ok(entry.actor?.source && entry.actor.api_key_uuid && entry.actor.request_id);
  }
});

test('nobody sees entries about the objects of others, however they ask', async () => {
  const { user, sibling, provider, stranger, strangerProvider } = world.holders;
  const { uuid } = await world.rule('user');
  for (const key of [sibling.key, stranger.key, strangerProvider.key]) {
    assert.deepEqual(await log(key, `?object_uuid=${uuid}`), []);
    assert.deepEqual(await log(key, `?actor_uuid=${user.uuid}`), []);
  }
  const owners = async (key: string) => new Set((await log(key)).map((entry) => entry.owner_uuid));
  assert.deepEqual(await owners(user.key), new Set([user.uuid]));
  const ofProvider = await owners(provider.key);
  assert.ok(ofProvider.has(user.uuid) && ofProvider.has(provider.uuid) && !ofProvider.has(undefined));
  assert.ok(!ofProvider.has(stranger.uuid) && !ofProvider.has(strangerProvider.uuid));
  const kinds = new Set((await log(api.operatorKey)).map((entry) => entry.kind));
  assert.ok(kinds.has('location') && kinds.has('firewall_rule'), 'the operator sees all');
});

test('the log is listed oldest first or newest first, whole or in pages that join to the whole', async () => {
  const { strangerProvider } = world.holders;
  for (let index = 0; index < 7; index++) await world.rule('strangerProvider');
  for (const order of ['asc', 'desc'] as const) {
    const whole = await log(strangerProvider.key, `?kind=firewall_rule&order=${order}`);
    const sequences = whole.map((entry) => entry.sequence);
    // One after the other, so in the order of their numbers as well.
    const sorted = sequences.toSorted((a, b) => (order === 'asc' ? a - b : b - a));
    assert.deepEqual(sequences, sorted);
    const pages: number[] = [];
    let path: string | undefined = `/v1/audit?kind=firewall_rule&order=${order}&limit=3`;
    while (path !== undefined) {
      const reply: Reply = await api.raw('GET', path, { key: strangerProvider.key });
      assert.ok(reply.body.length <= 3);
      pages.push(...reply.body.map((entry: Entry) => entry.sequence));
      path = /^<([^>]+)>; rel="next"$/.exec(reply.headers.get('link') ?? '')?.[1];
    }
    assert.deepEqual(pages, sequences, order);
  }
});

test('since and until take a stretch of time, with its first moment and without its last', async () => {
  const { stranger } = world.holders;
  for (let made = 0; made < 3; made++) {
    await world.rule('stranger');
    const [entry] = await log(stranger.key, '?order=desc&limit=1');
    await waitUntil(() => Date.now() > new Date(entry?.at ?? '').getTime() + 1, 'the clock to go on');
  }
  const made = await log(stranger.key, '?operation=createFirewallRule');
  const [first, second, third] = made.slice(-3) as [Entry, Entry, Entry];
  const within = await log(stranger.key, `?operation=createFirewallRule&since=${second.at}&until=${third.at}`);
  assert.deepEqual(
    within.map((entry) => entry.sequence),
    [second.sequence],
  );
  const older = await log(stranger.key, `?until=${second.at}&order=desc&limit=1`);
  assert.deepEqual(older[0]?.sequence, first.sequence);
  assert.deepEqual(await log(stranger.key, '?since=2099-01-01T00:00:00Z'), []);
});

test('a long log arrives whole, in either order, over more than one chunk', async () => {
  const provider = await api.provider(['192.0.2.0/24']);
  await api.database.pool.query(
    `insert into audit (operation, kind, object_uuid, owner_uuid, provider_uuid)
      select 'expire', 'filter', gen_random_uuid(), $1, $1 from generate_series(1, 5000)`,
    [provider.uuid],
  );
  for (const order of ['asc', 'desc']) {
    const entries = await log(provider.key, `?kind=filter&order=${order}`);
    assert.equal(new Set(entries.map((entry) => entry.sequence)).size, 5000, order);
  }
});

test('what means nothing in a query is refused with all that is wrong', async () => {
  const query = '?kind=cat&order=up&since=yesterday&object_uuid=x&cursor=%21&limit=0';
  const reply = await api.call('listAudit', {}, { key: world.holders.user.key, query });
  const fields = reply.body.details.map((each: { field: string }) => each.field).sort();
  assert.deepEqual(fields, ['?cursor', '?kind', '?limit', '?object_uuid', '?order', '?since']);
});

test('a clock that was set back hides no entry from a stretch of time', async () => {
  const object = '0190a5d0-0000-7000-8000-00000000c10c';
  for (const at of ['2090-01-01T00:00:00.000Z', '2088-01-01T00:00:00.000Z', '2089-01-01T00:00:00.000Z']) {
    await api.database.pool.query(
      `insert into audit (operation, kind, object_uuid, at, written_at) values ('expire', 'filter', $1, $2, $2)`,
      [object, at],
    );
  }
  const years = async (stretch: string) =>
    (await log(api.operatorKey, `?object_uuid=${object}&${stretch}`)).map(({ at }) => at.slice(0, 4));
  assert.deepEqual(await years('until=2089-06-01T00:00:00Z'), ['2088', '2089']);
  assert.deepEqual(await years('since=2088-06-01T00:00:00Z&order=desc'), ['2089', '2090']);
  assert.deepEqual(await years('since=2088-06-01T00:00:00Z&until=2089-06-01T00:00:00Z'), ['2089']);
});
