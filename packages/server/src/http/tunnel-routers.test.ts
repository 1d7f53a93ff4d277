/** Routers' tunnel addresses against each other and against tunnels, and what becomes of tunnels when a router changes. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './testing/api-fixture.ts';
import { createTestRouter } from './testing/tunnel-world.ts';

let api: ApiFixture;
let other: { readonly url: string; readonly close: () => Promise<void> };
let user: Holder;

before(async () => {
  api = await startApi();
  other = await api.openReplica();
  for (const name of ['fra1', 'ams1']) {
    await api.call('createLocation', {}, { key: api.operatorKey, body: { name } });
  }
  const provider = await api.provider(['203.0.113.0/24', '192.0.2.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/24', '192.0.2.0/24', '2001:db8::/32']);
});
after(async () => {
  await other?.close();
  await api?.stop();
});
beforeEach(async () => {
  await api.database.pool.query('delete from tunnel');
  await api.database.pool.query('delete from router');
});

const good = { ips: ['203.0.113.0/28'], endpoint: '198.51.100.9', type: 'GRE' };
const create = (body: object): Promise<Reply> => api.call('createTunnel', {}, { key: user.key, body });
const announce = (name: string, tunnel_addresses: readonly string[], location = 'fra1'): Promise<Reply> =>
  api.call('createRouter', {}, { key: api.operatorKey, body: { name, location, tunnel_addresses } });
const change = (uuid: string, body: object): Promise<Reply> =>
  api.call('changeRouter', { uuid }, { key: api.operatorKey, body });
const endsOf = async (uuid: string) => {
  const { body } = await api.call('readTunnel', { uuid }, { key: user.key });
  return body[0].tunnel_information as Record<string, unknown>[];
};
const codesOf = (reply: Reply) =>
  (reply.body.details ?? []).map(({ field, code }: { field: string; code: string }) => `${field} ${code}`);

async function created(body: object): Promise<string> {
  const reply = await create(body);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.uuid;
}

test('an address belongs to one router, which the refusal names; a router may be given its own again', async () => {
  const edge = await createTestRouter(api, 'edge', 'fra1', ['192.0.2.1']);
  const twin = await announce('twin', ['2001:db8:ffff::2', '192.0.2.1']);
  assert.deepEqual([twin.status, codesOf(twin)], [409, ['/tunnel_addresses/1 already_exists']]);
  assert.match(twin.body.message, /192\.0\.2\.1 is an address of the router edge already/);
  const second = await createTestRouter(api, 'second', 'fra1', []);
  assert.deepEqual(codesOf(await change(second, { tunnel_addresses: ['192.0.2.1'] })), [
    '/tunnel_addresses/0 already_exists',
  ]);
  const same = await change(edge, { tunnel_addresses: ['2001:db8:ffff::1', '192.0.2.1'] });
  assert.deepEqual([same.status, same.body.tunnel_addresses], [200, ['192.0.2.1', '2001:db8:ffff::1']]);
  assert.equal((await change(edge, { tunnel_addresses: [] })).status, 200);
  assert.equal((await change(second, { tunnel_addresses: ['192.0.2.1'] })).status, 200);
});

test('of two routers that are announced with one address on two replicas one is refused', async () => {
  for (let round = 0; round < 5; round++) {
    const replies = await Promise.all(
      [api.url, other.url].map((url, at) => {
        const body = { name: `twin${round}${at}`, location: 'fra1', tunnel_addresses: [`192.0.2.${round}`] };
        return request(url, 'POST', '/v1/operator/router', { key: api.operatorKey, body });
      }),
    );
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409]);
    const refused = replies.find(({ status }) => status === 409) as Reply;
    assert.deepEqual(codesOf(refused), ['/tunnel_addresses/0 already_exists']);
  }
});

test('a name, a location and addresses that cannot be are all told at once', async () => {
  await createTestRouter(api, 'edge', 'fra1', ['192.0.2.1']);
  const everything = { name: 'edge', location: 'nowhere', tunnel_addresses: ['192.0.2.1'] };
  const expected = ['/location not_found', '/name already_exists', '/tunnel_addresses/0 already_exists'];
  const announced = await api.call('createRouter', {}, { key: api.operatorKey, body: everything });
  assert.deepEqual([announced.status, codesOf(announced)], [404, expected]);
  const changed = await change(await createTestRouter(api, 'other', 'fra1', []), everything);
  assert.deepEqual([changed.status, codesOf(changed)], [404, expected]);
});

test('what a live tunnel routes, and its endpoint, are no addresses for a router', async () => {
  const uuid = await created({ ...good, ips: ['192.0.2.0/28', '2001:db8:7::/48'], endpoint: '198.51.100.9' });
  const routed = await announce('edge', ['192.0.2.5', '2001:db8:7::1']);
  assert.deepEqual(
    [routed.status, codesOf(routed)],
    [409, ['/tunnel_addresses/0 routed_by_tunnel', '/tunnel_addresses/1 routed_by_tunnel']],
  );
  assert.match(routed.body.message, new RegExp(`192\\.0\\.2\\.5 lies inside 192\\.0\\.2\\.0/28.*${uuid}`));
  const edge = await createTestRouter(api, 'edge', 'fra1', []);
  const endpoint = await change(edge, { tunnel_addresses: ['198.51.100.9'] });
  assert.deepEqual([endpoint.status, codesOf(endpoint)], [409, ['/tunnel_addresses/0 endpoint_of_tunnel']]);
  await api.call('deleteTunnel', { uuid }, { key: user.key });
  assert.equal((await change(edge, { tunnel_addresses: ['192.0.2.5', '2001:db8:7::1'] })).status, 200);
});

test('a tunnel neither routes a router’s address nor ends at one, when it is made and when it is changed', async () => {
  await createTestRouter(api, 'edge', 'fra1', ['192.0.2.1', '2001:db8:ffff::1']);
  const both = await create({ ...good, ips: ['203.0.113.0/28', '192.0.2.0/24'], endpoint: '2001:db8:ffff::1' });
  assert.deepEqual([both.status, codesOf(both)], [409, ['/ips/1 router_address', '/endpoint router_address']]);
  assert.match(both.body.message, /ips\.1: 192\.0\.2\.0\/24 holds 192\.0\.2\.1/);
  const uuid = await created(good);
  const changed = async (body: object) => {
    const reply = await api.call('changeTunnel', { uuid }, { key: user.key, body });
    return [reply.status, codesOf(reply)];
  };
  assert.deepEqual(await changed({ ips: ['192.0.2.1'] }), [409, ['/ips/0 router_address']]);
  assert.deepEqual(await changed({ endpoint: '192.0.2.1' }), [409, ['/endpoint router_address']]);
  assert.deepEqual(await changed({ ips: ['192.0.2.8/29'] }), [200, []]);
});

test('of a tunnel and a router that want one address at the same time one gets it, whichever it is', async () => {
  const edge = await createTestRouter(api, 'edge', 'fra1', []);
  for (let round = 0; round < 6; round++) {
    const address = `192.0.2.${round}`;
    const tunnel = round % 2 === 0 ? { ...good, ips: [address] } : { ...good, endpoint: address };
    const replies = await Promise.all([
      request(other.url, 'POST', '/v1/tunnel', { key: user.key, body: tunnel }),
      change(edge, { tunnel_addresses: [address] }),
    ]);
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409], replies.map(({ text }) => text).join());
    await api.database.pool.query('delete from tunnel');
    await change(edge, { tunnel_addresses: [] });
  }
});

test('a router that gets an address has an end of each tunnel in scope; ends move with it, and return as they were', async () => {
  const edge = await createTestRouter(api, 'edge', 'fra1', []);
  const anywhere = await created(good);
  assert.deepEqual(await endsOf(anywhere), []);
  assert.equal((await change(edge, { tunnel_addresses: ['192.0.2.1'] })).status, 200);
  const atFra = await created({ ...good, ips: ['203.0.113.16/28'], locations: ['fra1'] });
  const [first] = await endsOf(anywhere);
  assert.equal(first?.local_endpoint, '192.0.2.1');

  const moved = await change(edge, { tunnel_addresses: ['192.0.2.2'], name: 'edge-b' });
  assert.deepEqual([moved.status, moved.body.name, moved.body.location], [200, 'edge-b', 'fra1']);
  assert.deepEqual(await endsOf(anywhere), [{ ...first, router: 'edge-b', local_endpoint: '192.0.2.2' }]);

  const [atFraFirst] = await endsOf(atFra);
  assert.equal((await change(edge, { location: 'ams1' })).body.location, 'ams1');
  assert.deepEqual(await endsOf(atFra), []);
  assert.equal((await endsOf(anywhere))[0]?.location, 'ams1');
  await change(edge, { location: 'fra1' });
  assert.deepEqual(await endsOf(atFra), [atFraFirst]);

  await change(edge, { tunnel_addresses: ['2001:db8:ffff::1'] });
  assert.deepEqual([await endsOf(anywhere), await endsOf(atFra)], [[], []]);
  await change(edge, { tunnel_addresses: ['192.0.2.2', '2001:db8:ffff::1'] });
  assert.equal((await endsOf(anywhere))[0]?.key, first?.key);
});

test('a router has one tunnel without key to an endpoint, and keeps the one it has', async () => {
  const [fra, ams] = [
    await createTestRouter(api, 'fra', 'fra1', ['192.0.2.1']),
    await createTestRouter(api, 'ams', 'ams1', ['192.0.2.2']),
  ];
  const unkeyed = { ...good, keyed: false };
  const atAms = await created({ ...unkeyed, locations: ['ams1'] });
  const atFra = await created({ ...unkeyed, ips: ['203.0.113.16/28'], locations: ['fra1'] });
  const routersOf = async (uuid: string) => (await endsOf(uuid)).map(({ router }) => router);
  // Both are in scope at neither place; then the router of one comes to the other.
  await change(fra, { location: 'ams1' });
  assert.deepEqual([await routersOf(atAms), await routersOf(atFra)], [['ams', 'fra'], []]);
  await change(ams, { tunnel_addresses: [] });
  assert.deepEqual([await routersOf(atAms), await routersOf(atFra)], [['fra'], []]);
  await change(fra, { location: 'fra1' });
  assert.deepEqual([await routersOf(atAms), await routersOf(atFra)], [[], ['fra']]);
});

test('a change of a router is in the audit log, before and after, and one that changes nothing touches no tunnel', async () => {
  const edge = await createTestRouter(api, 'edge', 'fra1', ['192.0.2.1']);
  const uuid = await created(good);
  const entries = async () =>
    (
      await api.database.pool.query(
        `select (select count(*)::int from change where object_uuid = $1) as log,
          (select updated_at::text from tunnel where uuid = $1) as at`,
        [uuid],
      )
    ).rows[0];
  const untouched = await entries();
  await change(edge, { name: 'edge', location: 'fra1', tunnel_addresses: ['192.0.2.1'] });
  assert.deepEqual(await entries(), untouched);
  await change(edge, { tunnel_addresses: ['192.0.2.2'] });
  assert.equal((await entries()).log, untouched.log + 1);
  const { rows } = await api.database.pool.query(
    `select before->'tunnel_addresses' as before, after->'tunnel_addresses' as after from audit
      where object_uuid = $1 and operation = 'changeRouter' order by sequence`,
    [edge],
  );
  assert.deepEqual(rows.at(-1), { before: ['192.0.2.1'], after: ['192.0.2.2'] });
});

test('a router that is not there is not changed', async () => {
  for (const uuid of ['0190a5d0-1111-7000-8000-000000000001', 'local']) {
    assert.equal((await change(uuid, { name: 'x' })).status, 404);
  }
});
