import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openStream, post, report, type StreamClient } from '../agents/testing/agent-client.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './testing/api-fixture.ts';
import { type ControlPlane, startControlPlane } from './testing/control-plane.ts';

let api: ApiFixture;
let plane: ControlPlane;
let provider: Holder;

before(async () => {
  api = await startApi();
  plane = await startControlPlane(api.database);
  provider = await api.provider(['203.0.113.0/24']);
  await request(plane.url, 'POST', '/v1/operator/location', { key: api.operatorKey, body: { name: 'fra1' } });
});
after(async () => {
  await plane?.stop();
  await api.stop();
});

const rule = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
const send = (method: string, path: string, body: object | undefined, wait: number): Promise<Reply> =>
  request(plane.url, method, `/v1${path}`, { key: provider.key, body, headers: { prefer: `wait=${wait}` } });
const applied = (reply: Reply) => reply.headers.get('preference-applied');

async function newRouter(name: string): Promise<{ uuid: string; key: string }> {
  const ask = { key: api.operatorKey, body: { name, location: 'fra1' } };
  const { body } = await request(plane.url, 'POST', '/v1/operator/router', ask);
  const answer = await post(plane.url, '/agent/v1/enroll', { token: body.enrollment_token });
  return { uuid: body.uuid, key: String(answer.body.key) };
}

/** Acknowledges what the stream hands out, as an agent does, until the stream ends. */
async function follow(stream: StreamClient, acknowledge: (cursor: string) => Promise<unknown>): Promise<void> {
  let last: string | undefined;
  while (!stream.closed) {
    await waitUntil(() => stream.closed || stream.cursor !== last, 'a line or the end', 30_000);
    last = stream.cursor;
    if (last !== undefined && !stream.closed) await acknowledge(last);
  }
}

test('with no router, or dry ones alone, nothing is waited for', async () => {
  const none = await send('POST', '/firewall/rule', rule, 20);
  assert.equal(applied(none), 'wait=20, outcome=not-enforced');
  const { key, uuid } = await newRouter('dry1');
  assert.equal((await report(plane.url, key, { enforcement: { mode: 'dry', reason: 'a test' } })).status, 200);
  const begin = Date.now();
  const path = `/firewall/rule/${none.body.uuid}`;
  for (const [method, at, body] of [
    ['PATCH', path, { priority: 5 }],
    ['PUT', '/firewall/rules?dst=203.0.113.9', { rules: [{ protocol: 'udp', action: 'drop' }] }],
    ['DELETE', path, undefined],
  ] as const) {
    assert.equal(applied(await send(method, at, body, 20)), 'wait=20, outcome=not-enforced', method);
  }
  assert.ok(Date.now() - begin < 10_000);
  await request(plane.url, 'DELETE', `/v1/operator/router/${uuid}`, { key: api.operatorKey });
});

test('the answer says whether the change is in force, was refused, or is not there yet', async () => {
  const { key, uuid } = await newRouter('kernel1');
  const silent = await send('POST', '/firewall/rule', rule, 0);
  assert.equal(applied(silent), 'wait=0, outcome=timeout', 'it has not said what it is');
  const stream = await openStream(plane.url, key);
  const failures: { uuid: string; reason: string }[] = [];
  const following = follow(stream, async (cursor) => {
    // A router that refuses whatever is rejected.
    for (const [refused, fields] of stream.rules) {
      if (fields.action === 'reject') failures.push({ uuid: refused, reason: 'refused for this test' });
    }
    await report(plane.url, key, { enforcement: { mode: 'kernel' }, cursor, failures });
  });
  const good = await send('POST', '/firewall/rule', rule, 20);
  assert.deepEqual([applied(good), good.body.state], ['wait=20, outcome=applied', 'active']);
  const bad = await send('POST', '/firewall/rule', { ...rule, action: 'reject' }, 20);
  assert.deepEqual([applied(bad), bad.body.state], ['wait=20, outcome=failed', 'failed']);
  const gone = await send('DELETE', `/firewall/rule/${good.body.uuid}`, undefined, 20);
  assert.equal(applied(gone), 'wait=20, outcome=applied');
  stream.close();
  await following;
  const late = await send('POST', '/firewall/rule', rule, 1);
  assert.deepEqual([applied(late), late.body.state], ['wait=1, outcome=timeout', 'pending']);
  await request(plane.url, 'DELETE', `/v1/operator/router/${uuid}`, { key: api.operatorKey });
});

