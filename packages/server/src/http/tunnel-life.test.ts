import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openStream, post, report } from '../agents/testing/agent-client.ts';
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
let user: Holder;

before(async () => {
  api = await startApi();
  one = await startControlPlane(api.database);
  two = await startControlPlane(api.postgres.openAgain(api.database));
  sweeper = startSweeper(api.database.pool, { committed: () => {}, longestSleepMilliseconds: 100 });
  const provider = await api.provider(['203.0.113.0/24']);
  user = await api.user(provider, ['203.0.113.0/24']);
  for (const name of ['fra1', 'ams1']) {
    await request(one.url, 'POST', '/v1/operator/location', { key: api.operatorKey, body: { name } });
  }
});
after(async () => {
  await sweeper?.stop();
  await two?.stop();
  await one?.stop();
  await api?.stop();
});

const body = { ips: ['203.0.113.0/28'], endpoint: '198.51.100.9', type: 'GRE' };

function send(plane: ControlPlane, method: string, path: string, more: object = {}): Promise<Reply> {
  return request(plane.url, method, `/v1/tunnel${path}`, { key: user.key, ...more });
}

function startRouter(name: string, location: string, addresses: readonly string[], capabilities: readonly string[]) {
  const announced = { name, location, tunnel_addresses: addresses };
  return ReportingRouter.start(one.url, api.operatorKey, announced, capabilities);
}

async function read(plane: ControlPlane, uuid: string) {
  const reply = await send(plane, 'GET', `/${uuid}`);
  return reply.status === 404 ? { state: 'gone', tunnel_information: [] } : reply.body[0];
}

const wait = { headers: { prefer: 'wait=20' } };
const statesThere = (tunnel: { tunnel_information: { location: string; state: string }[] }) =>
  tunnel.tunnel_information.map(({ location, state }) => `${location} ${state}`);

test('a tunnel lives from its creation to its end on two replicas, as the routers that end it report', async () => {
  const fra = await startRouter('fra', 'fra1', ['192.0.2.1'], ['tunnel:GRE']);
  const ams = await startRouter('ams', 'ams1', ['192.0.2.2'], []);
  const other = await startRouter('other', 'ams1', ['2001:db8:ffff::3'], []);
  try {
    const made = await send(one, 'POST', '', { body, ...wait });
    assert.equal(made.headers.get('preference-applied'), 'wait=20, outcome=not-enforced', made.text);
    const { uuid } = made.body;
    for (const plane of [one, two]) {
      const heard = async () => /does not enforce/.test((await read(plane, uuid)).state_reason ?? '');
      await waitUntil(heard, 'the router that cannot');
      await waitUntil(async () => statesThere(await read(plane, uuid)).includes('fra1 active'), 'the able router');
      const tunnel = await read(plane, uuid);
      assert.deepEqual(
        statesThere(tunnel),
        ['fra1 active', 'ams1 pending'],
        'the router of the other family is not asked',
      );
      assert.equal(tunnel.state, 'pending');
      assert.equal(tunnel.state_reason, 'ams: its agent does not enforce GRE tunnels');
      assert.equal(tunnel.tunnel_information[1].state_reason, 'its agent does not enforce GRE tunnels');
    }
    ams.capabilities = ['tunnel:GRE', 'tunnel:Geneve'];
    await ams.tell();
    for (const plane of [one, two]) {
      await waitUntil(async () => (await read(plane, uuid)).state === 'active', 'both routers');
      const listed = await send(plane, 'GET', '?state=active');
      assert.deepEqual(
        listed.body.tunnels.map((tunnel: { uuid: string }) => tunnel.uuid),
        [uuid],
      );
    }
    const moved = await send(two, 'PATCH', `/${uuid}`, { body: { endpoint: '198.51.100.10' }, ...wait });
    assert.equal(moved.headers.get('preference-applied'), 'wait=20, outcome=applied');
    assert.deepEqual(statesThere(moved.body), ['fra1 active', 'ams1 active']);

    fra.held = true;
    const deleted = await send(two, 'DELETE', `/${uuid}`);
    assert.deepEqual([deleted.status, deleted.body.state], [200, 'marked_for_deletion']);
    const again = await send(one, 'POST', '', { body });
    assert.equal(again.status, 200, 'the subnets are free at once');
    const keys = [made.body, again.body].flatMap((tunnel) =>
      tunnel.tunnel_information.map(({ key }: { key: number }) => key),
    );
    assert.equal(new Set(keys).size, 4, 'the keys are not');
    assert.equal((await read(two, uuid)).state, 'marked_for_deletion');
    fra.held = false;
    for (const plane of [one, two]) {
      await waitUntil(async () => (await read(plane, uuid)).state === 'gone', 'the row to go');
    }
    const last = await send(one, 'DELETE', `/${again.body.uuid}`, wait);
    assert.equal(last.headers.get('preference-applied'), 'wait=20, outcome=applied');
    await waitUntil(async () => (await read(one, again.body.uuid)).state === 'gone', 'the other row to go');
  } finally {
    await Promise.all([fra.stop(), ams.stop(), other.stop()]);
  }
});

