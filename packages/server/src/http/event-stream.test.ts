import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { post, report } from '../agents/testing/agent-client.ts';
import { openSse, type SseClient } from '../events/testing/sse-client.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { sweepOnce } from '../sweep/sweeper.ts';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './testing/api-fixture.ts';
import { type ControlPlane, startControlPlane } from './testing/control-plane.ts';

let api: ApiFixture;
let plane: ControlPlane;
let provider: Holder;
let user: Holder;
let router: { readonly uuid: string; readonly key: string };

before(async () => {
  api = await startApi();
  plane = await startControlPlane(api.database, { streams: { heartbeatMilliseconds: 50 } });
  provider = await api.provider(['203.0.113.0/24']);
  user = await api.user(provider, ['203.0.113.0/28']);
  await api.call('createLocation', {}, { key: api.operatorKey, body: { name: 'fra1' } });
  router = await newRouter('r1');
  await waitUntil(() => plane.events.leads, 'the replica leads');
  await acknowledge();
});
after(async () => {
  for (const client of opened) client.close();
  await plane?.stop();
  await api.stop();
});

const opened: SseClient[] = [];
async function follow(key = user.key, query = '', lastId?: string): Promise<SseClient> {
  const client = await openSse(plane.url, key, query, lastId);
  opened.push(client);
  if (client.status === 200) await waitUntil(() => client.heartbeats > 0, 'the stream stands at the present');
  return client;
}
beforeEach(() => {
  for (const client of opened.splice(0)) client.close();
});

async function newRouter(name: string): Promise<{ uuid: string; key: string }> {
  const ask = { key: api.operatorKey, body: { name, location: 'fra1' } };
  const { body } = await request(plane.url, 'POST', '/v1/operator/router', ask);
  const answer = await post(plane.url, '/agent/v1/enroll', { token: body.enrollment_token });
  return { uuid: body.uuid, key: String(answer.body.key) };
}

/** As an agent that has put in force all that is settled by now. */
async function acknowledge(more: object = {}, key = router.key): Promise<void> {
  const { rows } = await api.database.pool.query<{ xid: string; position: number }>(
    `select xid::text as xid, position from change where xid < pg_snapshot_xmin(pg_current_snapshot())
      order by change.xid desc, position desc limit 1`,
  );
  const [last] = rows;
  const cursor = last && plane.agents.cursors.write({ xid: Number(last.xid), position: last.position });
  const { status, body } = await report(plane.url, key, { ...(cursor !== undefined && { cursor }), ...more });
  assert.equal(status, 200, JSON.stringify(body));
}

const rule = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
async function send(method: string, path: string, body?: object, key = user.key): Promise<Reply> {
  const reply = await request(plane.url, method, `/v1${path}`, { key, body });
  assert.equal(reply.status, 200, reply.text);
  return reply;
}
const told = (client: SseClient, uuid: string) =>
  client.messages.filter(({ data }) => data.data?.uuid === uuid).map(({ event }) => event.split('.')[1]);
const until = (client: SseClient, uuid: string, ...whats: string[]) =>
  waitUntil(() => told(client, uuid).join() === whats.join(), `${whats.join(', ')} is told of ${uuid}`).catch(
    (error: Error) => assert.deepEqual(told(client, uuid), whats, error.message),
  );

test('each state of a change is told once, with the object as a read answers it', async () => {
  const client = await follow();
  const { uuid } = (await send('POST', '/firewall/rule', rule)).body;
  await until(client, uuid, 'pending');
  await acknowledge();
  await until(client, uuid, 'pending', 'active');
  const message = client.messages.at(-1);
  assert.deepEqual(message?.data.data, (await send('GET', `/firewall/rule/${uuid}`)).body[0]);
  assert.deepEqual(
    [message?.event, message?.data.type, message?.data.id],
    ['firewall_rule.active', 'firewall_rule.active', message?.id],
  );

  await send('PATCH', `/firewall/rule/${uuid}`, { disabled: true });
  await until(client, uuid, 'pending', 'active', 'pending');
  await acknowledge();
  await until(client, uuid, 'pending', 'active', 'pending', 'disabled');
  await send('DELETE', `/firewall/rule/${uuid}`);
  await until(client, uuid, 'pending', 'active', 'pending', 'disabled', 'marked_for_deletion');
  await acknowledge();
  await sweepOnce(api.database.pool);
  await until(client, uuid, 'pending', 'active', 'pending', 'disabled', 'marked_for_deletion', 'deleted');
  assert.equal(client.messages.at(-1)?.data.data.dst, rule.dst, 'as it was before');
  const { rows } = await api.database.pool.query('select from event_object where object_uuid = $1', [uuid]);
  assert.equal(rows.length, 0, 'nothing is kept of it');
});

