import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { DetectedAttack } from '@levee/contract/detector.ts';
import { profileOf } from '@levee/core/mitigation/testing/profile.ts';
import { transact } from './commands/executor.ts';
import { defaultFlowspecBudget, type MitigationSettings, mitigateAttack } from './commands/mitigate-attack.ts';
import { announceFlowrule } from './commands/operate-measures.ts';
import { recordDetectedAttack } from './commands/record-detected-attack.ts';
import { detectedAttack } from './commands/testing/detected.ts';
import { type ApiFixture, type Holder, startApi } from './http/testing/api-fixture.ts';
import { newUuid } from './store/new-uuid.ts';
import { sweepOnce } from './sweep/sweeper.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;
const subnet = '203.0.113.0/25';
before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '198.51.100.0/24']);
  user = await api.user(provider, [subnet]);
});
after(() => api.stop());

let last = 0;
/** Each test has a destination of its own. */
const nextAddress = () => `203.0.113.${++last}`;

const scopes: string[] = [];
async function policy(scope: string, settings: object): Promise<string> {
  const body = { scope, ...settings };
  const reply = await api.call('createDetectionPolicy', {}, { key: api.operatorKey, body });
  assert.equal(reply.status, 200, reply.text);
  scopes.push(reply.body.uuid);
  return reply.body.uuid;
}

const began = Date.now() - 60_000;

const announcing: MitigationSettings = { flowspecBudget: defaultFlowspecBudget, hasSpeaker: true };

async function tell(detected: DetectedAttack, now = new Date(), settings = announcing): Promise<string> {
  const outcome = await transact(api.database.pool, (executor) =>
    recordDetectedAttack(executor, detected, now, settings),
  );
  assert.ok(outcome.ok, outcome.ok ? '' : JSON.stringify(outcome.failure));
  return outcome.value.uuid;
}

// biome-ignore lint/suspicious/noExplicitAny: answers are checked against their schemas.
type Any = any;
const list = async (id: string, dst: string, key = user.key): Promise<Any[]> =>
  (await api.call(id, {}, { key, query: `?dst=${dst}` })).body;
const rulesOn = (dst: string, key?: string) => list('listFirewallRules', dst, key);
const flowrulesOn = (dst: string, key?: string) => list('listFlowrules', dst, key);
const live = (rows: Any[]) => rows.filter(({ state }) => state !== 'marked_for_deletion');
const read = async (uuid: string, key = user.key): Promise<Any> =>
  (await api.call('readAttack', { uuid }, { key })).body[0];
const create = async (body: object, key = user.key): Promise<Any> => {
  const reply = await api.call('createFirewallRule', {}, { key, body });
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
};
const entriesSince = async (position: string) =>
  (
    await api.database.pool.query<{ kind: string }>(
      'select kind from change where position > $1::int8 order by position',
      [position],
    )
  ).rows.map(({ kind }) => kind);
const lastPosition = async () =>
  (await api.database.pool.query<{ last: string }>(`select last_value::text as last from change_position`)).rows[0]
    ?.last ?? '0';

test('a policy that observes has an attack with proposed flowrules and nothing at the edge', async () => {
  const dst = nextAddress();
  const uuid = await tell(detectedAttack(dst, began));
  assert.deepEqual(await rulesOn(dst), []);
  const flowrules = await flowrulesOn(dst);
  assert.deepEqual(
    flowrules.map(({ state, action, components }) => [state, action, components['source-port']]),
    [
      ['proposed', 'discard', '53'],
      ['proposed', 'rate-limit', undefined],
    ],
  );
  assert.match(flowrules[0].state_reason, /only observes/);
  assert.equal((await read(uuid)).mitigation, 'observe');
});

test('a policy up to FlowSpec has both, behind all rules, owned by the holder, and a report told again changes nothing', async () => {
  const dst = nextAddress();
  await policy(dst, { mitigation: 'flowspec' });
  const detected = detectedAttack(dst, began);
  const uuid = await tell(detected);
  const [rule, ...more] = await rulesOn(dst);
  assert.deepEqual(more, []);
  assert.deepEqual(
    { priority: rule.priority, origin: rule.origin, attack: rule.attack_uuid, owner: rule.owner_uuid, port: rule.port },
    { priority: 2147483648, origin: 'attack', attack: uuid, owner: user.uuid, port: { src: { start: 53 } } },
  );
  assert.equal(rule.statetype, 'new');
  const flowrules = await flowrulesOn(dst);
  assert.equal(flowrules.length, 2);
  assert.ok(flowrules.every(({ origin, attack_uuid }) => origin === 'attack' && attack_uuid === uuid));
  assert.ok(
    flowrules.every(({ state_reason }) => /No BGP speaker/.test(state_reason)),
    'nothing of ours holds them',
  );
  assert.ok(Date.parse(rule.expires_at) > Date.now() + 3_000_000);
  const attack = await read(uuid);
  assert.equal(attack.mitigation, 'flowspec');
  assert.deepEqual(
    attack.actions.map(({ action }: Any) => action),
    ['edge', 'flowspec', 'flowspec'],
  );
  const { rows: audit } = await api.database.pool.query(
    `select kind from audit where operation = 'mitigate' and (after->>'dst') = $1 order by sequence`,
    [dst],
  );
  assert.deepEqual(
    audit.map(({ kind }) => kind),
    ['firewall_rule', 'flowrule', 'flowrule'],
  );

  const position = await lastPosition();
  await tell({ ...detected, phase: 'changed' }, new Date(Date.now() + 10_000));
  assert.deepEqual(await entriesSince(position), []);
});