test('a router that is added has an end of every tunnel in scope at once, and one that is removed takes its ends along', async () => {
  const anywhere = (await send(one, 'POST', '', { body })).body;
  assert.deepEqual([anywhere.state, anywhere.tunnel_information], ['pending', []]);
  assert.match(anywhere.state_reason, /^No router has an IPv4 tunnel address/);
  const fra = await startRouter('fra', 'fra1', ['192.0.2.1'], ['tunnel:GRE']);
  const atFra = (await send(one, 'POST', '', { body: { ...body, ips: ['203.0.113.32/28'], locations: ['fra1'] } }))
    .body;
  try {
    for (const { uuid } of [anywhere, atFra]) {
      await waitUntil(async () => (await read(two, uuid)).state === 'active', 'the first router');
    }
    const ams = await startRouter('ams', 'ams1', ['192.0.2.2'], ['tunnel:GRE']);
    const fra2 = await startRouter('fra2', 'fra1', ['192.0.2.3'], ['tunnel:GRE']);
    assert.deepEqual(
      statesThere(await read(one, anywhere.uuid)).map((each) => each.slice(0, 4)),
      ['fra1', 'ams1', 'fra1'],
    );
    assert.deepEqual(
      (await read(one, atFra.uuid)).tunnel_information.map(({ router }: { router: string }) => router),
      ['fra', 'fra2'],
    );
    const before = await read(one, anywhere.uuid);
    await Promise.all([ams.stop(), fra2.stop()]);
    const left = await read(one, anywhere.uuid);
    assert.equal(left.tunnel_information[0].key, before.tunnel_information[0].key);
    await waitUntil(async () => (await read(one, anywhere.uuid)).state === 'active', 'the one that is left');
  } finally {
    await fra.stop();
  }
  const lost = await read(one, atFra.uuid);
  assert.deepEqual([lost.state, lost.tunnel_information], ['pending', []]);
  assert.match(lost.state_reason, /^No router at fra1 has an IPv4 tunnel address/);
  for (const { uuid } of [anywhere, atFra]) await send(one, 'DELETE', `/${uuid}`);
});

test('a live router that is changed makes its tunnels pending until it has followed', async () => {
  const fra = await startRouter('fra', 'fra1', ['192.0.2.1'], ['tunnel:GRE']);
  const { uuid } = (await send(one, 'POST', '', { body, ...wait })).body;
  const change = async (more: object) => {
    const routers = await request(one.url, 'GET', '/v1/operator/router', { key: api.operatorKey });
    const router = routers.body.find((each: { name: string }) => each.name.startsWith('fra')).uuid;
    const reply = await request(one.url, 'PATCH', `/v1/operator/router/${router}`, {
      key: api.operatorKey,
      body: more,
    });
    assert.equal(reply.status, 200, reply.text);
  };
  try {
    await waitUntil(async () => (await read(two, uuid)).state === 'active', 'the router');
    fra.held = true;
    await change({ tunnel_addresses: ['192.0.2.9'] });
    for (const plane of [one, two]) {
      const tunnel = await read(plane, uuid);
      assert.deepEqual([tunnel.state, tunnel.tunnel_information[0].local_endpoint], ['pending', '192.0.2.9']);
    }
    fra.held = false;
    for (const plane of [one, two]) {
      await waitUntil(async () => (await read(plane, uuid)).state === 'active', 'the router to follow');
    }
    await change({ name: 'fra-b', location: 'ams1' });
    for (const plane of [one, two]) {
      await waitUntil(async () => statesThere(await read(plane, uuid)).join() === 'ams1 active', 'the other place');
      assert.equal((await read(plane, uuid)).applied[0].router, 'fra-b');
    }
  } finally {
    await fra.stop();
  }
  await send(one, 'DELETE', `/${uuid}`);
});

test('coming and going routers are told in the change log, for the tunnels that they concern alone', async () => {
  const tunnel = (await send(one, 'POST', '', { body })).body;
  const entries = async () => {
    const text = `select count(*)::int as count from change where kind = 'tunnel' and object_uuid = $1`;
    return (await api.database.pool.query(text, [tunnel.uuid])).rows[0]?.count;
  };
  assert.equal(await entries(), 1);
  const fra = await startRouter('fra', 'fra1', ['192.0.2.1'], ['tunnel:GRE']);
  assert.equal(await entries(), 2);
  const ipv6 = await startRouter('six', 'fra1', ['2001:db8:ffff::1'], []);
  assert.equal(await entries(), 2);
  await ipv6.stop();
  assert.equal(await entries(), 2);
  await fra.stop();
  assert.equal(await entries(), 3);
  await send(one, 'DELETE', `/${tunnel.uuid}`);
});

