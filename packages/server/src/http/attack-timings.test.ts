import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { noteDecision } from '../commands/attack-evidence.ts';
import { type Executor, transact } from '../commands/executor.ts';
import { done } from '../commands/outcome.ts';
import { recordDetectedAttack } from '../commands/record-detected-attack.ts';
import { detectedAttack } from '../commands/testing/detected.ts';
import { newUuid } from '../store/new-uuid.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { type ApiFixture, type Holder, request, startApi } from './testing/api-fixture.ts';
import { type ControlPlane, startControlPlane } from './testing/control-plane.ts';
import { ReportingRouter } from './testing/reporting-router.ts';

interface Heard {
  readonly atMilliseconds: number;
  // biome-ignore lint/suspicious/noExplicitAny: the data of an event.
  readonly body: any;
}

let api: ApiFixture;
let plane: ControlPlane;
let provider: Holder;
let receiver: Server;
let routers: ReportingRouter[] = [];
const heard: Heard[] = [];
const heardOf = (uuid: string) => heard.filter(({ body }) => body.data.uuid === uuid);
const names = (uuid: string) => heardOf(uuid).map(({ body }) => body.type);

before(async () => {
  api = await startApi();
  plane = await startControlPlane(api.database);
  provider = await api.provider(['203.0.113.0/24']);
  await api.call('createLocation', {}, { key: api.operatorKey, body: { name: 'fra1' } });
  receiver = createServer((incoming, response) => {
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('end', () => {
      heard.push({ atMilliseconds: performance.now(), body: JSON.parse(Buffer.concat(parts).toString()) });
      response.end();
    });
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const made = await request(plane.url, 'POST', '/v1/webhook', {
    key: provider.key,
    body: { url, events: ['attack.*'] },
  });
  assert.equal(made.status, 200, made.text);
});
after(async () => {
  for (const router of routers) await router.stop();
  receiver?.close();
  receiver?.closeAllConnections();
  await plane?.stop();
  await api?.stop();
});

const read = async (uuid: string) => (await api.call('readAttack', { uuid }, { key: provider.key })).body[0];

/** As the mitigation writes a measure: its row and its entry, in the transaction of the report. */
async function writeRule(executor: Executor, attackUuid: string, dst: string): Promise<void> {
  const fields = { dst, protocol: 'udp', action: 'drop', priority: 1000, disabled: false };
  await executor.client.query(
    `with drawn as (select nextval('change_position') as position), made as (
        insert into firewall_rule (uuid, sequence, owner_uuid, provider_uuid, subnet, dst, fields, created_at, updated_at,
          change_position, origin, attack_uuid, purpose)
        select $1, position, $2, $2, '203.0.113.0/24', $3, $4, date_trunc('milliseconds', now()),
          date_trunc('milliseconds', now()), position, 'attack', $5, 'udp-amplification: drop' from drawn returning *
      )
      insert into change (position, kind, object_uuid) select change_position, 'firewall_rule', uuid from made`,
    [newUuid(), provider.uuid, dst, JSON.stringify(fields), attackUuid],
  );
}

async function writeFlowrule(executor: Executor, attackUuid: string, dst: string): Promise<string> {
  const uuid = newUuid();
  await executor.client.query(
    `with drawn as (select nextval('change_position') as position), made as (
        insert into flowrule (uuid, sequence, owner_uuid, provider_uuid, dst, prefix, attack_uuid, fields, nlri, created_at,
          updated_at, change_position, origin, purpose)
        select $1::uuid, position, $2, $2, $3, '203.0.113.0/24', $4, $5, $1::uuid::text, date_trunc('milliseconds', now()),
          date_trunc('milliseconds', now()), position, 'attack', 'udp-amplification: drop' from drawn returning *
      )
      insert into change (position, kind, object_uuid) select change_position, 'flowrule', uuid from made`,
    [uuid, provider.uuid, dst, attackUuid, JSON.stringify({ dst, components: {}, action: 'discard' })],
  );
  return uuid;
}

/** A detector's report, in its one transaction. Returns when it was handed over, too. */
async function tell(dst: string, measures: (executor: Executor, uuid: string) => Promise<void> = async () => {}) {
  const handed = performance.now();
  const now = Date.now();
  const detected = detectedAttack(dst, now - 300, {
    detected_ms: now - 50,
    measured: { at_ms: now, pps: 9e4, bps: 9e8 },
  });
  const outcome = await transact(api.database.pool, async (executor) => {
    const recorded = await recordDetectedAttack(executor, detected, new Date(now));
    if (!recorded.ok) return recorded;
    await measures(executor, recorded.value.uuid);
    await noteDecision(executor, recorded.value.uuid);
    return done(recorded.value.uuid);
  });
  assert.ok(outcome.ok, outcome.ok ? '' : JSON.stringify(outcome.failure));
  return { uuid: outcome.value, detected, handed };
}

test('the start of an attack is told at once, with what is known by then', async (context) => {
  const waits: number[] = [];
  for (let round = 0; round < 5; round++) {
    const { uuid, handed } = await tell(`203.0.113.${10 + round}`);
    await waitUntil(() => heardOf(uuid).length > 0, 'the webhook');
    const [first] = heardOf(uuid);
    assert.equal(first?.body.type, 'attack.started');
    // The default policy proposes: that is decided in the report's transaction.
    const { detect_ms, decide_ms, ...later } = first?.body.data.timings ?? {};
    assert.equal(detect_ms, 250);
    assert.ok(decide_ms >= 50 && decide_ms < 10_000, `${decide_ms}`);
    assert.deepEqual(later, {});
    waits.push((first?.atMilliseconds ?? 0) - handed);
  }
  const sorted = waits.toSorted((a, b) => a - b);
  context.diagnostic(`report → webhook: median ${sorted[2]?.toFixed(0)} ms, worst ${sorted[4]?.toFixed(0)} ms of 5`);
  // Followed by polling at the latest: 250 ms, and 50 ms in which events are gathered.
  assert.ok((sorted[2] ?? 0) < 1_000, `${waits}`);
});

test('change and end of an attack are told with the timings that were measured meanwhile', async () => {
  const dst = '203.0.113.20';
  let flowrule = '';
  const { uuid, detected } = await tell(dst, async (executor, attack) => {
    flowrule = await writeFlowrule(executor, attack, dst);
  });
  await waitUntil(() => names(uuid).includes('attack.started'), 'the start');
  const { timings } = await read(uuid);
  assert.deepEqual(Object.keys(timings), ['detect_ms', 'decide_ms']);
  assert.ok(timings.decide_ms >= 50 && timings.decide_ms < 10_000, `${timings.decide_ms}`);
  // As the reconciler notes what the BGP speaker has.
  await api.database.pool.query(
    `with applied as (
        update flowrule set applied_position = change_position, applied_at = clock_timestamp() where uuid = $1 returning uuid
      )
      insert into change (kind, object_uuid) select 'flowrule', uuid from applied`,
    [flowrule],
  );
  await waitUntil(async () => (await read(uuid)).timings.announce_ms !== undefined, 'the time of the announcement');
  await waitUntil(() => names(uuid).includes('attack.changed'), 'the change');
  const changed = heardOf(uuid).find(({ body }) => body.type === 'attack.changed');
  const known = (await read(uuid)).timings;
  assert.deepEqual(changed?.body.data.timings, known);
  assert.ok(known.announce_ms > 0 && known.announce_ms < 10_000, `${known.announce_ms}`);
  const end = { ...detected, phase: 'ended', ended_ms: Date.now() } as const;
  await transact(api.database.pool, (executor) => recordDetectedAttack(executor, end, new Date()));
  await waitUntil(() => names(uuid).includes('attack.ended'), 'the end');
  const ended = heardOf(uuid).at(-1);
  assert.deepEqual([ended?.body.type, ended?.body.data.timings], ['attack.ended', known]);
  assert.equal(names(uuid).filter((name) => name === 'attack.changed').length, 1, 'once');
});

test('measures at the edge are in force when the last router has them', async () => {
  const start = (name: string) => ReportingRouter.start(plane.url, api.operatorKey, { name, location: 'fra1' }, []);
  routers = [await start('r1'), await start('r2')];
  for (const router of routers) await router.tell();
  const dst = '203.0.113.30';
  const [, slow] = routers;
  assert.ok(slow);
  slow.held = true;
  const { uuid } = await tell(dst, (executor, attack) => writeRule(executor, attack, dst));
  await waitUntil(() => names(uuid).includes('attack.started'), 'the start');
  const { rows } = await api.database.pool.query(
    'select change_xid::text as xid from firewall_rule where attack_uuid = $1',
    [uuid],
  );
  const acknowledged = async () => {
    const acks = await api.database.pool.query('select from router where acked_xid >= $1::xid8', [rows[0].xid]);
    return acks.rowCount;
  };
  await waitUntil(async () => (await acknowledged()) === 1, 'the first router has it');
  assert.equal((await read(uuid)).timings.enforce_ms, undefined, 'one router does not have it');
  const heldUntil = Date.now();
  slow.held = false;
  await waitUntil(async () => (await read(uuid)).timings.enforce_ms !== undefined, 'the time of enforcement');
  const attack = await read(uuid);
  const decidedAt = Date.parse(attack.started_at) + attack.timings.detect_ms + attack.timings.decide_ms;
  assert.ok(decidedAt + attack.timings.enforce_ms >= heldUntil - 2, JSON.stringify(attack.timings));
  assert.equal(attack.timings.announce_ms, undefined, 'there was nothing to announce');
  await waitUntil(() => names(uuid).includes('attack.changed'), 'the change');
});

test('of what is proposed only, nothing is announced, and nothing is waited for', async () => {
  const dst = '203.0.113.40';
  const { uuid } = await tell(dst, async (executor, attack) => {
    const flowrule = await writeFlowrule(executor, attack, dst);
    await executor.client.query(`update flowrule set held = 'The policy observes only.' where uuid = $1`, [flowrule]);
  });
  const followed = async () =>
    (await api.database.pool.query('select followed from attack_timing where attack_uuid = $1', [uuid])).rows[0]
      .followed;
  await waitUntil(followed, 'it is not followed any more');
  assert.deepEqual(Object.keys((await read(uuid)).timings), ['detect_ms', 'decide_ms']);
});