test('measures stay while they catch nine tenths of what is seen, and follow when they do not', async () => {
  const dst = nextAddress();
  await policy(dst, { mitigation: 'flowspec' });
  const port = (value: number, share: number) => ({ value, share });
  const profile = (...source_ports: { value: number; share: number }[]) => [
    profileOf('udp-amplification', { source_ports, length: { min: 1000, p5: 1000, max: 1400 } }),
  ];
  const detected = detectedAttack(dst, began, { profile: profile(port(53, 1)) });
  const at = Date.now();
  await tell(detected, new Date(at));
  const [first] = await flowrulesOn(dst);
  await tell(
    { ...detected, phase: 'changed', profile: profile(port(53, 0.92), port(123, 0.08)) },
    new Date(at + 10_000),
  );
  assert.deepEqual(
    live(await flowrulesOn(dst)).map(({ uuid }) => uuid),
    [first.uuid],
  );
  const turned = { ...detected, phase: 'changed' as const, profile: profile(port(53, 0.5), port(123, 0.5)) };
  await tell(turned, new Date(at + 2_000));
  assert.deepEqual(
    live(await flowrulesOn(dst)).map(({ uuid }) => uuid),
    [first.uuid],
    'not at once',
  );
  await tell(turned, new Date(at + 20_000));
  assert.deepEqual(
    live(await flowrulesOn(dst)).map(({ components }) => components['source-port']),
    ['53,123'],
  );
  assert.deepEqual(
    live(await rulesOn(dst)).map(({ port: ports }) => ports.src.start),
    [53, 123],
  );

  const joined = { ...turned, vectors: ['udp-amplification', 'gre'], profile: [...turned.profile, profileOf('gre')] };
  await tell(joined, new Date(at + 20_100));
  assert.equal(live(await flowrulesOn(dst)).length, 2, 'a new vector is dealt with at once');
});

test('when an attack has ended its measures stay for a while, twice as long when it is back, and are the same ones', async () => {
  const dst = nextAddress();
  await policy(dst, { mitigation: 'edge', mitigation_hold_s: 600 });
  const over = (detected: DetectedAttack, ended_ms: number) => tell({ ...detected, phase: 'ended', ended_ms });
  const one = detectedAttack(dst, began);
  await tell(one);
  const endedMs = began + 20_000;
  await over(one, endedMs);
  const [rule] = await rulesOn(dst);
  assert.equal(Date.parse(rule.expires_at), endedMs + 600_000);
  await over(one, endedMs);
  assert.equal((await rulesOn(dst))[0].expires_at, rule.expires_at, 'told again');

  const two = detectedAttack(dst, endedMs + 10_000);
  const uuid = await tell(two);
  const [same] = live(await rulesOn(dst));
  assert.deepEqual([same.uuid, same.attack_uuid], [rule.uuid, uuid]);
  assert.ok(Date.parse(same.expires_at) > Date.now() + 3_000_000);
  const endedAgainMs = endedMs + 20_000;
  await over(two, endedAgainMs);
  assert.equal(Date.parse((await rulesOn(dst))[0].expires_at), endedAgainMs + 1_200_000);

  await api.database.pool.query(`update firewall_rule set expires_at = now() where uuid = $1`, [rule.uuid]);
  await sweepOnce(api.database.pool);
  assert.deepEqual(live(await rulesOn(dst)), []);
});

test('a flowrule that an accept rule would lose traffic to is held, by rules made later too, and let go of with them', async () => {
  const dst = nextAddress();
  await policy(dst, { mitigation: 'flowspec' });
  const resolver = { dst, protocol: 'udp', src: { start: '9.9.9.9' }, action: 'accept' };
  const accept = await create(resolver);
  await tell(detectedAttack(dst, began));
  const states = async () => (await flowrulesOn(dst)).map(({ state_reason }) => state_reason);
  for (const reason of await states()) assert.match(reason, new RegExp(`rule ${accept.uuid} accepts`));
  assert.equal(
    live(await rulesOn(dst)).filter(({ origin }) => origin === 'attack').length,
    1,
    'the edge evaluates it last',
  );

  await api.call('deleteFirewallRule', { uuid: accept.uuid }, { key: user.key });
  await sweepOnce(api.database.pool);
  for (const reason of await states()) assert.match(reason, /No BGP speaker/);
  const again = await create({ ...resolver, src: { start: '9.9.9.0/24' } });
  const position = await lastPosition();
  await sweepOnce(api.database.pool);
  for (const reason of await states()) assert.match(reason, new RegExp(`rule ${again.uuid} accepts`));
  assert.deepEqual(
    (await entriesSince(position)).filter((kind) => kind === 'flowrule'),
    ['flowrule', 'flowrule'],
  );
  const settled = await lastPosition();
  await sweepOnce(api.database.pool);
  assert.deepEqual(await entriesSince(settled), [], 'and once only');

  const other = nextAddress();
  await policy(other, { mitigation: 'flowspec', override_accept: true });
  await create({ ...resolver, dst: other });
  await tell(detectedAttack(other, began));
  await sweepOnce(api.database.pool);
  for (const { state_reason } of await flowrulesOn(other)) assert.match(state_reason, /No BGP speaker/);
});

