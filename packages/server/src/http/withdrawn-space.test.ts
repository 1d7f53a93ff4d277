import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './testing/api-fixture.ts';
import { propose } from './testing/propose.ts';

let api: ApiFixture;
let provider: Holder;
before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
});
after(() => api.stop());

const endpoint = '198.51.100.250';

/** What creates an object of each kind on a destination of one address. */
const creations = {
  firewall_rules: (dst) => ({ path: '/firewall/rule', body: { dst, protocol: 'udp', action: 'drop' } }),
  filters: (dst) => ({ path: '/filter', body: { dst, filter: 10 } }),
  tunnels: (dst) => ({ path: '/tunnel', body: { ips: [dst], endpoint, type: 'GRE' } }),
  rdns: (dst) => ({ path: '/rdns', body: { ips: dst, record: 'host.example.net' } }),
} satisfies Readonly<Record<string, (dst: string) => { readonly path: string; readonly body: object }>>;
type Kind = keyof typeof creations;
const kinds = Object.keys(creations) as readonly Kind[];

async function create(kind: Kind, dst: string, key: string): Promise<string> {
  const { path, body } = creations[kind](dst);
  const reply = await api.raw('POST', `/v1${path}`, { key, body });
  assert.equal(reply.status, 200, `${kind}: ${reply.text}`);
  return reply.body.uuid;
}

const take = (user: Holder, ips: readonly string[]) =>
  api.call('deleteUserIps', {}, { key: provider.key, body: { user_uuid: user.uuid, ips } });

const tables = { firewall_rules: 'firewall_rule', filters: 'filter', tunnels: 'tunnel', rdns: 'rdns_record' } as const;

/** Of each kind: how many stand. */
async function standing(owner: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [kind, table] of Object.entries(tables)) {
    const text = `select count(*)::int as left from ${table} where owner_uuid = $1 and deletion_marked_at is null`;
    counts[kind] = (await api.database.pool.query(text, [owner])).rows[0].left;
  }
  return counts;
}

const everyKind = (count: number) => Object.fromEntries(kinds.map((kind) => [kind, count]));

test('objects of every kind on what is taken are marked and counted, those beside it stay and hang on what is left', async () => {
  const user = await api.user(provider, ['203.0.113.0/28', '2001:db8:7::/48']);
  for (const kind of kinds) {
    for (const dst of ['203.0.113.4', '203.0.113.9', '2001:db8:7::1']) await create(kind, dst, user.key);
  }
  // Those of the objects; the addresses have entries of their own.
  const entries = `select count(*)::int as entries from change where kind <> 'subnet'`;
  const { rows: before } = await api.database.pool.query(entries);
  const reply = await take(user, ['203.0.113.4/31']);
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(reply.body.removed, everyKind(1));
  assert.equal(reply.body.tunnels_changed, 0);
  assert.deepEqual(await standing(user.uuid), everyKind(2));
  const { rows: after } = await api.database.pool.query(entries);
  assert.equal(after[0].entries - before[0].entries, 4);
  const held = `select (select subnet::text from firewall_rule where owner_uuid = $1 and dst = $2::cidr) as rule,
    (select subnet::text from filter where owner_uuid = $1 and dst = $2::cidr) as filter,
    (select subnet::text from rdns_record where owner_uuid = $1 and address = $2) as rdns,
    (select subnet::text from tunnel_subnet where owner_uuid = $1 and routed = $2::cidr) as tunnel`;
  const { rows } = await api.database.pool.query(held, [user.uuid, '203.0.113.9']);
  assert.deepEqual(rows, [
    { rule: '203.0.113.8/29', filter: '203.0.113.8/29', rdns: '203.0.113.8/29', tunnel: '203.0.113.8/29' },
  ]);

  const other = await api.user(provider, ['203.0.113.4/31']);
  for (const kind of kinds) await create(kind, '203.0.113.4', other.key);
  const rest = await take(user, ['203.0.113.0/28', '2001:db8:7::/48']);
  assert.equal(rest.status, 200, rest.text);
  assert.deepEqual([rest.body.removed, rest.body.ips], [everyKind(2), []]);
  assert.deepEqual(await standing(other.uuid), everyKind(1), "another user's are not touched");
});