test('a refusal is told, also later on, and so is its end; a reason that changes is not', async () => {
  const client = await follow();
  const { uuid } = (await send('POST', '/firewall/rule', rule)).body;
  await until(client, uuid, 'pending');
  await acknowledge({ failures: [{ uuid, reason: 'no such device' }] });
  await until(client, uuid, 'pending', 'failed');
  assert.match(client.messages.at(-1)?.data.data.state_reason, /no such device/);
  await acknowledge({ failures: [{ uuid, reason: 'out of memory' }] });
  await acknowledge();
  await until(client, uuid, 'pending', 'failed', 'active');
  await acknowledge({ failures: [{ uuid, reason: 'lost a device' }] });
  await until(client, uuid, 'pending', 'failed', 'active', 'failed');
  await acknowledge();
  await until(client, uuid, 'pending', 'failed', 'active', 'failed', 'active');
});

test('routers that come, fall silent or go tell nothing of objects whose change is in force', async () => {
  const client = await follow();
  const { uuid } = (await send('POST', '/firewall/rule', rule)).body;
  await until(client, uuid, 'pending');
  await acknowledge();
  await until(client, uuid, 'pending', 'active');
  const silentRouter = await newRouter('r2');
  const read = async () => (await send('GET', `/firewall/rule/${uuid}`)).body[0].state;
  await waitUntil(async () => (await read()) === 'pending', 'the new router has nothing yet');
  await report(plane.url, silentRouter.key, { enforcement: { mode: 'dry', reason: 'a test' } });
  // A change is told of only when the new router has it too.
  const later = (await send('POST', '/firewall/rule', rule)).body.uuid;
  await until(client, later, 'pending');
  await acknowledge();
  await acknowledge({ enforcement: { mode: 'dry', reason: 'a test' } }, silentRouter.key);
  await api.database.pool.query(`update router set last_seen_at = now() - interval '2 minutes' where name = 'r2'`);
  await plane.agents.registry.refresh();
  await send('DELETE', `/operator/router/${silentRouter.uuid}`, undefined, api.operatorKey);
  await until(client, later, 'pending', 'active');
  assert.deepEqual(told(client, uuid), ['pending', 'active']);
});

test('of two routers the last one to acknowledge settles a change, also after one began anew', async () => {
  const second = await newRouter('r3');
  await acknowledge({}, second.key);
  const client = await follow();
  const { uuid } = (await send('POST', '/firewall/rule', rule)).body;
  await until(client, uuid, 'pending');
  await acknowledge({}, second.key);
  // It starts from nothing, as after a fresh installation.
  await report(plane.url, second.key, {});
  await acknowledge();
  assert.deepEqual(told(client, uuid), ['pending']);
  await acknowledge({}, second.key);
  await until(client, uuid, 'pending', 'active');
  await send('DELETE', `/operator/router/${second.uuid}`, undefined, api.operatorKey);
});

test('attacks are told as started, changed and ended; one told of when it is over as both', async () => {
  const client = await follow(provider.key, '?events=attack.*');
  const attack = {
    source: 'elsewhere',
    dst: '203.0.113.9',
    started_at: '2026-01-31T12:00:00.000Z',
    vectors: ['udp_flood'],
  };
  const record = async (more: object) =>
    (await send('POST', '/operator/attack', { ...attack, ...more }, api.operatorKey)).body.uuid;
  const uuid = await record({ external_id: 'a1', pps: 10 });
  await until(client, uuid, 'started');
  assert.equal(await record({ external_id: 'a1', pps: 20 }), uuid);
  await until(client, uuid, 'started', 'changed');
  await record({ external_id: 'a1', ended_at: '2026-01-31T12:10:00.000Z' });
  await until(client, uuid, 'started', 'changed', 'ended');
  assert.equal(client.messages.at(-1)?.data.data.state, 'ended');
  const over = await record({ external_id: 'a2', ended_at: '2026-01-31T12:10:00.000Z' });
  await until(client, over, 'started', 'ended');
});