test('a transaction that stays open neither hides an accept rule from the sweep nor keeps it busy', async () => {
  const dst = nextAddress();
  await policy(dst, { mitigation: 'flowspec' });
  await tell(detectedAttack(dst, began));
  const open = await api.database.connect('stays open');
  try {
    await open.query('begin');
    await open.query('select pg_current_xact_id()');
    const accept = await create({ dst, protocol: 'udp', action: 'accept' });
    assert.equal(await sweepOnce(api.database.pool), true);
    for (const { state_reason } of await flowrulesOn(dst)) assert.match(state_reason, new RegExp(accept.uuid));
    const position = await lastPosition();
    await sweepOnce(api.database.pool);
    assert.deepEqual(await entriesSince(position), []);
  } finally {
    await open.end();
  }
});

test("measures are no customer's: no quota counts them, no set replaces them, no change touches them, and whoever deletes one is heeded", async () => {
  const dst = nextAddress();
  await policy(dst, { mitigation: 'edge' });
  const detected = detectedAttack(dst, began);
  await tell(detected);
  const [rule] = await rulesOn(dst);
  const quota = await api.call(
    'setQuota',
    { account_uuid: user.uuid },
    { key: api.operatorKey, body: { firewall_rules: 1 } },
  );
  const { used } = quota.body.quotas.firewall_rules;
  const { rows: own } = await api.database.pool.query(
    `select from firewall_rule where owner_uuid = $1 and deletion_marked_at is null and origin = 'customer'`,
    [user.uuid],
  );
  assert.equal(used, own.length);
  await api.call('setQuota', { account_uuid: user.uuid }, { key: api.operatorKey, body: {} });

  const replaced = await api.call(
    'replaceFirewallRules',
    {},
    { key: user.key, query: `?dst=${dst}`, body: { rules: [] } },
  );
  assert.equal(replaced.status, 200, replaced.text);
  assert.equal(live(await rulesOn(dst)).length, 1);
  const changed = await api.call('changeFirewallRule', { uuid: rule.uuid }, { key: user.key, body: { descr: 'mine' } });
  assert.equal(changed.status, 409);
  assert.match(changed.body.message + JSON.stringify(changed.body.details), /measure against the attack/);

  assert.equal((await api.call('deleteFirewallRule', { uuid: rule.uuid }, { key: user.key })).status, 200);
  await tell({ ...detected, phase: 'changed' }, new Date(Date.now() + 20_000));
  assert.deepEqual(live(await rulesOn(dst)), [], 'it is not made again for this attack');
});

test('measures are explained as what they are, and come after what any rule accepts, however low its priority', async () => {
  const dst = nextAddress();
  await policy(dst, { mitigation: 'edge' });
  const attack = await tell(detectedAttack(dst, began));
  const [rule] = await rulesOn(dst);
  const packet = { dst, src: '9.9.9.9', protocol: 'udp', port: { src: 53, dst: 4000 }, statetype: 'new' };
  const explain = async () => (await api.call('explainPacket', {}, { key: user.key, body: packet })).body;
  const dropped = await explain();
  assert.deepEqual([dropped.verdict, dropped.decided_by], ['drop', rule.uuid]);
  assert.equal(dropped.trail[0].attack_uuid, attack);
  assert.match(dropped.trail[0].message, new RegExp(`a measure against the attack ${attack}`));
  const accept = await create({
    dst,
    protocol: 'udp',
    action: 'accept',
    src: { start: '9.9.9.9' },
    priority: 2147483647,
  });
  const accepted = await explain();
  assert.deepEqual([accepted.verdict, accepted.decided_by], ['accept', accept.uuid]);
});

test('measures go with the addresses, and whoever holds them next has its own', async () => {
  const dst = '198.51.100.7';
  const former = await api.user(provider, ['198.51.100.0/28']);
  await policy(dst, { mitigation: 'flowspec' });
  const detected = detectedAttack(dst, began);
  await tell(detected);
  assert.equal(live(await rulesOn(dst, former.key)).length, 1);
  const [kept] = await flowrulesOn(dst, former.key);
  const gone = await api.call(
    'deleteUserIps',
    {},
    { key: provider.key, body: { user_uuid: former.uuid, ips: ['198.51.100.0/28'] } },
  );
  assert.equal(gone.status, 200, gone.text);
  assert.deepEqual(live(await rulesOn(dst, former.key)), []);
  const next = await api.user(provider, ['198.51.100.0/28']);
  const uuid = await tell({ ...detected, phase: 'changed', measured: { ...detected.measured, at_ms: Date.now() } });
  const [rule] = live(await rulesOn(dst, next.key));
  assert.deepEqual([rule.attack_uuid, rule.owner_uuid], [uuid, next.uuid]);
  const [route] = live(await flowrulesOn(dst, next.key));
  assert.deepEqual([route.uuid, route.attack_uuid], [kept.uuid, uuid], 'the same route, without a gap');
});