test('a tunnel lets go of what was taken and keeps its other subnets; only one with none left is marked', async () => {
  const user = await api.user(provider, ['203.0.113.16/28', '203.0.113.32/28']);
  const make = async (ips: string[]) => {
    const reply = await api.call('createTunnel', {}, { key: user.key, body: { ips, endpoint, type: 'GRE' } });
    assert.equal(reply.status, 200, reply.text);
    return reply.body.uuid as string;
  };
  const partly = await make(['203.0.113.32/30', '203.0.113.16/30', '203.0.113.20']);
  const wholly = await make(['203.0.113.24/30', '203.0.113.28/31']);
  const apart = await make(['203.0.113.36/30']);
  const reply = await take(user, ['203.0.113.16/28']);
  assert.deepEqual([reply.body.removed.tunnels, reply.body.tunnels_changed], [1, 1], reply.text);
  const read = async (uuid: string) => (await api.call('readTunnel', { uuid }, { key: user.key })).body[0];
  assert.deepEqual((await read(partly)).ips, ['203.0.113.32/30']);
  assert.equal((await read(wholly)).state, 'marked_for_deletion');
  assert.deepEqual((await read(apart)).ips, ['203.0.113.36/30']);
  const entries = await api.database.pool.query('select kind from change where object_uuid = any($1)', [
    [partly, wholly, apart],
  ]);
  assert.equal(entries.rowCount, 5, 'three creations, a change and a mark');
  const other = await api.user(provider, ['203.0.113.16/28']);
  await create('tunnels', '203.0.113.24', other.key);
});

test('what was taken with addresses is in the audit log, object by object', async () => {
  const user = await api.user(provider, ['203.0.113.48/30']);
  const uuids: string[] = [];
  for (const kind of kinds) uuids.push(await create(kind, '203.0.113.48', user.key));
  await take(user, ['203.0.113.48']);
  const { rows } = await api.database.pool.query(
    `select object_uuid::text as uuid, kind, before is not null as before, after is null as gone from audit
      where operation = 'deleteUserIps' and owner_uuid = $1 and kind <> 'account'`,
    [user.uuid],
  );
  assert.deepEqual(rows.map(({ uuid }) => uuid).toSorted(), uuids.toSorted());
  assert.ok(rows.every(({ before, gone }) => before && gone));
});

for (const kind of kinds) {
  test(`${kind}: created while its addresses are taken, it is marked or refused, never left standing`, async () => {
    const replica = await api.openReplica();
    const seen = new Set<number>();
    try {
      for (let round = 0; round < 6 || (seen.size < 2 && round < 40); round++) {
        const user = await api.user(provider, ['203.0.113.64/29']);
        const url = (index: number) => (index % 2 === 0 ? api.url : replica.url);
        const creator = (index: number) => {
          const { path, body } = creations[kind](`203.0.113.${64 + index}`);
          return request(url(index), 'POST', `/v1${path}`, { key: user.key, body });
        };
        const body = { user_uuid: user.uuid, ips: ['203.0.113.64/29'] };
        const [first, taken, second] = await Promise.all([
          Promise.all([0, 1, 2].map(creator)),
          request(url(round), 'POST', '/v1/user/delete-ips', { key: provider.key, body }),
          Promise.all([3, 4, 5].map(creator)),
        ]);
        assert.equal(taken.status, 200, taken.text);
        for (const { status, text } of [...first, ...second]) {
          assert.ok(status === 200 || status === 403, `${status}: ${text}`);
          seen.add(status);
        }
        assert.equal((await standing(user.uuid))[kind], 0);
        const { rowCount } = await api.database.pool.query('select from tunnel_subnet where owner_uuid = $1', [
          user.uuid,
        ]);
        assert.equal(rowCount, 0);
      }
    } finally {
      await replica.close();
    }
    assert.deepEqual([...seen].sort(), [200, 403], 'some came first and some came late');
  });
}

test('a tunnel that is changed while its addresses are taken routes none of them afterwards', async () => {
  for (let round = 0; round < 6; round++) {
    const user = await api.user(provider, ['203.0.113.80/29', '203.0.113.88/29']);
    const body = { ips: ['203.0.113.80', '203.0.113.88'], endpoint, type: 'GRE' };
    const made = await api.call('createTunnel', {}, { key: user.key, body });
    assert.equal(made.status, 200, made.text);
    const { uuid } = made.body;
    const change = (more: object) => api.call('changeTunnel', { uuid }, { key: user.key, body: more });
    const changes = [change({ endpoint: '198.51.100.251' }), change({ ips: ['203.0.113.81', '203.0.113.89'] })];
    const taken = await take(user, ['203.0.113.80/29']);
    assert.equal(taken.status, 200, taken.text);
    for (const { status, text } of await Promise.all(changes)) assert.ok([200, 403, 409].includes(status), text);
    const { rows } = await api.database.pool.query(
      `select routed::text, (select fields->>'ips' from tunnel where uuid = tunnel_uuid) as ips
        from tunnel_subnet where tunnel_uuid = $1`,
      [uuid],
    );
    const left = rows.map(({ routed }) => routed.replace('/32', ''));
    assert.ok(
      left.every((each) => ['203.0.113.88', '203.0.113.89'].includes(each)),
      `${left}`,
    );
    for (const { ips } of rows) assert.deepEqual(JSON.parse(ips), left);
    await api.call('deleteUser', { uuid: user.uuid }, { key: provider.key });
  }
});