test('filters, tunnels and PTR records are told of like rules', async () => {
  const client = await follow();
  const filter = (await send('POST', '/filter', { dst: '203.0.113.7', filter: 20 })).body.uuid;
  const tunnel = (await send('POST', '/tunnel', { ips: ['203.0.113.8'], endpoint: '192.0.2.1', type: 'GRE' })).body
    .uuid;
  const rdns = (await send('POST', '/rdns', { ips: '203.0.113.7', record: 'a.example.net' })).body.uuid;
  await until(client, filter, 'pending');
  await until(client, tunnel, 'pending');
  await until(client, rdns, 'pending');
  assert.deepEqual(new Set(client.names()), new Set(['filter.pending', 'tunnel.pending', 'rdns.pending']));
  await acknowledge();
  await acknowledge({ capabilities: ['filter:20'] });
  await until(client, filter, 'pending', 'active');
  assert.deepEqual(told(client, tunnel), ['pending'], 'nothing ends it');
  for (const [path, uuid] of [
    ['/filter', filter],
    ['/tunnel', tunnel],
  ]) {
    await send('DELETE', `${path}/${uuid}`);
  }
  await until(client, tunnel, 'pending', 'marked_for_deletion');
  await acknowledge({ capabilities: ['filter:20'] });
  await sweepOnce(api.database.pool);
  await until(client, tunnel, 'pending', 'marked_for_deletion', 'deleted');
  await until(client, filter, 'pending', 'active', 'marked_for_deletion', 'deleted');
});

test('a client that comes back with the id that it had misses nothing and gets nothing twice', async () => {
  const whole = await follow();
  let cut = await follow();
  const seen: string[] = [];
  const made: string[] = [];
  let last = cut.lastId;
  for (let round = 0; round < 6; round++) {
    made.push((await send('POST', '/firewall/rule', rule)).body.uuid);
    // Also in the middle of a message, or before the first one.
    if (round % 2 === 0) await acknowledge();
    seen.push(...cut.messages.map(({ id }) => String(id)));
    cut.close();
    // As browsers do: a connection that brought no id leaves the former one.
    last = cut.lastId ?? last;
    cut = await openSse(plane.url, user.key, '', last);
    opened.push(cut);
  }
  await acknowledge();
  for (const uuid of made) await waitUntil(() => told(whole, uuid).at(-1) === 'active', 'all are in force');
  const all = () => [...seen, ...cut.messages.map(({ id }) => String(id))];
  await waitUntil(() => all().length >= whole.messages.length, 'the other client has them all');
  assert.deepEqual(
    all(),
    whole.messages.map(({ id }) => String(id)),
  );
});

test('what is chosen by name is sent, and the id moves on over the rest', async () => {
  const all = await follow();
  const client = await follow(user.key, '?events=firewall_rule.marked_for_deletion,tunnel.*');
  const { uuid } = (await send('POST', '/firewall/rule', rule)).body;
  await until(all, uuid, 'pending');
  await send('DELETE', `/firewall/rule/${uuid}`);
  await until(client, uuid, 'marked_for_deletion');
  await until(all, uuid, 'pending', 'marked_for_deletion');
  const later = (await send('POST', '/firewall/rule', rule)).body.uuid;
  await until(all, later, 'pending');
  const place = all.lastId;
  await waitUntil(() => client.lastId === place, 'a heartbeat names the last event though it was not sent');
});

test('an id whose followers are forgotten is told so, and the stream goes on with the oldest kept', async () => {
  const client = await follow();
  const { uuid } = (await send('POST', '/firewall/rule', rule)).body;
  await until(client, uuid, 'pending');
  const before = client.messages[0]?.id ?? '';
  await acknowledge();
  await until(client, uuid, 'pending', 'active');
  const last = client.messages.findLast(({ data }) => data.data.uuid === uuid);
  const [epoch, sequence] = (last?.id ?? '').split('-');
  const { pool } = api.database;
  await pool.query('update event_log set floor = $1', [Number(sequence)]);
  const late = await follow(user.key, '', before);
  assert.deepEqual(late.messages[0] && [late.messages[0].event, late.messages[0].id], ['gap', `${epoch}-${sequence}`]);
  assert.deepEqual(told(late, uuid), []);
  const intime = await follow(user.key, '', `${epoch}-${sequence}`);
  assert.deepEqual(intime.names(), []);
  const foreign = await follow(user.key, '', `0badcafe-${sequence}`);
  assert.deepEqual(foreign.names(), ['gap']);
  const beyond = await follow(user.key, '', `${epoch}-${Number(sequence) + 1000}`);
  assert.deepEqual(beyond.names(), ['gap']);
  await pool.query('update event_log set floor = 0');
  const everything = await follow(user.key, '?after=0');
  assert.ok(told(everything, uuid).length === 2 && !everything.names().includes('gap'));
});