test("measures of a provider become the user's whom it gives the addresses, without a gap", async () => {
  const dst = '198.51.100.140';
  await policy(dst, { mitigation: 'edge' });
  const detected = detectedAttack(dst, began);
  await tell(detected);
  const [rule] = live(await rulesOn(dst, provider.key));
  const next = await api.user(provider, ['198.51.100.128/26']);
  const uuid = await tell({ ...detected, phase: 'changed', measured: { ...detected.measured, at_ms: Date.now() } });
  assert.deepEqual(live(await rulesOn(dst, provider.key)), []);
  const [same] = live(await rulesOn(dst, next.key));
  assert.deepEqual([same.uuid, same.attack_uuid, same.owner_uuid], [rule.uuid, uuid, next.uuid]);
});

test('beyond the budget one route stands in for several attacks, else the destination is given up where that is allowed', async () => {
  const [first, second, third] = ['198.51.100.64', '198.51.100.65', '198.51.100.66'] as const;
  const holder = await api.user(provider, ['198.51.100.64/26']);
  await policy('198.51.100.64/26', { mitigation: 'flowspec' });
  const { rows } = await api.database.pool.query(
    `select count(*)::int as used from flowrule where held is null and deletion_marked_at is null`,
  );
  const flowspecBudget = rows[0].used + 1;
  const gre = (dst: string) => detectedAttack(dst, began, { vectors: ['gre'], profile: [profileOf('gre')] });
  const one = gre(first);
  await tell(one, new Date(), { flowspecBudget, hasSpeaker: true });
  await tell(gre(second), new Date(), { flowspecBudget, hasSpeaker: true });
  const wide = live(await flowrulesOn('198.51.100.64/26', holder.key));
  assert.deepEqual(
    wide.map(({ dst, action }) => [dst, action]),
    [['198.51.100.64/26', 'rate-limit']],
  );
  await tell({ ...one, phase: 'changed' }, new Date(Date.now() + 20_000), { flowspecBudget, hasSpeaker: true });
  assert.equal(live(await flowrulesOn('198.51.100.64/26', holder.key)).length, 1, 'the wider one is enough');

  const esp = detectedAttack(third, began, { vectors: ['esp'], profile: [profileOf('esp')] });
  await tell(esp, new Date(), { flowspecBudget, hasSpeaker: true });
  const [held] = live(await flowrulesOn(third, holder.key)).filter(({ dst }) => dst === third);
  assert.match(held.state_reason, /budget/);
  await policy(third, { mitigation: 'rtbh' });
  const uuid = await tell({ ...esp, phase: 'changed' }, new Date(Date.now() + 20_000), {
    flowspecBudget,
    hasSpeaker: true,
  });
  const given = live(await flowrulesOn(third, holder.key)).filter(({ dst }) => dst === third);
  assert.deepEqual(
    given.map(({ action, components }) => [action, components]),
    [['blackhole', {}]],
  );
  assert.equal((await read(uuid, holder.key)).mitigation, 'rtbh');
});

test('an attack on a subnet has its measures on the subnet, as its provider holds it', async () => {
  const holder = await api.provider(['192.0.2.0/24']);
  await api.user(holder, ['192.0.2.0/28']);
  await policy('192.0.2.0/24', { mitigation: 'flowspec' });
  const profile = [profileOf('gre', { destinations: [{ value: '192.0.2.1', share: 0.5 }] })];
  await tell(detectedAttack('192.0.2.0/24', began, { vectors: ['gre'], profile }));
  const measures = [...(await rulesOn('192.0.2.0/24', holder.key)), ...(await flowrulesOn('192.0.2.0/24', holder.key))];
  assert.deepEqual(
    measures.map(({ dst, owner_uuid }) => [dst, owner_uuid]),
    [
      ['192.0.2.0/24', holder.uuid],
      ['192.0.2.0/24', holder.uuid],
    ],
  );
});