test('what a provider loses goes with all that is its own there; a user in it keeps it where it is', async () => {
  const { operatorKey, database } = api;
  const owner = await api.provider(['198.51.100.0/24', '198.18.0.0/16']);
  const user = await api.user(owner, ['198.18.4.0/24']);
  for (const kind of kinds) await create(kind, '198.51.100.9', owner.key);
  await create('filters', '198.18.4.9', user.key);
  const inside = await propose(database.pool, '198.51.100.9');
  const beside = await propose(database.pool, '198.18.4.9');
  const change = (body: object): Promise<Reply> =>
    api.call('changeProvider', { uuid: owner.uuid }, { key: operatorKey, body });

  const kept = await change({ remove_prefixes: ['198.51.100.0/24', '198.18.0.0/16'] });
  assert.deepEqual([kept.status, kept.body.field, kept.body.details[0].code], [409, '/remove_prefixes/1', 'ip_in_use']);
  assert.match(kept.body.message, new RegExp(`${user.uuid}\\) holds 198\\.18\\.4\\.0/24`));
  assert.deepEqual(await standing(owner.uuid), everyKind(1), 'nothing was changed');

  const reply = await change({
    remove_prefixes: ['198.51.100.0/24', '198.18.0.0/22'],
    add_prefixes: ['198.19.0.0/16'],
    name: 'East',
  });
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(reply.body.removed, { ...everyKind(1), flowrules: 1 });
  assert.equal(reply.body.name, 'East');
  assert.deepEqual(reply.body.prefixes, [
    '198.18.4.0/22',
    '198.18.8.0/21',
    '198.18.16.0/20',
    '198.18.32.0/19',
    '198.18.64.0/18',
    '198.18.128.0/17',
    '198.19.0.0/16',
  ]);
  const { rows } = await database.pool.query(
    `select (select provider_subnet::text from subnet where account_uuid = $1) as user,
      (select prefix::text from flowrule where uuid = $2) as beside, (select prefix from flowrule where uuid = $3) as inside`,
    [user.uuid, beside.uuid, inside.uuid],
  );
  assert.deepEqual(rows, [{ user: '198.18.4.0/22', beside: '198.18.4.0/22', inside: null }]);
  assert.deepEqual((await standing(user.uuid)).filters, 1);
  const notHeld = await change({ remove_prefixes: ['198.51.100.0/24'] });
  assert.deepEqual([notHeld.status, notHeld.body.field], [400, '/remove_prefixes/0']);
  const other = await api.provider(['198.51.100.0/24']);
  const taken = await change({ add_prefixes: ['198.19.0.0/16', '198.51.100.128/25'], name: 'provider 1' });
  assert.deepEqual(
    [taken.status, taken.body.details.map(({ field }: { field: string }) => field)],
    [409, ['/name', '/add_prefixes/1']],
    taken.text,
  );
  assert.ok(other.uuid);
});

test('a user that is given addresses while their provider loses them gets them or is refused, never outside of it', async () => {
  for (let round = 0; round < 6; round++) {
    const owner = await api.provider(['192.0.2.0/24']);
    const user = await api.user(owner, []);
    const ask = { key: owner.key, body: { user_uuid: user.uuid, ips: ['192.0.2.64/26'] } };
    const removal = { key: api.operatorKey, body: { remove_prefixes: ['192.0.2.0/24'] } };
    const [given, removed] = await Promise.all([
      api.call('addUserIps', {}, ask),
      api.call('changeProvider', { uuid: owner.uuid }, removal),
    ]);
    const outcome = `${given.status} ${removed.status}`;
    assert.ok(['200 409', '403 200'].includes(outcome), `${outcome}: ${given.text} ${removed.text}`);
    await api.call('deleteUser', { uuid: user.uuid }, { key: owner.key });
    if (removed.status === 409) {
      assert.equal((await api.call('changeProvider', { uuid: owner.uuid }, removal)).status, 200);
    }
  }
});
