import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { waitUntil } from '../store/testing/wait-until.ts';
import { startSweeper } from '../sweep/sweeper.ts';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './testing/api-fixture.ts';
import { type ControlPlane, startControlPlane } from './testing/control-plane.ts';
import { ReportingRouter } from './testing/reporting-router.ts';

let api: ApiFixture;
/** Two replicas that share nothing but the database. */
let one: ControlPlane;
let two: ControlPlane;
let sweeper: ReturnType<typeof startSweeper>;
let provider: Holder;
let user: Holder;

before(async () => {
  api = await startApi();
  one = await startControlPlane(api.database);
  two = await startControlPlane(api.postgres.openAgain(api.database));
  sweeper = startSweeper(api.database.pool, { committed: () => {}, longestSleepMilliseconds: 100 });
  provider = await api.provider(['203.0.113.0/24']);
  user = await api.user(provider, ['203.0.113.0/28']);
  await request(one.url, 'POST', '/v1/operator/location', { key: api.operatorKey, body: { name: 'fra1' } });
});
after(async () => {
  await sweeper?.stop();
  await two?.stop();
  await one?.stop();
  await api?.stop();
});

const body = { dst: '203.0.113.7', filter: 20 };

function send(plane: ControlPlane, method: string, path: string, more: object = {}): Promise<Reply> {
  return request(plane.url, method, `/v1${path}`, { key: user.key, ...more });
}

const startRouter = (name: string, capabilities: readonly string[]) =>
  ReportingRouter.start(one.url, api.operatorKey, { name, location: 'fra1' }, capabilities);

async function readState(plane: ControlPlane, uuid: string): Promise<{ state: string; state_reason?: string }> {
  const reply = await send(plane, 'GET', `/filter/${uuid}`);
  return reply.status === 404 ? { state: 'gone' } : reply.body[0];
}

test('a filter lives from its creation to its end on two replicas, as the routers report it', async () => {
  const able = await startRouter('able', ['filter:20', 'filter:3']);
  const unable = await startRouter('unable', ['filter:3']);
  try {
    const made = await send(one, 'POST', '/filter', { body, headers: { prefer: 'wait=20' } });
    assert.equal(made.status, 200, made.text);
    assert.equal(made.headers.get('preference-applied'), 'wait=20, outcome=not-enforced', 'one never will');
    const { uuid } = made.body;
    for (const plane of [one, two]) {
      await waitUntil(async () => {
        const { body: read } = await send(plane, 'GET', `/filter/${uuid}`);
        return read[0].applied.some((entry: { state: string }) => entry.state === 'active');
      }, 'the able router');
      const heard = async () => !/not put it in force yet/.test((await readState(plane, uuid)).state_reason ?? '');
      await waitUntil(heard, 'the other one to hear of it');
      const { state, state_reason } = await readState(plane, uuid);
      assert.equal(state, 'pending');
      assert.equal(state_reason, 'unable: its agent does not enforce filters of kind wireguard (20)');
    }

    unable.capabilities = ['filter:20', 'filter:3'];
    await unable.tell();
    for (const plane of [one, two]) {
      await waitUntil(async () => (await readState(plane, uuid)).state === 'active', 'both routers', 10_000);
      const own = await send(plane, 'GET', '/filter?state=active');
      const all = await request(plane.url, 'GET', '/v1/provider/filter', { key: provider.key });
      for (const { body: listed } of [own, all]) {
        assert.deepEqual(
          listed.map((filter: { uuid: string; state: string }) => [filter.uuid, filter.state]),
          [[uuid, 'active']],
        );
      }
    }
    const waited = await send(one, 'POST', '/filter', { body, headers: { prefer: 'wait=20' } });
    assert.equal(waited.headers.get('preference-applied'), 'wait=20, outcome=applied');
    assert.equal(waited.body.state, 'active');

    unable.held = true;
    const deleted = await send(two, 'DELETE', `/filter/${uuid}`);
    assert.deepEqual([deleted.status, deleted.body.state], [200, 'marked_for_deletion']);
    await waitUntil(async () => {
      const { body: read } = await send(one, 'GET', `/filter/${uuid}`);
      const states = read[0].applied.map((entry: { state: string }) => entry.state);
      return states.includes('removed') && states.includes('pending');
    }, 'the first router to let go');
    assert.equal((await readState(two, uuid)).state, 'marked_for_deletion');
    unable.held = false;
    for (const plane of [one, two]) {
      await waitUntil(async () => (await readState(plane, uuid)).state === 'gone', 'the row to go', 10_000);
    }
    assert.equal((await readState(two, waited.body.uuid)).state, 'active', 'the other one stays');
    await send(one, 'DELETE', `/filter/${waited.body.uuid}`, { headers: { prefer: 'wait=20' } });
    await waitUntil(async () => (await readState(one, waited.body.uuid)).state === 'gone', 'the other one to go');
  } finally {
    await able.stop();
    await unable.stop();
  }
});

test('a router that cannot enforce the kind lets a deleted filter go as soon as it has heard of it', async () => {
  const unable = await startRouter('plain', []);
  try {
    const { body: made } = await send(one, 'POST', '/filter', { body });
    await waitUntil(
      async () => /does not enforce/.test((await readState(one, made.uuid)).state_reason ?? ''),
      'it to hear',
    );
    const deleted = await send(one, 'DELETE', `/filter/${made.uuid}`, { headers: { prefer: 'wait=20' } });
    assert.equal(deleted.headers.get('preference-applied'), 'wait=20, outcome=applied');
    await waitUntil(async () => (await readState(one, made.uuid)).state === 'gone', 'the row to go');
  } finally {
    await unable.stop();
  }
});

test('a filter that a kernel refuses is failed, with what the router said', async () => {
  const router = await startRouter('refusing', ['filter:20']);
  try {
    router.held = true;
    const { body: made } = await send(one, 'POST', '/filter', { body });
    router.failures = [{ uuid: made.uuid, reason: 'no such expression in this kernel' }];
    router.held = false;
    for (const plane of [one, two]) {
      await waitUntil(async () => (await readState(plane, made.uuid)).state === 'failed', 'the refusal', 10_000);
      assert.equal((await readState(plane, made.uuid)).state_reason, 'refusing: no such expression in this kernel');
    }
    router.failures = [];
    await send(one, 'DELETE', `/filter/${made.uuid}`);
    await waitUntil(async () => (await readState(one, made.uuid)).state === 'gone', 'the row to go');
  } finally {
    await router.stop();
  }
});

test('a filter that expires is marked, let go and gone without being asked', async () => {
  const router = await startRouter('steady', ['filter:20']);
  try {
    const expires_at = new Date(Date.now() + 1_000).toISOString();
    const { body: made } = await send(one, 'POST', '/filter', { body: { ...body, expires_at } });
    assert.equal(made.expires_at, expires_at);
    await waitUntil(async () => (await readState(two, made.uuid)).state === 'gone', 'the end', 10_000);
  } finally {
    await router.stop();
  }
});