test('what the operator takes back is not made again, what it keeps outlives the attack, and what it announces is announced', async () => {
  const operate = (id: string, uuid: string, body?: object) =>
    api.call(id, { uuid }, { key: api.operatorKey, ...(body && { body }) });
  const dst = nextAddress();
  await policy(dst, { mitigation: 'edge' });
  const detected = detectedAttack(dst, began);
  await tell(detected);
  const [ports, fragments] = await flowrulesOn(dst);
  const [rule] = await rulesOn(dst);
  const { body: kept } = await operate('keepMeasure', rule.uuid);
  assert.deepEqual([kept.origin, kept.expires_at, kept.uuid], ['operator', undefined, rule.uuid]);
  const all: Any[] = (await api.call('listAllFlowrules', {}, { key: api.operatorKey, query: `?dst=${dst}` })).body;
  assert.deepEqual(
    all.map(({ uuid }) => uuid),
    [ports.uuid, fragments.uuid],
  );
  const { body: announced } = await operate('announceFlowrule', ports.uuid);
  assert.match(announced.state_reason, /No BGP speaker/);
  assert.equal((await operate('withdrawFlowrule', fragments.uuid)).body.state, 'marked_for_deletion');
  assert.equal((await operate('withdrawFlowrule', fragments.uuid)).status, 200, 'twice is no error');

  const later = new Date(Date.now() + 20_000);
  await tell({ ...detected, phase: 'changed' }, later);
  const standing = live(await flowrulesOn(dst));
  assert.deepEqual(
    standing.map(({ uuid }) => uuid),
    [ports.uuid],
  );
  assert.match(standing[0].state_reason, /No BGP speaker/, 'the policy does not hold it again');
  assert.deepEqual(
    live(await rulesOn(dst)).map(({ uuid }) => uuid),
    [rule.uuid],
  );

  const accept = await create({ dst, protocol: 'udp', action: 'accept', src: { start: '9.9.9.9' } });
  await sweepOnce(api.database.pool);
  assert.match((await flowrulesOn(dst))[0].state_reason, new RegExp(accept.uuid), 'but an accept rule does');
  const refused = await operate('announceFlowrule', ports.uuid, {});
  assert.equal(refused.status, 409);
  assert.equal(refused.body.details[0].field, '/override_accept');
  assert.equal((await operate('announceFlowrule', ports.uuid, { override_accept: true })).status, 200);
  await sweepOnce(api.database.pool);
  assert.match((await flowrulesOn(dst))[0].state_reason, /No BGP speaker/);

  await operate('keepFlowrule', ports.uuid);
  await tell({ ...detected, phase: 'ended', ended_ms: began + 1000 }, later);
  const { rows } = await api.database.pool.query(
    'select expires_at from flowrule where uuid = $1 union all select expires_at from firewall_rule where uuid = $2',
    [ports.uuid, rule.uuid],
  );
  assert.deepEqual(rows, [{ expires_at: null }, { expires_at: null }]);
});

test('beyond the budget nothing is announced by hand', async () => {
  const dst = nextAddress();
  await tell(detectedAttack(dst, began));
  const [{ uuid }] = (await flowrulesOn(dst)) as [Any];
  const outcome = await transact(api.database.pool, (executor) =>
    announceFlowrule(executor, uuid, false, { flowspecBudget: 0 }),
  );
  assert.equal(outcome.ok ? '' : outcome.failure.details[0]?.code, 'budget');
});

test('addresses that are taken take the measures on them along, which are not told as rules of the user', async () => {
  const holder = await api.user(provider, ['198.51.100.192/28']);
  const dst = '198.51.100.193';
  await policy(dst, { mitigation: 'edge' });
  await tell(detectedAttack(dst, began));
  await create({ dst, protocol: 'tcp', action: 'accept' }, holder.key);
  assert.equal(live(await rulesOn(dst, holder.key)).length, 2);
  const body = { user_uuid: holder.uuid, ips: ['198.51.100.192/28'] };
  const reply = await api.call('deleteUserIps', {}, { key: provider.key, body });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.body.removed.firewall_rules, 1);
  assert.deepEqual(live(await rulesOn(dst, holder.key)), []);
});

test('a policy that is taken down to observing takes the measures with it', async () => {
  const dst = nextAddress();
  const uuid = await policy(dst, { mitigation: 'flowspec' });
  const detected = detectedAttack(dst, began);
  await tell(detected);
  const body = { mitigation: 'observe' };
  await api.call('changeDetectionPolicy', { uuid }, { key: api.operatorKey, body });
  await tell({ ...detected, phase: 'changed' }, new Date(Date.now() + 1000));
  assert.deepEqual(live(await rulesOn(dst)), []);
  for (const { state_reason } of live(await flowrulesOn(dst))) assert.match(state_reason, /only observes/);
});

test('an attack outside a transaction is refused: half of its measures are worse than none', async () => {
  const executor = { inTransaction: false, client: api.database.pool, rows: async () => [] };
  const attack = { uuid: newUuid() } as never;
  await assert.rejects(
    mitigateAttack(executor, attack, detectedAttack('203.0.113.1', began), new Date()),
    /outside a transaction/,
  );
});

const unseen = (vector = 'udp-amplification') => profileOf(vector, { samples: 0, length: { min: 0, p5: 0, max: 0 } });
const dueNow = (uuid: string) =>
  api.database.pool.query('update mitigation_review set due_at = now() where attack_uuid = $1', [uuid]);