test('a tunnel that a router cannot set up is failed, with what it said', async () => {
  const fra = await startRouter('fra', 'fra1', ['192.0.2.1'], ['tunnel:GRE']);
  try {
    fra.held = true;
    const { body: made } = await send(one, 'POST', '', { body });
    fra.failures = [{ uuid: made.uuid, reason: 'kernel lacks ip_gre' }];
    fra.held = false;
    await waitUntil(async () => (await read(two, made.uuid)).state === 'failed', 'the refusal');
    const tunnel = await read(two, made.uuid);
    assert.equal(tunnel.state_reason, 'fra: kernel lacks ip_gre');
    assert.equal(tunnel.tunnel_information[0].state_reason, 'kernel lacks ip_gre');
    fra.failures = [];
    await send(one, 'DELETE', `/${made.uuid}`);
    await waitUntil(async () => (await read(one, made.uuid)).state === 'gone', 'the row to go');
  } finally {
    await fra.stop();
  }
});

test('an agent that has capabilities is waited for where it lacks one: it tells what the matter is', async () => {
  const fra = await startRouter('fra', 'fra1', ['192.0.2.1'], ['filter:22']);
  try {
    fra.held = true;
    const uuids = async () => (await send(one, 'GET', '')).body.tunnels.map(({ uuid }: { uuid: string }) => uuid);
    const before = await uuids();
    const asked = send(one, 'POST', '', { body, ...wait });
    await waitUntil(async () => (await uuids()).length > before.length, 'the tunnel to be stored');
    const uuid = (await uuids()).find((each: string) => !before.includes(each));
    fra.failures = [{ uuid, reason: 'kernel lacks ip_gre' }];
    fra.held = false;
    const made = await asked;
    assert.equal(made.headers.get('preference-applied'), 'wait=20, outcome=failed');
    assert.deepEqual([made.body.state, made.body.state_reason], ['failed', 'fra: kernel lacks ip_gre']);
    fra.failures = [];
    await send(one, 'DELETE', `/${uuid}`, wait);
  } finally {
    await fra.stop();
  }
});

test('a router that has acknowledged nothing yet is waited for: what it can is not known', async () => {
  const announced = { name: 'new', location: 'fra1', tunnel_addresses: ['192.0.2.1'] };
  const { body: router } = await request(one.url, 'POST', '/v1/operator/router', {
    key: api.operatorKey,
    body: announced,
  });
  const { body: enrolled } = await post(one.url, '/agent/v1/enroll', { token: router.enrollment_token });
  const early = await send(one, 'POST', '', { body, headers: { prefer: 'wait=1' } });
  assert.equal(early.headers.get('preference-applied'), 'wait=1, outcome=timeout');
  assert.equal((await report(one.url, String(enrolled.key), {})).status, 200, 'before it has its snapshot');
  assert.equal(
    (await read(one, early.body.uuid)).state_reason,
    'new: the router has not put it in force yet',
    'and not that its agent does not enforce such tunnels',
  );
  const asked = send(one, 'PATCH', `/${early.body.uuid}`, { body: { endpoint: '198.51.100.10' }, ...wait });
  const stream = await openStream(one.url, String(enrolled.key));
  try {
    const endpoint = () => stream.tunnels.get(early.body.uuid)?.endpoint;
    await waitUntil(() => endpoint() === '198.51.100.10', 'the change at the router');
    const { status } = await report(one.url, String(enrolled.key), {
      ...(stream.cursor !== undefined && { cursor: stream.cursor }),
      capabilities: ['tunnel:GRE'],
    });
    assert.equal(status, 200);
    const changed = await asked;
    assert.equal(changed.headers.get('preference-applied'), 'wait=20, outcome=applied');
  } finally {
    stream.close();
    await request(one.url, 'DELETE', `/v1/operator/router/${router.uuid}`, { key: api.operatorKey });
    await send(one, 'DELETE', `/${early.body.uuid}`);
  }
});

test('a tunnel that expires gives its subnets back without being asked', async () => {
  const expires_at = new Date(Date.now() + 800).toISOString();
  const { body: made } = await send(one, 'POST', '', { body: { ...body, expires_at } });
  assert.equal(made.expires_at, expires_at);
  await waitUntil(async () => (await send(two, 'POST', '', { body })).status === 200, 'the subnets to be free');
  await waitUntil(async () => (await read(two, made.uuid)).state === 'gone', 'the end');
});
