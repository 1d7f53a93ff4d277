import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { transact } from '../commands/executor.ts';
import { proposeFlowrule, type WantedFlowrule } from '../commands/propose-flowrule.ts';
import { violatedConstraint } from '../store/failure.ts';
import { flowruleStateOf } from './flowrule-answer.ts';
import { type ApiFixture, type Holder, type Reply, startApi } from './testing/api-fixture.ts';
import { propose } from './testing/propose.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;
before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/28', '2001:db8:7::/48']);
});
after(() => api.stop());

const read = (uuid: string, key = user.key): Promise<Reply> => api.call('readFlowrule', { uuid }, { key });
const refused = async (wanted: WantedFlowrule) => {
  const outcome = await transact(api.database.pool, (executor) => proposeFlowrule(executor, wanted));
  assert.ok(!outcome.ok);
  return `${outcome.failure.code} ${outcome.failure.details.map(({ field, code }) => `${field} ${code}`)}`;
};

test('a flowrule is read as an array of one, canonical, proposed while there is no speaker, and says so', async () => {
  const expiresAt = new Date(Date.now() + 3_600_000);
  const { uuid } = await propose(api.database.pool, '203.0.113.7', {
    expiresAt,
    fields: {
      components: { fragment: 'is-fragment', protocol: '17', 'source-port': '123,53' },
      action: 'rate-limit',
      ratelimit: 1_000_000,
    },
  });
  const reply = await read(uuid);
  const { created_at, updated_at, ...flowrule } = reply.body[0];
  assert.deepEqual(flowrule, {
    uuid,
    owner_uuid: user.uuid,
    origin: 'policy',
    state: 'proposed',
    state_reason: 'No BGP speaker is configured: the rule is shown and announced nowhere.',
    dst: '203.0.113.7',
    components: { protocol: 'udp', 'source-port': '53,123', fragment: 'is-fragment' },
    action: 'rate-limit',
    ratelimit: 1_000_000,
    expires_at: expiresAt.toISOString(),
    applied: [],
  });
  assert.equal(created_at, updated_at);
  const tag = reply.headers.get('etag') ?? '';
  const again = await api.call('readFlowrule', { uuid }, { key: user.key, headers: { 'if-none-match': tag } });
  assert.equal(again.status, 304);
});

test('a state is what the reconciler wrote of the present change, unless the rule is not to be announced', () => {
  const speaker = { name: 'GoBGP', trouble: null, since_ms: 0, peers: null };
  const row = { held: null, failure: null, applied_position: null, applied_ms: null, change_position: 7, speaker };
  const stateOf = (more: object, has: boolean) => flowruleStateOf({ ...row, ...more }, has).state;
  assert.equal(stateOf({}, false), 'proposed');
  assert.equal(stateOf({ applied_position: 7 }, false), 'proposed');
  assert.equal(stateOf({}, true), 'pending');
  assert.equal(stateOf({ applied_position: 6 }, true), 'pending');
  assert.equal(stateOf({ applied_position: 7 }, true), 'pending');
  assert.equal(stateOf({ applied_position: 7, applied_ms: 1 }, true), 'active');
  const away = { ...row, applied_position: 7, applied_ms: 1, speaker: { ...speaker, trouble: 'It is gone.' } };
  assert.deepEqual(flowruleStateOf(away, true), {
    state: 'pending',
    reason: 'GoBGP has been away since 1970-01-01T00:00:00.000Z: It is gone.',
  });
  assert.equal(stateOf({ applied_position: 6, failure: 'refused' }, true), 'failed');
  assert.equal(stateOf({ held: 'only observed', failure: 'refused', applied_position: 7 }, true), 'proposed');
  assert.equal(flowruleStateOf({ ...row, held: 'only observed' }, true).reason, 'only observed');
});

test('a rule outside protected space, malformed or standing already is refused, whoever proposes it', async () => {
  const rule = { dst: '203.0.113.9', components: { protocol: 'udp' }, action: 'discard' };
  assert.equal(await refused({ fields: { ...rule, dst: '192.0.2.1' } }), 'validation_failed /dst not_protected');
  assert.equal(await refused({ fields: { ...rule, dst: '203.0.112.0/23' } }), 'validation_failed /dst not_protected');
  assert.equal(await refused({ fields: { ...rule, dst: '203.0.113.300' } }), 'validation_failed /dst invalid_address');
  assert.equal(await refused({ fields: { ...rule, dst: undefined } }), 'validation_failed /dst required');
  assert.equal(await refused({ fields: 'rule' }), 'validation_failed  wrong_type');
  await propose(api.database.pool, '203.0.113.9', { fields: rule });
  const same = { ...rule, dst: '203.0.113.9/32', components: { protocol: '17' }, action: 'rate-limit', ratelimit: 9 };
  assert.equal(await refused({ fields: same }), 'conflict /components already_exists');
  const attackUuid = '0190a5d0-0000-7000-8000-000000000000';
  const other = { ...rule, components: { protocol: 'tcp' } };
  assert.equal(await refused({ fields: other, attackUuid }), 'not_found /attack_uuid not_found');
});