test('a vector of which nothing was seen waits for what it looks like, for a moment and no longer', async () => {
  const [soon, late] = [nextAddress(), nextAddress()];
  await policy(soon, { mitigation: 'flowspec' });
  await policy(late, { mitigation: 'flowspec' });
  const blind = (dst: string) => detectedAttack(dst, began, { profile: [unseen()] });
  const detected = blind(soon);
  await tell(detected);
  assert.deepEqual([await rulesOn(soon), await flowrulesOn(soon)], [[], []]);
  await tell(
    { ...detected, phase: 'changed', profile: detectedAttack(soon, began).profile },
    new Date(Date.now() + 250),
  );
  assert.deepEqual(
    live(await flowrulesOn(soon)).map(({ components }) => components['source-port']),
    ['53', undefined],
  );

  const other = blind(late);
  const uuid = await tell(other);
  await sweepOnce(api.database.pool, announcing);
  assert.deepEqual(await flowrulesOn(late), [], 'not yet');
  await dueNow(uuid);
  await sweepOnce(api.database.pool, announcing);
  const [wide] = await flowrulesOn(late);
  assert.equal(wide.components['source-port'].split(',').length, 20);
  await tell(
    { ...other, phase: 'changed', profile: detectedAttack(late, began).profile },
    new Date(Date.now() + 6_000),
  );
  assert.deepEqual(
    live(await flowrulesOn(late)).map(({ components }) => components['source-port']),
    ['53', undefined],
    'and gives way to what is seen',
  );
  assert.equal(live(await rulesOn(late)).length, 1);
  await tell({ ...other, phase: 'changed' }, new Date(Date.now() + 20_000));
  assert.equal(
    live(await flowrulesOn(late))[0].components['source-port'],
    '53',
    'what is out of sight is kept as it is',
  );
});

test('another policy counts at once, without a report: made, changed, removed, of an account too, and after the end', async () => {
  const dst = nextAddress();
  const detected = detectedAttack(dst, began, { measured: { at_ms: Date.now(), pps: 48_000, bps: 537_600_000 } });
  await tell(detected);
  const review = () => sweepOnce(api.database.pool, announcing);
  const announced = async () =>
    live(await flowrulesOn(dst)).filter(({ state_reason }) => /No BGP speaker/.test(state_reason));
  const counts = async () => [(await announced()).length, live(await rulesOn(dst)).length];
  assert.deepEqual(await counts(), [0, 0]);
  const uuid = await policy(dst, { mitigation: 'flowspec' });
  await review();
  assert.deepEqual(await counts(), [2, 1]);
  const change = (mitigation: string) =>
    api.call('changeDetectionPolicy', { uuid }, { key: api.operatorKey, body: { mitigation } });
  await change('observe');
  await review();
  assert.deepEqual(await counts(), [0, 0]);
  await change('edge');
  await review();
  assert.deepEqual(await counts(), [0, 1]);
  const position = await lastPosition();
  await review();
  assert.deepEqual(await entriesSince(position), []);
  await change('flowspec');
  await api.call('deleteDetectionPolicy', { uuid }, { key: api.operatorKey });
  await review();
  assert.deepEqual(await counts(), [0, 0]);
  const account = await policy(user.uuid, { mitigation: 'flowspec' });
  await review();
  assert.deepEqual(await counts(), [2, 1]);
  await tell({ ...detected, phase: 'ended', ended_ms: Date.now() });
  assert.deepEqual(await counts(), [2, 1]);
  await api.call('deleteDetectionPolicy', { uuid: account }, { key: api.operatorKey });
  await review();
  assert.deepEqual(await counts(), [0, 0]);
});

test('an attack goes on as the next holder’s at once, with measures, and no step of it is said to have taken long', async () => {
  const dst = '198.51.100.200';
  await policy(dst, { mitigation: 'flowspec' });
  const former = await api.user(provider, ['198.51.100.200/29']);
  const ongoing = detectedAttack(dst, began, { measured: { at_ms: Date.now(), pps: 48_000, bps: 537_600_000 } });
  const uuid = await tell(ongoing);
  assert.ok((await read(uuid, former.key)).timings.decide_ms >= 0);
  const moved = { key: provider.key, body: { user_uuid: former.uuid, ips: ['198.51.100.200/29'] } };
  await api.call('deleteUserIps', {}, moved);
  await sweepOnce(api.database.pool, announcing);
  assert.equal(live(await rulesOn(dst, provider.key)).length, 1, 'meanwhile it is the provider’s');
  const next = await api.user(provider, ['198.51.100.200/29']);
  await sweepOnce(api.database.pool, announcing);
  const [rule] = live(await rulesOn(dst, next.key));
  assert.notEqual(rule.attack_uuid, uuid);
  const part = await read(rule.attack_uuid, next.key);
  assert.deepEqual([part.state, part.owner_uuid, part.timings], ['ongoing', next.uuid, undefined]);
  assert.equal((await read(uuid, former.key)).end_reason, 'holder_changed');
  assert.equal(live(await flowrulesOn(dst, next.key)).length, 2);
  const { rows } = await api.database.pool.query('select from attack where external_id = $1', [ongoing.id]);
  const later = { ...ongoing, phase: 'changed' as const, measured: { ...ongoing.measured, at_ms: Date.now() + 50 } };
  assert.equal(await tell(later, new Date(Date.now() + 60)), rule.attack_uuid);
  const again = await api.database.pool.query('select from attack where external_id = $1', [ongoing.id]);
  assert.equal(again.rowCount, rows.length);
  assert.equal((await read(rule.attack_uuid, next.key)).timings, undefined);
});

