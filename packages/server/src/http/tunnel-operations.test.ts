import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type ApiFixture, type Holder, type Reply, startApi } from './testing/api-fixture.ts';
import { createTestRouter } from './testing/tunnel-world.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;
let sibling: Holder;

before(async () => {
  api = await startApi();
  for (const name of ['fra1', 'ams1', 'bare']) {
    await api.call('createLocation', {}, { key: api.operatorKey, body: { name } });
  }
  await createTestRouter(api, 'edge-fra', 'fra1', ['192.0.2.1', '2001:db8:ffff::1']);
  await createTestRouter(api, 'edge-ams', 'ams1', ['192.0.2.2']);
  await createTestRouter(api, 'edge-bare', 'bare', []);
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/40']);
  user = await api.user(provider, ['203.0.113.0/26', '2001:db8:7::/48']);
  sibling = await api.user(provider, ['203.0.113.64/26']);
});
after(() => api?.stop());

/** Every test has all addresses to itself. */
beforeEach(() => api.database.pool.query('delete from tunnel'));

const good = { ips: ['203.0.113.0/28'], endpoint: '198.51.100.9', type: 'GRE' };

function create(body: object, key = user.key): Promise<Reply> {
  return api.call('createTunnel', {}, { key, body });
}

async function created(body: object, key = user.key) {
  const reply = await create(body, key);
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}

const change = (uuid: string, body: object, key = user.key) => api.call('changeTunnel', { uuid }, { key, body });
const read = async (uuid: string, key = user.key) => (await api.call('readTunnel', { uuid }, { key })).body[0];
const codesOf = (reply: Reply) =>
  (reply.body.details ?? []).map(({ field, code }: { field: string; code: string }) => `${field} ${code}`);
const routersOf = (tunnel: { tunnel_information: { router: string }[] }) =>
  tunnel.tunnel_information.map(({ router }) => router);

test('a tunnel gets an end on every router that has an address of its endpoint’s family', async () => {
  const tunnel = await created({ ...good, type: 'gre' });
  assert.deepEqual([tunnel.type, tunnel.ips, tunnel.endpoint], ['GRE', ['203.0.113.0/28'], '198.51.100.9']);
  assert.equal(tunnel.owner_uuid, user.uuid);
  assert.equal(tunnel.state, 'pending');
  assert.deepEqual(routersOf(tunnel), ['edge-fra', 'edge-ams']);
  const [fra, ams] = tunnel.tunnel_information;
  assert.deepEqual(
    [fra.location, fra.local_endpoint, fra.remote_endpoint, fra.mtu, fra.mss, fra.mss_ipv6, fra.state],
    ['fra1', '192.0.2.1', '198.51.100.9', 1472, 1432, 1412, 'pending'],
  );
  assert.equal(ams.local_endpoint, '192.0.2.2');
  assert.ok(fra.key > 0 && ams.key > 0 && fra.key !== ams.key);
  assert.equal(fra.inner_ipv4.prefix_length, 31);
  assert.equal(fra.inner_ipv6.prefix_length, 127);
  assert.deepEqual(await read(tunnel.uuid), tunnel);
});

test('over IPv6 only routers with an IPv6 tunnel address have an end; Geneve has a VNI and a port', async () => {
  const tunnel = await created({ ips: ['2001:db8:7:1::/64'], endpoint: '2001:db8:900::9', type: 'GENEVE' });
  assert.equal(tunnel.type, 'Geneve');
  assert.deepEqual(routersOf(tunnel), ['edge-fra']);
  const [end] = tunnel.tunnel_information;
  assert.deepEqual([end.local_endpoint, end.udp_port, end.mtu, end.key], ['2001:db8:ffff::1', 6081, 1430, undefined]);
  assert.ok(end.vni > 0);
});
