/** What routers count and measure, as reads of filters and tunnels show it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { AgentProbe } from '@levee/contract/agent.ts';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './testing/api-fixture.ts';
import { type ControlPlane, startControlPlane } from './testing/control-plane.ts';
import { ReportingRouter } from './testing/reporting-router.ts';

let api: ApiFixture;
let plane: ControlPlane;
let user: Holder;
let routers: ReportingRouter[] = [];

before(async () => {
  api = await startApi();
  plane = await startControlPlane(api.database);
  user = await api.user(await api.provider(['203.0.113.0/24']), ['203.0.113.0/24']);
  await request(plane.url, 'POST', '/v1/operator/location', { key: api.operatorKey, body: { name: 'fra1' } });
  const able = ['filter:22', 'tunnel:GRE'];
  for (const [name, address] of [
    ['one', '192.0.2.1'],
    ['two', '192.0.2.2'],
  ]) {
    const announced = { name, location: 'fra1', tunnel_addresses: [address] };
    routers = [...routers, await ReportingRouter.start(plane.url, api.operatorKey, announced, able)];
  }
});
after(async () => {
  await Promise.all(routers.map((router) => router.stop()));
  await plane?.stop();
  await api?.stop();
});

async function good(method: string, path: string, body?: object): Promise<Reply> {
  const reply = await request(plane.url, method, `/v1${path}`, { key: user.key, ...(body !== undefined && { body }) });
  assert.equal(reply.status, 200, reply.text);
  return reply;
}

test('a filter shows what all routers discarded by it so far, wherever it is read', async () => {
  const { body: made } = await good('POST', '/filter', { dst: '203.0.113.7', filter: 22 });
  assert.deepEqual(made.hits, { packets: 0, bytes: 0 });
  const { body: rule } = await good('POST', '/firewall/rule', { dst: '203.0.113.7', protocol: 'tcp', action: 'drop' });
  const hit = (uuid: string, packets: number, minute: number) => ({
    uuid,
    packets,
    bytes: packets * 64,
    last_hit_at: `2026-01-31T12:0${minute}:00.000Z`,
  });
  const run = randomUUID();
  const [one, two] = routers;
  const first = { run, number: 1, hits: [hit(made.uuid, 10, 1), hit(rule.uuid, 3, 1), hit(randomUUID(), 5, 1)] };
  await one?.tell({ counters: first });
  await one?.tell({ counters: first });
  await one?.tell({ counters: { run, number: 2, hits: [hit(made.uuid, 1, 3), hit(made.uuid, 1, 2)] } });
  await two?.tell({ counters: { run: randomUUID(), number: 1, hits: [hit(made.uuid, 100, 2)] } });

  const expected = { packets: 112, bytes: 112 * 64, last_hit_at: '2026-01-31T12:03:00.000Z' };
  const read = await good('GET', `/filter/${made.uuid}`);
  const listed = await good('GET', '/filter');
  assert.deepEqual([read.body[0].hits, listed.body[0].hits], [expected, expected]);
  const { body: rules } = await good('GET', `/firewall/rule/${rule.uuid}`);
  assert.deepEqual(rules[0].hits, { packets: 3, bytes: 192, last_hit_at: '2026-01-31T12:01:00.000Z' });
});

test('a tunnel shows at each end how the customer answers, without a change of the tunnel', async () => {
  const { body: made } = await good('POST', '/tunnel', {
    ips: ['203.0.113.0/28'],
    endpoint: '198.51.100.9',
    type: 'GRE',
  });
  const places = async () => (await api.database.pool.query('select count(*)::int as n from change')).rows[0].n;
  const probesOf = async () => {
    const { body } = await good('GET', `/tunnel/${made.uuid}`);
    return body[0].tunnel_information.map(({ probe }: { probe?: object }) => probe);
  };
  assert.deepEqual(await probesOf(), [undefined, undefined]);
  const entries = await places();
  const [one, two] = routers;
  const found = (received: number, milliseconds: number): AgentProbe => ({
    uuid: made.uuid,
    sent: 2,
    received,
    rtt_ms: { min: milliseconds, avg: milliseconds, max: milliseconds },
    last_answer_at: '2026-01-31T12:00:01.000Z',
  });
  const startedAt = Date.now();
  await one?.tell({ probes: [found(2, 10), { ...found(1, 16), uuid: randomUUID() }] });
  await one?.tell({ probes: [found(1, 25.5)] });
  await two?.tell({ probes: [{ uuid: made.uuid, sent: 3, received: 0 }] });
  const [near, far] = await probesOf();
  const { at, ...nearRest } = near as { at: string };
  assert.ok(Math.abs(Date.parse(at) - startedAt) < 60_000);
  assert.deepEqual(nearRest, {
    rtt_ms: { min: 10, avg: 15.167, max: 25.5 },
    loss_percent: 25,
    last_answer_at: '2026-01-31T12:00:01.000Z',
  });
  assert.deepEqual({ ...far, at: '' }, { loss_percent: 100, at: '' });
  assert.equal(await places(), entries, 'no entry in the change log');

  await good('PATCH', `/tunnel/${made.uuid}`, { endpoint: '198.51.100.10' });
  assert.deepEqual(await probesOf(), [undefined, undefined], 'the former endpoint said nothing of the new one');
});

test('what one router measures of a tunnel that it has no end of is shown nowhere', async () => {
  const { body: made } = await good('POST', '/tunnel', {
    ips: ['203.0.113.32/28'],
    endpoint: '2001:db8:1::9',
    type: 'GRE',
  });
  assert.deepEqual(made.tunnel_information, []);
  await routers[0]?.tell({ probes: [{ uuid: made.uuid, sent: 1, received: 1 }] });
  assert.deepEqual((await api.database.pool.query('select count(*)::int as n from tunnel_probe')).rows, [{ n: 0 }]);
});