test('on a subnet nobody’s narrower policy is overridden, and nobody is limited for the sake of a neighbour', async () => {
  const holder = await api.provider(['203.0.112.0/25']);
  const alice = await api.user(holder, ['203.0.112.0/28']);
  const bob = await api.user(holder, ['203.0.112.16/28']);
  await policy(holder.uuid, { mitigation: 'flowspec' });
  const observing = await policy(alice.uuid, { mitigation: 'observe' });
  const whole = '203.0.112.0/25';
  const shares = (...of: [string, number][]) => of.map(([value, share]) => ({ value, share }));
  const destinations = shares(['203.0.112.2', 0.5], ['203.0.112.17', 0.5]);
  const detected = detectedAttack(whole, began, {
    vectors: ['udp-other'],
    profile: [profileOf('udp-other', { destinations })],
  });
  const uuid = await tell(detected);
  const all = async (id: string): Promise<Any[]> =>
    (await Promise.all([holder, alice, bob].map(async ({ key }) => (await api.call(id, {}, { key })).body))).flat();
  const routes = async () =>
    live(await all('listFlowrules'))
      .filter(({ state_reason }) => /No BGP speaker/.test(state_reason))
      .map(({ dst, action }) => [dst, action]);
  const edge = async () => live(await all('listFirewallRules')).map(({ dst }) => dst);
  assert.deepEqual(await routes(), [['203.0.112.17', 'rate-limit']]);
  assert.deepEqual(await edge(), ['203.0.112.17']);
  const [held] = live(await all('listFlowrules')).filter(({ dst }) => dst === whole);
  assert.match(held.state_reason, /policy for 203\.0\.112\.0\/28 allows less/);
  const packet = { dst: '203.0.112.17', src: '9.9.9.9', protocol: 'udp', port: { src: 1, dst: 4000 } };
  const explained = await api.call('explainPacket', {}, { key: bob.key, body: packet });
  assert.match(explained.body.trail[0].message, /a measure against an attack on 203\.0\.112\.0\/25/);

  await api.call('deleteDetectionPolicy', { uuid: observing }, { key: api.operatorKey });
  await sweepOnce(api.database.pool, announcing);
  assert.deepEqual(
    (await routes()).map(([dst]) => dst).sort(),
    ['203.0.112.17', '203.0.112.2'],
    'each has its own limit',
  );
  const position = await lastPosition();
  await tell({ ...detected, phase: 'changed' }, new Date(Date.now() + 20_000));
  assert.deepEqual(await entriesSince(position), []);
  const spread = [profileOf('udp-other', { destinations: shares(['203.0.112.2', 0.1], ['203.0.112.17', 0.1]) })];
  await tell({ ...detected, phase: 'changed', profile: spread }, new Date(Date.now() + 40_000));
  assert.deepEqual(await routes(), [[whole, 'rate-limit']], 'too many are attacked');
  assert.deepEqual(await edge(), [whole]);
  assert.equal((await read(uuid, holder.key)).mitigation, 'flowspec');
});

/** Nothing is left of the budget, and on a subnet some are attacked. */
async function giveUp(whole: string, destinations: readonly string[]) {
  const { rows } = await api.database.pool.query(
    `select count(*)::int as used from flowrule where held is null and deletion_marked_at is null
      and fields->>'action' <> 'blackhole'`,
  );
  const share = 1 / destinations.length;
  const profile = [profileOf('udp-other', { destinations: destinations.map((value) => ({ value, share })) })];
  const detected = detectedAttack(whole, began, { vectors: ['udp-other'], profile });
  const full = { flowspecBudget: rows[0].used, hasSpeaker: true };
  let seconds = 0;
  const again = async () => {
    seconds += 20;
    await tell({ ...detected, phase: 'changed' }, new Date(Date.now() + seconds * 1000), full);
  };
  const announced = async () =>
    live(await list('listAllFlowrules', whole, api.operatorKey))
      .filter(({ state_reason }) => /No BGP speaker/.test(state_reason))
      .map(({ dst, action }) => [dst, action])
      .toSorted();
  await tell(detected, new Date(), full);
  const end = () => tell({ ...detected, phase: 'ended', ended_ms: Date.now() }, new Date(), full);
  return { again, announced, end };
}