test('a stream ends within a second when its key does', async () => {
  const key = await api.key(user.uuid);
  const { body } = await api.call('whoAmI', {}, { key });
  const client = await follow(key);
  const begin = Date.now();
  await api.call('revokeApiKey', { uuid: body.api_key.uuid }, { key: user.key });
  await waitUntil(() => client.closed, 'the end of the stream', 2_000);
  assert.ok(Date.now() - begin < 1_500);
  const expiring = await api.key(user.uuid, { expires_at: new Date(Date.now() + 700).toISOString() });
  const other = await follow(expiring);
  await waitUntil(() => other.closed, 'the end with the key', 3_000);
});

test('a key holds eight streams however many it asks for at once, and gets the place of each that ends', async () => {
  const key = await api.key(user.uuid);
  const openAll = async (count: number) => {
    const clients = await Promise.all(Array.from({ length: count }, () => openSse(plane.url, key)));
    opened.push(...clients);
    return clients;
  };
  const statuses = (clients: readonly SseClient[]) => clients.map(({ status }) => status).sort();
  // All of them are under way at the same time: the database keeps them waiting.
  const blocking = await api.database.connect('test lock');
  await blocking.query('begin; lock table event_log in access exclusive mode');
  const asked = Array.from({ length: 30 }, () => openAll(1));
  const first = await Promise.race(asked);
  await blocking.query('commit');
  await blocking.end();
  assert.deepEqual(statuses(first), [429], 'refused while the others wait');
  const clients = (await Promise.all(asked)).flat();
  assert.deepEqual(statuses(clients), [...Array(8).fill(200), ...Array(22).fill(429)]);
  for (const client of opened.splice(0)) client.close();
  // Clients that are gone before they are answered hold no place either.
  const { hostname, port } = new URL(plane.url);
  for (let each = 0; each < 30; each++) {
    const socket = connect(Number(port), hostname);
    socket.end(`GET /v1/event HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\n\r\n`, () => socket.destroy());
  }
  await waitUntil(async () => {
    const clients = await openAll(8);
    const all = statuses(clients).every((status) => status === 200);
    for (const client of clients) client.close();
    return all;
  }, 'all places are free again');
});

test('a client that does not read is cut off, and the others go on', async () => {
  const { hostname, port } = new URL(plane.url);
  const socket = connect(Number(port), hostname);
  socket.pause();
  socket.write(`GET /v1/event HTTP/1.1\r\nhost: x\r\nx-api-key: ${provider.key}\r\n\r\n`);
  await waitUntil(() => plane.events.streams.open === 1, 'the stream is open');
  const reading = await follow(provider.key, '?events=attack.started');
  const { pool } = api.database;
  let closed = false;
  socket.on('close', () => {
    closed = true;
  });
  let rounds = 0;
  for (; plane.events.streams.open === 2 && rounds < 60; rounds++) {
    await pool.query(
      `insert into event (name, object_uuid, owner_uuid, provider_uuid, data)
        select 'attack.started', gen_random_uuid(), $1, $1, json_build_object('uuid', '', 'filling', repeat('x', 20000))
        from generate_series(1, 50)`,
      [provider.uuid],
    );
    plane.events.streams.wake();
    await waitUntil(() => reading.messages.length >= (rounds + 1) * 50, 'the other client has read them');
  }
  await waitUntil(() => plane.events.streams.open === 1, 'it is dropped');
  socket.resume();
  await waitUntil(() => closed, 'its connection is over');
  assert.equal(reading.closed, false);
});

test('HEAD answers without opening a stream, and a stop of the service ends all of them', async () => {
  const head = await fetch(`${plane.url}/v1/event`, { method: 'HEAD', headers: { 'x-api-key': user.key } });
  assert.deepEqual([head.status, head.headers.get('content-type')], [200, 'text/event-stream; charset=utf-8']);
  const client = await follow();
  const begin = Date.now();
  await plane.stop();
  await waitUntil(() => client.closed, 'the end of the stream');
  assert.ok(Date.now() - begin < 3_000);
  plane = await startControlPlane(api.database);
  const again = await follow(user.key, '', client.lastId);
  assert.deepEqual(again.names(), []);
});
