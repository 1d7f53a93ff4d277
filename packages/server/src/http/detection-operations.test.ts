/** Guarantees of operations on detection, beyond what the tests of all operations hold them to. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { mitigationPolicy } from '../commands/detection-policy.ts';
import { executorOf } from '../commands/executor.ts';
import { type ApiFixture, startApi } from './testing/api-fixture.ts';
import { buildWorld, type World } from './testing/world.ts';

let api: ApiFixture;
let world: World;
before(async () => {
  api = await startApi();
  world = await buildWorld(api);
});
after(() => api?.stop());

const create = (body: object) => api.call('createDetectionPolicy', {}, { key: api.operatorKey, body });
const remove = (uuid: string) => api.call('deleteDetectionPolicy', { uuid }, { key: api.operatorKey });
const effective = async (dst: string, key = world.holders.user.key) =>
  (await api.call('readEffectiveDetectionPolicy', {}, { key, query: `?dst=${dst}` })).body;

test('a threshold out of range is refused with its field, what was received and what is allowed; nothing is kept', async () => {
  const cases: [object, string, RegExp][] = [
    [
      { thresholds: { 'tcp-syn': { pps: 99 } } },
      '/thresholds/tcp-syn/pps',
      /must be from 100 to 1000000000, received 99/,
    ],
    [{ thresholds: { total: { bps: 1e13 + 1 } } }, '/thresholds/total/bps', /must be from 100000 to 10000000000000/],
    [{ thresholds: { 'tcp-sin': { pps: 500 } } }, '/thresholds/tcp-sin', /is not a known field; .*tcp-syn/],
    [{ aggregate_thresholds: { icmp: { pps: '5' } } }, '/aggregate_thresholds/icmp/pps', /must be a number, received/],
    [{ thresholds: { icmp: {} } }, '/thresholds/icmp', /at least 1|must/],
    [{ hold_s: 4 }, '/hold_s', /from 5 to 3600, received 4/],
    [{ baseline_factor: 0.5 }, '/baseline_factor', /from 1 to 1000/],
    [{ mitigation: 'drop' }, '/mitigation', /observe, edge, flowspec, rtbh/],
    [{ scope: '203.0.113.1/24' }, '/scope', /203\.0\.113\.0\/24/],
    [{ scope: '100.64.0.0/10' }, '/scope', /no provider's prefix/],
    [{ scope: '203.0.112.0/23' }, '/scope', /no provider's prefix/],
  ];
  for (const [fields, field, sentence] of cases) {
    const { status, body } = await create({ scope: 'installation', ...fields });
    assert.equal(status, 400, JSON.stringify(fields));
    assert.deepEqual(
      body.details.map((each: { field: string }) => each.field),
      [field],
    );
    assert.match(body.details[0].message, sentence);
  }
  assert.deepEqual((await api.call('listDetectionPolicies', {}, { key: api.operatorKey })).body, []);
});

test('a scope has one policy: the installation, an account, a subnet however it is spelt', async () => {
  const { user } = world.holders;
  const made: string[] = [];
  for (const [scope, again] of [
    ['installation', 'installation'],
    [user.uuid, user.uuid.toUpperCase()],
    ['2001:db8:7::/48', '2001:0DB8:7::/48'],
    ['203.0.113.7', '203.0.113.7/32'],
  ] as const) {
    const first = await create({ scope });
    assert.deepEqual([first.status, first.body.scope], [200, scope]);
    const second = await create({ scope: again });
    assert.deepEqual([second.status, second.body.details[0].field], [409, '/scope'], again);
    made.push(first.body.uuid);
  }
  for (const uuid of made) assert.equal((await remove(uuid)).status, 200);
});

test('of the policies for a destination the narrowest says, each vector by itself; owners read which one it was', async () => {
  const { user, provider } = world.holders;
  const made = [];
  for (const [scope, pps] of [
    ['installation', 1_000],
    [provider.uuid, 2_000],
    [user.uuid, 3_000],
  ] as const) {
    made.push(await create({ scope, thresholds: { icmp: { pps }, [`${pps === 1_000 ? 'gre' : 'esp'}`]: { pps } } }));
  }
  const narrow = { scope: '203.0.113.0/29', thresholds: { icmp: { pps: 4_000 } }, mitigation: 'flowspec', hold_s: 99 };
  made.push(await create(narrow));
  const inside = await effective('203.0.113.7');
  assert.deepEqual(inside.thresholds.icmp, { policy: '203.0.113.0/29', pps: 4_000 });
  assert.deepEqual(inside.aggregate_thresholds.icmp, { policy: '203.0.113.0/29', pps: 16_000 });
  assert.deepEqual(inside.thresholds.esp, { policy: 'user', pps: 3_000 });
  assert.deepEqual(inside.thresholds.gre, { policy: 'installation', pps: 1_000 });
  assert.equal(inside.thresholds.total.policy, 'default');
  assert.deepEqual([inside.mitigation, inside.hold_s], ['flowspec', 99]);
  const around = { scope: '203.0.113.0/27', thresholds: { icmp: { pps: 5_000 } }, mitigation: 'edge' };
  made.push(await create(around));
  const ofSibling = await effective('203.0.113.17', world.holders.sibling.key);
  assert.deepEqual([ofSibling.thresholds.icmp.policy, ofSibling.mitigation], ['203.0.113.0/27', 'edge']);
  // The user's /28 is narrower than a subnet around it.
  const beside = await effective('203.0.113.8');
  assert.deepEqual([beside.thresholds.icmp.policy, beside.mitigation], ['user', 'observe']);
  const ofProvider = await effective(world.addressOf.provider, provider.key);
  assert.deepEqual(ofProvider.thresholds.icmp, { policy: 'provider', pps: 2_000 });
  const executor = executorOf(api.database.pool);
  assert.equal((await mitigationPolicy(executor, '203.0.113.7')).mitigation, 'flowspec');
  // All of the destination must lie in it.
  assert.equal((await mitigationPolicy(executor, '203.0.113.0/28')).mitigation, 'observe');
  for (const { body } of made) await remove(body.uuid);
  assert.equal((await effective('203.0.113.7')).thresholds.icmp.policy, 'default');
});

test('a change leaves what it does not name, null takes the aggregates away, and both are in the audit log', async () => {
  const body = {
    scope: '203.0.113.7',
    thresholds: { icmp: { pps: 500 } },
    aggregate_thresholds: { icmp: { pps: 900 } },
  };
  const { uuid } = (await create(body)).body;
  const change = async (fields: object) =>
    (await api.call('changeDetectionPolicy', { uuid }, { key: api.operatorKey, body: fields })).body;
  const changed = await change({ mitigation: 'edge' });
  assert.deepEqual([changed.mitigation, changed.thresholds], ['edge', body.thresholds]);
  assert.deepEqual(changed.aggregate_thresholds, body.aggregate_thresholds);
  const bare = await change({ aggregate_thresholds: null, thresholds: { total: { bps: 1e9 } } });
  assert.deepEqual([bare.aggregate_thresholds, bare.thresholds], [undefined, { total: { bps: 1e9 } }]);
  const log = (await api.call('listAudit', {}, { key: api.operatorKey, query: `?object_uuid=${uuid}` })).body;
  assert.deepEqual(
    log.map((each: { operation: string }) => each.operation),
    ['createDetectionPolicy', 'changeDetectionPolicy', 'changeDetectionPolicy'],
  );
  assert.deepEqual([log[1].before.mitigation, log[1].after.mitigation], ['observe', 'edge']);
  await remove(uuid);
});

test("an account's policy goes with the account", async () => {
  const user = await api.user(world.holders.provider, ['203.0.113.64/28']);
  const { uuid } = (await create({ scope: user.uuid })).body;
  await api.database.pool.query('delete from subnet where account_uuid = $1', [user.uuid]);
  await api.database.pool.query('delete from api_key where account_uuid = $1', [user.uuid]);
  await api.database.pool.query('delete from account where uuid = $1', [user.uuid]);
  assert.equal((await api.call('readDetectionPolicy', { uuid }, { key: api.operatorKey })).status, 404);
});

test('an exporter is not at an address that nothing is sent from', async () => {
  const make = (body: object) => api.call('createExporter', {}, { key: api.operatorKey, body });
  const senderless = {
    '0.0.0.0': 'the unspecified address',
    '224.0.0.1': 'a multicast address (224.0.0.0/4)',
    '255.255.255.255': 'the broadcast address',
    '::': 'the unspecified address',
    'ff02::1': 'a multicast address (ff00::/8)',
  };
  for (const [source, is] of Object.entries(senderless)) {
    const { status, body } = await make({ name: 'nowhere', source });
    assert.equal(status, 400, source);
    const [{ field, message }] = body.details;
    assert.deepEqual(
      [field, message],
      ['/source', `source: must be an address that datagrams can come from; ${source} is ${is}`],
    );
  }
  for (const [name, source] of Object.entries({ inside: '10.0.0.1', beside: '127.0.0.9', next: 'fe80::1' })) {
    assert.equal((await make({ name, source })).status, 200, source);
  }
});

test('an exporter is one address, in one spelling; a detector is answered its key once', async () => {
  const make = (body: object) => api.call('createExporter', {}, { key: api.operatorKey, body });
  const first = await make({ name: 'edge1', source: '2001:0DB8:FF::1', interfaces: [1, 2] });
  assert.deepEqual([first.body.source, first.body.sampling, first.body.interfaces], ['2001:db8:ff::1', 'auto', [1, 2]]);
  const second = await make({ name: 'edge2', source: '2001:db8:ff::1' });
  assert.deepEqual([second.status, second.body.details[0].field], [409, '/source']);
  for (const sampling of ['often', 0, 1.5, 16_777_217]) {
    const { status, body } = await make({ name: 'edge3', source: '192.0.2.3', sampling });
    assert.equal(status, 400, String(sampling));
    const received = typeof sampling === 'string' ? `the string "${sampling}"` : String(sampling);
    assert.deepEqual(
      body.details.map(({ field, message }: Record<string, string>) => [field, message]),
      [['/sampling', `sampling: must be auto, prescaled or an integer from 1 to 16777216, received ${received}`]],
    );
  }
  const announced = (await api.call('createDetector', {}, { key: api.operatorKey, body: { name: 'far' } })).body;
  assert.match(announced.key, /^lv_d_/);
  const read = await api.call('readDetector', { uuid: announced.uuid }, { key: api.operatorKey });
  assert.equal(read.body.key, undefined);
  const log = await api.call('listAudit', {}, { key: api.operatorKey, query: `?object_uuid=${announced.uuid}` });
  assert.ok(!log.text.includes(announced.key));
  assert.equal((await api.raw('GET', '/v1/whoami', { key: announced.key })).status, 401, 'it opens nothing else');
});