test('a policy for everything or for an account gives up attacked addresses alone, and none whose own policy observes', async () => {
  for (const [narrower, whole, quiet, attacked, spared] of [
    ['account', '203.0.112.128/26', '203.0.112.160/27', '203.0.112.130', '203.0.112.170'],
    ['subnet', '203.0.112.192/26', '203.0.112.224/27', '203.0.112.194', '203.0.112.230'],
    ['account', '2001:db8:3:4::/64', '2001:db8:3:4::1:0/112', '2001:db8:3:4::7', '2001:db8:3:4::1:7'],
    ['subnet', '2001:db8:3:5::/64', '2001:db8:3:5::1:0/112', '2001:db8:3:5::7', '2001:db8:3:5::1:7'],
  ] as const) {
    const holder = await api.provider([whole]);
    await policy(holder.uuid, { mitigation: 'rtbh' });
    const careful = await api.user(holder, [quiet]);
    const scope = narrower === 'account' ? careful.uuid : quiet;
    const observing = await policy(scope, { mitigation: 'observe' });
    const { announced, again } = await giveUp(whole, [attacked, spared]);
    assert.deepEqual(await announced(), [[attacked, 'blackhole']], `${whole}: ${narrower}`);
    const edge = [...(await rulesOn(whole, holder.key)), ...(await rulesOn(whole, careful.key))];
    assert.deepEqual(new Set(live(edge).map(({ dst }) => dst)), new Set([attacked]));
    await api.call('deleteDetectionPolicy', { uuid: observing }, { key: api.operatorKey });
    await again();
    const both = [attacked, spared].toSorted().map((dst) => [dst, 'blackhole']);
    assert.deepEqual(await announced(), both);
    const position = await lastPosition();
    await again();
    assert.deepEqual(await entriesSince(position), []);
  }
});

test('a whole subnet is given up only where a policy names it and none inside says less', async () => {
  const whole = '198.18.9.0/24';
  const holder = await api.provider([whole]);
  const named = await policy(whole, { mitigation: 'rtbh' });
  const { announced, again } = await giveUp(whole, ['198.18.9.130', '198.18.9.131']);
  assert.deepEqual(await announced(), [[whole, 'blackhole']]);
  const inside = await policy('198.18.9.200', { mitigation: 'edge' });
  await again();
  assert.deepEqual(
    (await announced()).map(([dst]) => dst),
    ['198.18.9.130', '198.18.9.131'],
  );
  await api.call('deleteDetectionPolicy', { uuid: inside }, { key: api.operatorKey });
  await api.call('deleteDetectionPolicy', { uuid: named }, { key: api.operatorKey });
  await policy(holder.uuid, { mitigation: 'flowspec', allow_rtbh: true });
  await again();
  assert.deepEqual(
    (await announced()).map(([dst]) => dst),
    ['198.18.9.130', '198.18.9.131'],
  );
});

test('what is kept of an attack on a subnet that is over goes with a policy inside that lets less be done', async () => {
  const whole = '198.18.10.0/24';
  const holder = await api.provider([whole]);
  await policy(whole, { mitigation: 'rtbh' });
  const { announced, end } = await giveUp(whole, ['198.18.10.130', '198.18.10.131']);
  await end();
  await sweepOnce(api.database.pool, announcing);
  assert.deepEqual(await announced(), [[whole, 'blackhole']]);
  const inside = await policy('198.18.10.200', { mitigation: 'flowspec' });
  await sweepOnce(api.database.pool, announcing);
  assert.deepEqual(await announced(), []);
  const rules = async () => live(await rulesOn(whole, holder.key));
  assert.equal((await rules()).length, 1);
  await api.call('changeDetectionPolicy', { uuid: inside }, { key: api.operatorKey, body: { mitigation: 'observe' } });
  await sweepOnce(api.database.pool, announcing);
  assert.deepEqual(await rules(), []);
});

test('beyond the budget no route is widened over a policy that allows less, and one that was gives way', async () => {
  const around = '198.51.100.32/28';
  const [first, second] = ['198.51.100.33', '198.51.100.34'] as const;
  const holder = await api.user(provider, [around]);
  await policy(around, { mitigation: 'flowspec' });
  const observing = await policy('198.51.100.40', { mitigation: 'observe' });
  const { rows } = await api.database.pool.query(
    `select count(*)::int as used from flowrule where held is null and deletion_marked_at is null
      and fields->>'action' <> 'blackhole'`,
  );
  const settings = { flowspecBudget: rows[0].used + 1, hasSpeaker: true };
  const gre = (dst: string) => detectedAttack(dst, began, { vectors: ['gre'], profile: [profileOf('gre')] });
  await tell(gre(first), new Date(), settings);
  const other = gre(second);
  await tell(other, new Date(), settings);
  const routes = async () =>
    live(await flowrulesOn(around, holder.key))
      .filter(({ state_reason }) => /No BGP speaker/.test(state_reason))
      .map(({ dst }) => dst);
  assert.deepEqual(await routes(), [first]);
  await api.call('deleteDetectionPolicy', { uuid: observing }, { key: api.operatorKey });
  await tell({ ...other, phase: 'changed' }, new Date(Date.now() + 20_000), settings);
  assert.deepEqual(await routes(), [around]);
  await policy('198.51.100.40', { mitigation: 'observe' });
  await tell({ ...other, phase: 'changed' }, new Date(Date.now() + 40_000), settings);
  assert.deepEqual(await routes(), [second]);
});

test('without a speaker an attack is not said to be announced', async () => {
  const dst = nextAddress();
  await policy(dst, { mitigation: 'flowspec' });
  const uuid = await tell(detectedAttack(dst, began), new Date(), { flowspecBudget: defaultFlowspecBudget });
  const attack = await read(uuid);
  assert.equal(attack.mitigation, 'edge');
  assert.deepEqual(
    attack.actions.map(({ action }: Any) => action),
    ['edge', 'flowspec-proposed', 'flowspec-proposed'],
  );
});
