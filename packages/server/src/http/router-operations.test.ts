import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openStream, post, report } from '../agents/testing/agent-client.ts';
import type { Database } from '../store/database.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { type ApiFixture, checkReply, operationOf, type Reply, request, startApi } from './testing/api-fixture.ts';
import { type ControlPlane, startControlPlane } from './testing/control-plane.ts';

let api: ApiFixture;
let otherDatabase: Database;
let here: ControlPlane;
let there: ControlPlane;

before(async () => {
  api = await startApi();
  here = await startControlPlane(api.database);
  otherDatabase = api.postgres.openAgain(api.database);
  there = await startControlPlane(otherDatabase);
});
after(async () => {
  await here?.stop();
  await there?.stop();
  await otherDatabase?.close();
  await api.stop();
});

let made = 0;

async function ask(id: string, uuid: string | undefined, body?: object, at = here): Promise<Reply> {
  const { method, path } = operationOf(id);
  const reply = await request(at.url, method, `/v1${path.replace('{uuid}', uuid ?? '')}`, {
    key: api.operatorKey,
    body,
  });
  checkReply(operationOf(id), reply);
  return reply;
}

async function enrol(token: string, at = here): Promise<string> {
  const answer = await post(at.url, '/agent/v1/enroll', { token });
  assert.equal(answer.status, 200);
  return String(answer.body.key);
}

async function newRouter(): Promise<{ uuid: string; location: string; key: string }> {
  const location = (await ask('createLocation', undefined, { name: `place${++made}` })).body.uuid;
  const { body } = await ask('createRouter', undefined, { name: `edge${made}`, location });
  return { uuid: body.uuid, location, key: await enrol(body.enrollment_token) };
}

test('a removed router is gone everywhere: its key stops, its stream ends, no state waits for it', async () => {
  const router = await newRouter();
  const provider = await api.provider(['203.0.113.0/24']);
  const rule = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
  const { body: created } = await request(here.url, 'POST', '/v1/firewall/rule', { key: provider.key, body: rule });
  assert.equal(created.applied.length, 1);
  const streams = await Promise.all([here, there].map((at) => openStream(at.url, router.key)));
  const failures = [{ uuid: created.uuid, reason: 'refused for this test' }];
  const enforcement = { mode: 'kernel' } as const;
  assert.equal((await report(there.url, router.key, { enforcement, failures })).status, 200);

  const removed = await ask('deleteRouter', router.uuid.toUpperCase());
  assert.deepEqual([removed.status, removed.body.uuid], [200, router.uuid]);
  assert.equal((await report(here.url, router.key, { enforcement })).status, 401, 'where it was removed: at once');
  await waitUntil(async () => (await report(there.url, router.key, { enforcement })).status === 401, 'the key stops');
  await waitUntil(() => streams.every((stream) => stream.closed), 'both streams end');
  for (const at of [here, there]) {
    const { body } = await request(at.url, 'GET', `/v1/firewall/rule/${created.uuid}`, { key: provider.key });
    assert.deepEqual([body[0].state, body[0].applied], ['pending', []]);
  }
  const { rows } = await api.database.pool.query(
    `select (select count(*) from router_failure) + (select count(*) from router_ack) as left`,
  );
  assert.equal(rows[0].left, 0);
  assert.equal((await ask('deleteRouter', router.uuid)).status, 404);
  assert.equal((await ask('readRouter', router.uuid)).status, 404);
});

test('a new token lets the old key work until it is used, and makes the token before it void', async () => {
  const router = await newRouter();
  const first = await ask('renewRouterToken', router.uuid);
  const second = await ask('renewRouterToken', router.uuid);
  assert.match(second.body.message, /until the token is used/);
  const dry = { enforcement: { mode: 'dry', reason: 'a test' } } as const;
  assert.equal((await report(there.url, router.key, dry)).status, 200);
  assert.equal((await post(here.url, '/agent/v1/enroll', { token: first.body.enrollment_token })).status, 401);
  const stream = await openStream(here.url, router.key);
  const key = await enrol(second.body.enrollment_token, there);
  await waitUntil(async () => (await report(here.url, router.key, dry)).status === 401, 'the old key stops');
  await waitUntil(() => stream.closed, 'the stream under the old key ends');
  assert.equal((await report(here.url, key, dry)).status, 200);
  assert.equal((await post(here.url, '/agent/v1/enroll', { token: second.body.enrollment_token })).status, 401);
});

test('a router is shown with what it told: whether it enforces, why not, when it was last heard of', async () => {
  const router = await newRouter();
  const fresh = (await ask('readRouter', router.uuid)).body;
  assert.deepEqual([fresh.enrolled, fresh.enforcement, fresh.last_seen_at], [true, undefined, undefined]);
  assert.ok(Math.abs(Date.now() - Date.parse(fresh.enrolled_at)) < 60_000);
  const status = { version: '0.1.0', rules: 3 };
  const told = { enforcement: { mode: 'dry', reason: 'no nft here' }, status } as const;
  assert.equal((await report(here.url, router.key, told)).status, 200);
  const { body } = await ask('readRouter', router.uuid);
  assert.deepEqual([body.enforcement, body.enforcement_reason, body.status], ['dry', 'no nft here', status]);
  assert.ok(Math.abs(Date.now() - Date.parse(body.last_seen_at)) < 60_000);
  const listed = (await ask('listRouters', undefined)).body;
  assert.deepEqual(
    listed.find((each: { uuid: string }) => each.uuid === router.uuid),
    body,
  );
  await ask('deleteRouter', router.uuid);
});

test('a location goes only when its routers are gone, also when one is announced at the same time', async () => {
  const router = await newRouter();
  const refused = await ask('deleteLocation', router.location);
  assert.deepEqual([refused.status, refused.body.details[0].code], [409, 'in_use']);
  await ask('deleteRouter', router.uuid);
  assert.equal((await ask('deleteLocation', router.location)).status, 200);
  assert.equal((await ask('deleteLocation', router.location)).status, 404);
  for (let round = 0; round < 10; round++) {
    const { body: location } = await ask('createLocation', undefined, { name: `race${round}` });
    const [removed, announced] = await Promise.all([
      ask('deleteLocation', location.uuid),
      ask('createRouter', undefined, { name: `racer${round}`, location: location.uuid }, there),
    ]);
    assert.ok(
      (removed.status === 200 && announced.status === 404) || (removed.status === 409 && announced.status === 200),
      `${removed.text} ${announced.text}`,
    );
  }
});