test('a replay is the final answer byte for byte, headers included, at another replica too', async () => {
  const { key, uuid } = await newRouter('kernel2');
  const other = await startControlPlane(api.database);
  const stream = await openStream(plane.url, key);
  const following = follow(stream, (cursor) => report(plane.url, key, { enforcement: { mode: 'kernel' }, cursor }));
  try {
    const ask = {
      key: provider.key,
      body: rule,
      headers: { prefer: 'wait=20', 'idempotency-key': 'final' },
    };
    const first = await request(plane.url, 'POST', '/v1/firewall/rule', ask);
    assert.deepEqual([applied(first), first.body.state], ['wait=20, outcome=applied', 'active']);
    for (const url of [plane.url, other.url]) {
      const again = await request(url, 'POST', '/v1/firewall/rule', ask);
      assert.deepEqual([again.text, applied(again)], [first.text, applied(first)]);
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
    }
  } finally {
    stream.close();
    await following;
    await other.stop();
    await request(plane.url, 'DELETE', `/v1/operator/router/${uuid}`, { key: api.operatorKey });
  }
});

test('whoever sends again while the first is waited for waits with it, or is told what is known', async () => {
  const { key, uuid } = await newRouter('kernel3');
  const other = await startControlPlane(api.database);
  const kept = async () =>
    (await api.database.pool.query(`select from idempotency where key = 'again'`)).rows.length > 0;
  const send = (url: string, prefer?: string) => {
    const headers = { 'idempotency-key': 'again', ...(prefer !== undefined && { prefer }) };
    return request(url, 'POST', '/v1/firewall/rule', { key: provider.key, body: rule, headers });
  };
  try {
    await report(plane.url, key, { enforcement: { mode: 'kernel' } });
    const first = send(plane.url, 'wait=30');
    await waitUntil(kept, 'the first to be committed');
    const unasked = await send(other.url);
    assert.deepEqual([unasked.body.state, applied(unasked)], ['pending', null]);
    const shortly = await send(other.url, 'wait=0');
    assert.deepEqual([shortly.body.state, applied(shortly)], ['pending', 'wait=0, outcome=timeout']);
    const patient = send(other.url, 'wait=30');
    const stream = await openStream(plane.url, key);
    const following = follow(stream, (cursor) => report(plane.url, key, { enforcement: { mode: 'kernel' }, cursor }));
    const [one, two] = await Promise.all([first, patient]);
    stream.close();
    await following;
    assert.deepEqual([applied(one), one.body.state], ['wait=30, outcome=applied', 'active']);
    assert.deepEqual([two.text, applied(two)], [one.text, applied(one)]);
    for (const each of [unasked, shortly]) assert.equal(each.body.uuid, one.body.uuid);
  } finally {
    await other.stop();
    await request(plane.url, 'DELETE', `/v1/operator/router/${uuid}`, { key: api.operatorKey });
  }
});

test('when the time of the first is over and nothing followed, as after a crash, its answer is replayed at once', async () => {
  const { uuid } = await newRouter('absent1');
  const ask = { key: provider.key, body: rule, headers: { prefer: 'wait=30', 'idempotency-key': 'died' } };
  const first = request(plane.url, 'POST', '/v1/firewall/rule', ask);
  const row = `idempotency where key = 'died'`;
  await waitUntil(
    async () => (await api.database.pool.query(`select from ${row}`)).rows.length > 0,
    'the first to be committed',
  );
  await api.database.pool.query(`update idempotency set final_by = now() where key = 'died'`);
  const begin = Date.now();
  const again = await request(plane.url, 'POST', '/v1/firewall/rule', ask);
  assert.ok(Date.now() - begin < 10_000);
  assert.deepEqual([again.body.state, applied(again)], ['pending', null]);
  await request(plane.url, 'DELETE', `/v1/operator/router/${uuid}`, { key: api.operatorKey });
  assert.equal((await first).body.uuid, again.body.uuid);
});