test('of two that propose the same rule at once one stands', async () => {
  const fields = { dst: '203.0.113.10', components: { protocol: 'gre' }, action: 'discard' };
  const results = await Promise.all(
    Array.from({ length: 5 }, () =>
      transact(api.database.pool, (executor) => proposeFlowrule(executor, { fields })).then(
        (outcome) => (outcome.ok ? 'made' : outcome.failure.code),
        (error: unknown) => violatedConstraint(error),
      ),
    ),
  );
  assert.equal(results.filter((result) => result === 'made').length, 1, `${results}`);
  assert.ok(
    results.every((result) => ['made', 'conflict', 'flowrule_nlri'].includes(String(result))),
    `${results}`,
  );
});

test('the database stores no flowrule outside protected space, and lets no prefix go that one stands on', async () => {
  const { uuid } = await propose(api.database.pool, '203.0.113.11');
  const violates = async (text: string, values: unknown[]) => {
    try {
      await api.database.pool.query(text, values);
      return undefined;
    } catch (error) {
      return violatedConstraint(error);
    }
  };
  assert.equal(
    await violates(`update flowrule set dst = '192.0.2.1' where uuid = $1`, [uuid]),
    'flowrule_inside_prefix',
  );
  assert.equal(await violates(`update flowrule set prefix = '0.0.0.0/0' where uuid = $1`, [uuid]), 'flowrule_prefix');
  assert.equal(
    await violates('update flowrule set prefix = null where uuid = $1', [uuid]),
    'flowrule_prefix_until_deleted',
  );
  const other = await api.provider(['198.51.100.0/24']);
  await propose(api.database.pool, '198.51.100.1');
  assert.equal(await violates('delete from subnet where account_uuid = $1', [other.uuid]), 'flowrule_prefix');
});

test('a flowrule belongs to who holds all of its destination, and stays so when the addresses go to another', async () => {
  const holder = await api.user(provider, ['203.0.113.32/29']);
  const one = await propose(api.database.pool, '203.0.113.33');
  const wide = await propose(api.database.pool, '203.0.113.32/28');
  assert.deepEqual([one.owner_uuid, wide.owner_uuid], [holder.uuid, provider.uuid]);
  const body = { user_uuid: holder.uuid, ips: ['203.0.113.32/29'] };
  assert.equal((await api.call('deleteUserIps', {}, { key: provider.key, body })).status, 200);
  const next = await api.user(provider, ['203.0.113.32/29']);
  assert.equal((await read(one.uuid, holder.key)).body[0].state, 'proposed');
  assert.equal((await read(one.uuid, next.key)).status, 404);
});

test('a flowrule of an attack names it, and the attack names the flowrule', async () => {
  const report = { source: 'elsewhere', external_id: 'with-rules', dst: '203.0.113.12', state: 'started' };
  const attack = (await api.call('recordAttack', {}, { key: api.operatorKey, body: report })).body;
  const { uuid } = await propose(api.database.pool, '203.0.113.12', {
    attackUuid: attack.uuid,
    held: 'Only observed.',
  });
  const [flowrule] = (await read(uuid)).body;
  assert.deepEqual([flowrule.attack_uuid, flowrule.state_reason], [attack.uuid, 'Only observed.']);
  const [whole] = (await api.call('readAttack', { uuid: attack.uuid }, { key: user.key })).body;
  assert.deepEqual(whole.flowrules, [uuid]);
});

test('lists are filtered by state, destination and owner, paged, and streamed in the order of creation', async () => {
  const someone = await api.user(provider, ['203.0.113.64/28']);
  const made: string[] = [];
  for (let offset = 0; offset < 5; offset++)
    made.push((await propose(api.database.pool, `203.0.113.${64 + offset}`)).uuid);
  const list = (query: string, id = 'listFlowrules', key = someone.key) => api.call(id, {}, { key, query });
  const uuids = (reply: Reply) => reply.body.map(({ uuid }: { uuid: string }) => uuid);
  assert.deepEqual(uuids(await list('')), made);
  assert.deepEqual(uuids(await list('?state=proposed&dst=203.0.113.66/31')), made.slice(2, 4));
  assert.deepEqual(uuids(await list('?state=active')), []);
  const first = await list('?limit=3');
  assert.deepEqual(uuids(first), made.slice(0, 3));
  const next = /<[^>?]+\?([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1];
  assert.deepEqual(uuids(await list(`?${next}`)), made.slice(3));
  assert.deepEqual(uuids(await list(`?user_uuid=${someone.uuid}`, 'listProviderFlowrules', provider.key)), made);
  assert.equal((await list('?state=disabled')).status, 400);
});
