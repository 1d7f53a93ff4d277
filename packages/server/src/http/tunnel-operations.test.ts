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

test('an empty list of locations restricts nothing, in a change either', async () => {
  const tunnel = await created({ ...good, locations: [] });
  assert.equal('locations' in tunnel, false);
  const everywhere = tunnel.tunnel_information.length;
  assert.ok(everywhere > 1);
  assert.equal((await change(tunnel.uuid, { locations: ['ams1'] })).body.tunnel_information.length, 1);
  const { body } = await change(tunnel.uuid, { locations: [] });
  assert.deepEqual(['locations' in body, body.tunnel_information.length], [false, everywhere]);
});

test('with locations only their routers have an end, in whatever order they are listed', async () => {
  const tunnel = await created({ ...good, locations: ['ams1'] });
  assert.deepEqual(tunnel.locations, ['ams1']);
  assert.deepEqual(routersOf(tunnel), ['edge-ams']);
  const both = await created({ ...good, ips: ['203.0.113.16/28'], locations: ['ams1', 'fra1'] });
  assert.deepEqual(both.locations, ['ams1', 'fra1']);
  assert.deepEqual(routersOf(both), ['edge-fra', 'edge-ams']);
});

test('a location that there is not is named, with those that there are', async () => {
  const reply = await create({ ...good, locations: ['fra1', 'lon1'] });
  assert.deepEqual([reply.status, reply.body.error], [400, 'validation_failed']);
  assert.deepEqual(codesOf(reply), ['/locations/1 unknown_location']);
  assert.match(reply.body.message, /no location "lon1"; there are: ams1, bare, fra1/);
});

test('a location that was asked for and has no router of the endpoint’s family is a conflict that says so', async () => {
  const bare = await create({ ...good, locations: ['bare'] });
  assert.deepEqual([bare.status, bare.body.error], [409, 'conflict']);
  assert.match(bare.body.message, /no router at bare has an IPv4 tunnel address/);
  const ipv6 = await create({ ...good, endpoint: '2001:db8:900::9', locations: ['fra1', 'ams1'] });
  assert.deepEqual(codesOf(ipv6), ['/locations/1 no_tunnel_router']);
  assert.match(ipv6.body.message, /no router at ams1 has an IPv6 tunnel address/);
});

test('a location whose routers have all reported that they cannot end the type is a conflict that names them', async () => {
  const { pool } = api.database;
  const at = { ...good, locations: ['fra1'] };
  const messageOf = async (body: object) => {
    const reply = await create(body);
    assert.deepEqual([reply.status, codesOf(reply)], [409, ['/locations/0 no_tunnel_router']], reply.text);
    return reply.body.message;
  };
  const report = (enforcement: string | null, capabilities: readonly string[], reason: string | null = null) =>
    pool.query(
      `update router set enforcement = $1, capabilities = $2, enforcement_reason = $3,
          acked_xid = case when $1::text is not null then '1'::xid8 end, acked_position = case when $1::text is not null then 0 end
        where name = 'edge-fra'`,
      [enforcement, capabilities, reason],
    );
  try {
    await report('kernel', ['tunnel:Geneve']);
    assert.match(
      await messageOf(at),
      /^locations\.0: no router at fra1 can end GRE tunnels: edge-fra has reported that it cannot \(its kernel lacks ip_gre,/,
    );
    assert.match(await messageOf({ ...at, endpoint: '2001:db8:900::9' }), /its kernel lacks ip6_gre,/);
    const { uuid } = await created({ ...good, type: 'Geneve', locations: ['fra1'] });
    const elsewhere = await created({ ...good, ips: ['203.0.113.16/28'], locations: ['ams1'] });
    const moved = await change(elsewhere.uuid, { locations: ['ams1', 'fra1'] });
    assert.deepEqual([moved.status, codesOf(moved)], [409, ['/locations/1 no_tunnel_router']]);
    const anywhere = await created({ ...good, ips: ['203.0.113.32/28'] });
    assert.deepEqual(routersOf(anywhere), ['edge-fra', 'edge-ams'], 'whoever asks for none gets what there is');

    await report('dry', [], 'it has no CAP_NET_ADMIN');
    assert.match(
      await messageOf({ ...at, ips: ['203.0.113.48/28'] }),
      /edge-fra enforces nothing \(it has no CAP_NET_ADMIN\)/,
    );
    assert.equal((await change(uuid, { ips: ['203.0.113.4/30'] })).status, 200, 'where it is it may be changed');
    await report('kernel', ['tunnel:Geneve', 'tunnel:GRE']);
    await created({ ...at, ips: ['203.0.113.48/28'] });
  } finally {
    await report(null, []);
  }
});

test('everything that is stored otherwise is told at once, and the first kind of it gives the code', async () => {
  await created({ ...good, ips: ['203.0.113.32/28'] });
  const wrong = { ...good, ips: ['203.0.113.64/28', '203.0.113.32/29'], locations: ['bare', 'lon1'] };
  const everything = [
    '/locations/1 unknown_location',
    '/ips/0 ip_not_allowed',
    '/ips/1 subnet_already_routed',
    '/locations/0 no_tunnel_router',
  ];
  const made = await create(wrong);
  assert.deepEqual([made.status, made.body.error, codesOf(made)], [400, 'validation_failed', everything]);
  const { uuid } = await created({ ...good, ips: ['203.0.113.0/28'] });
  const changed = await change(uuid, { ips: wrong.ips, locations: wrong.locations });
  assert.deepEqual([changed.status, changed.body.error, codesOf(changed)], [400, 'validation_failed', everything]);
  const known = await create({ ...wrong, locations: ['bare'] });
  assert.deepEqual([known.status, codesOf(known)], [403, everything.slice(1)]);
});

test('a provider lists the tunnels of its users and its own in one array, with the same filters', async () => {
  const own = await created({ ...good, ips: ['203.0.113.192/28'] }, provider.key);
  const users = await created(good);
  const siblings = await created({ ...good, ips: ['203.0.113.64/28'] }, sibling.key);
  const list = async (query: string) => {
    const reply = await api.call('listProviderTunnels', {}, { key: provider.key, query });
    assert.equal(reply.status, 200, reply.text);
    return reply.body.map(({ uuid }: { uuid: string }) => uuid);
  };
  assert.deepEqual(await list(''), [own.uuid, users.uuid, siblings.uuid]);
  assert.deepEqual(await list(`?user_uuid=${sibling.uuid}`), [siblings.uuid]);
  assert.deepEqual(await list('?dst=203.0.113.5'), [users.uuid]);
  assert.deepEqual(await list('?limit=2'), [own.uuid, users.uuid]);
  assert.deepEqual(await list('?state=active'), []);
});

test('subnets outside the caller’s own are refused, each by its place in the list', async () => {
  const ips = ['203.0.113.0/28', '203.0.113.64/28', '192.0.2.0/24'];
  const reply = await create({ ...good, ips });
  assert.deepEqual([reply.status, reply.body.error], [403, 'ip_not_allowed']);
  assert.deepEqual(codesOf(reply), ['/ips/1 ip_not_allowed', '/ips/2 ip_not_allowed']);
  const wide = await create({ ...good, ips: ['203.0.113.0/24'] }, provider.key);
  assert.equal(wide.status, 403, 'it touches what users hold');
  assert.equal((await create({ ...good, ips: ['203.0.113.192/26'] }, provider.key)).status, 200);
});

test('a subnet is in one tunnel only, also as a part of another or around it, whoever owns the other', async () => {
  await created({ ...good, ips: ['203.0.113.0/29', '2001:db8:7:1::/64'] });
  for (const ip of ['203.0.113.0/29', '203.0.113.0/28', '203.0.113.3', '2001:db8:7::/48']) {
    const reply = await create({ ...good, ips: ['203.0.113.32/28', ip] });
    assert.deepEqual([reply.status, reply.body.error], [409, 'conflict'], ip);
    assert.deepEqual(codesOf(reply), ['/ips/1 subnet_already_routed']);
  }
  const { rows } = await api.database.pool.query('select count(*)::int as count from tunnel');
  assert.equal(rows[0]?.count, 1, 'nothing is left of a refused one');
  await created({ ...good, ips: ['203.0.113.100'] }, sibling.key);
});

test('a deleted tunnel stays readable, gives its subnets back at once and is deleted twice without an error', async () => {
  const { uuid } = await created(good);
  for (let times = 0; times < 2; times++) {
    const reply = await api.call('deleteTunnel', { uuid }, { key: user.key });
    assert.deepEqual([reply.status, reply.body.state], [200, 'marked_for_deletion']);
  }
  const tunnel = await read(uuid);
  assert.equal(tunnel.state, 'marked_for_deletion');
  assert.deepEqual(
    new Set(tunnel.tunnel_information.map((end: { state: string }) => end.state)),
    new Set([tunnel.state]),
  );
  const next = await created(good);
  const numbers = [tunnel, next].flatMap(({ tunnel_information }) =>
    tunnel_information.map(({ key }: { key: number }) => key),
  );
  assert.equal(new Set(numbers).size, numbers.length, 'keys are given again only when the row is gone');
  const refused = await change(uuid, { endpoint: '198.51.100.10' });
  assert.deepEqual([refused.status, codesOf(refused)], [409, [' marked_for_deletion']]);
});

test('a change keeps the keys and inner addresses of ends that stay, and of ends that come back', async () => {
  const { uuid, tunnel_information: before } = await created(good);
  const moved = await change(uuid, { endpoint: '198.51.100.10', locations: ['fra1'] });
  assert.equal(moved.status, 200, moved.text);
  assert.deepEqual(routersOf(moved.body), ['edge-fra']);
  const [fra] = moved.body.tunnel_information;
  const numbersOf = ({ key, inner_ipv4, inner_ipv6 }: Record<string, unknown>) => ({ key, inner_ipv4, inner_ipv6 });
  assert.deepEqual(numbersOf(fra), numbersOf(before[0]));
  assert.equal(fra.remote_endpoint, '198.51.100.10');

  const overIpv6 = await change(uuid, { endpoint: '2001:db8:900::9' });
  const [six] = overIpv6.body.tunnel_information;
  assert.deepEqual(numbersOf(six), numbersOf(before[0]));
  assert.deepEqual([six.local_endpoint, six.mtu], ['2001:db8:ffff::1', 1448]);

  const back = await change(uuid, { endpoint: '198.51.100.9', locations: null });
  assert.equal('locations' in back.body, false);
  assert.deepEqual(back.body.tunnel_information.map(numbersOf), before.map(numbersOf));
  assert.deepEqual(await read(uuid), back.body);
});

test('a change of ips asks about the new ones alone and frees the others', async () => {
  const { uuid } = await created({ ...good, ips: ['203.0.113.0/28', '203.0.113.16/28'] });
  await created({ ...good, ips: ['203.0.113.48/28'] });
  const taken = await change(uuid, { ips: ['203.0.113.0/28', '203.0.113.48/29', '203.0.113.64/28'] });
  assert.deepEqual([taken.status, taken.body.error], [403, 'ip_not_allowed']);
  assert.deepEqual(codesOf(taken), ['/ips/2 ip_not_allowed', '/ips/1 subnet_already_routed']);
  assert.deepEqual((await read(uuid)).ips, ['203.0.113.0/28', '203.0.113.16/28'], 'a refused change changes nothing');
  const narrower = await change(uuid, { ips: ['203.0.113.0/29', '203.0.113.16/28'] });
  assert.deepEqual(narrower.body.ips, ['203.0.113.0/29', '203.0.113.16/28']);
  await created({ ...good, ips: ['203.0.113.8/29'] });
  const back = await change(uuid, { ips: ['203.0.113.0/28'] });
  assert.deepEqual([back.status, codesOf(back)], [409, ['/ips/0 subnet_already_routed']]);
});

test('a change is judged with what is stored, and of its fields alone', async () => {
  const { uuid } = await created(good);
  const inside = await change(uuid, { endpoint: '203.0.113.3' });
  assert.deepEqual([inside.status, codesOf(inside)], [400, ['/endpoint inside_ips']]);
  const other = await change(uuid, { type: 'Geneve' });
  assert.deepEqual([other.status, codesOf(other)], [400, ['/type unknown_field']]);
  assert.equal((await change(uuid, {})).status, 400);
  const expires_at = '2030-01-31T12:00:00.000Z';
  assert.equal((await change(uuid, { expires_at })).body.expires_at, expires_at);
  assert.equal((await change(uuid, { endpoint: '198.51.100.10' })).body.expires_at, expires_at);
  assert.equal('expires_at' in (await change(uuid, { expires_at: null })).body, false);
});

test('a location that was asked for keeps its tunnel when it loses its routers, and a change elsewhere is still possible', async () => {
  await api.call('createLocation', {}, { key: api.operatorKey, body: { name: 'brief' } });
  const router = await createTestRouter(api, 'edge-brief', 'brief', ['192.0.2.4']);
  const { uuid } = await created({ ...good, locations: ['brief', 'fra1'] });
  await api.call('deleteRouter', { uuid: router }, { key: api.operatorKey });
  assert.deepEqual(routersOf(await read(uuid)), ['edge-fra']);
  assert.equal((await change(uuid, { endpoint: '198.51.100.10' })).status, 200);
  const again = await change(uuid, { locations: ['brief'] });
  assert.deepEqual([again.status, codesOf(again)], [409, ['/locations/0 no_tunnel_router']]);
});

test('tunnels without key: one a router and endpoint, and freed with the tunnel', async () => {
  const first = await created({ ...good, keyed: false, locations: ['fra1'] });
  assert.equal(first.keyed, false);
  assert.equal(first.tunnel_information[0].key, undefined);
  const second = { ...good, ips: ['203.0.113.16/28'], keyed: false };
  const refused = await create(second);
  assert.deepEqual([refused.status, codesOf(refused)], [409, ['/endpoint endpoint_in_use']]);
  await created({ ...second, endpoint: '198.51.100.77' });
  await created({ ...good, ips: ['203.0.113.32/28'] });
  const elsewhere = await created({ ...second, ips: ['203.0.113.48/28'], locations: ['ams1'] });
  const moved = await change(elsewhere.uuid, { locations: ['fra1'] });
  assert.deepEqual([moved.status, codesOf(moved)], [409, ['/endpoint endpoint_in_use']]);
  assert.equal((await change(first.uuid, { locations: ['ams1'], endpoint: '198.51.100.78' })).status, 200);
  assert.equal((await change(elsewhere.uuid, { locations: ['fra1'] })).status, 200);
});

test('the list is an object, oldest first, complete or in pages, and narrowed by state and by any routed subnet', async () => {
  const ips = [['203.0.113.0/28', '2001:db8:7:1::/64'], ['203.0.113.16/28'], ['203.0.113.32/28']];
  const uuids: string[] = [];
  for (const each of ips) uuids.push((await created({ ...good, ips: each })).uuid);
  await api.call('deleteTunnel', { uuid: uuids[1] ?? '' }, { key: user.key });
  const list = async (query: string) => {
    const reply = await api.call('listTunnels', {}, { key: user.key, query });
    assert.equal(reply.status, 200, reply.text);
    return { uuids: reply.body.tunnels.map(({ uuid }: { uuid: string }) => uuid), link: reply.headers.get('link') };
  };
  assert.deepEqual((await list('')).uuids, uuids);
  assert.deepEqual((await list('?dst=2001:db8:7:1::5')).uuids, [uuids[0]]);
  assert.deepEqual((await list('?dst=203.0.113.0/24')).uuids, uuids);
  assert.deepEqual((await list('?dst=203.0.113.17')).uuids, [uuids[1]], 'also when it is marked for deletion');
  assert.deepEqual((await list('?dst=203.0.113.48')).uuids, []);
  assert.deepEqual((await list('?state=marked_for_deletion')).uuids, [uuids[1]]);
  assert.deepEqual((await list('?state=pending')).uuids, [uuids[0], uuids[2]]);
  const page = await list('?limit=2');
  assert.deepEqual(page.uuids, uuids.slice(0, 2));
  const next = /<\/v1\/tunnel(\?[^>]+)>; rel="next"/.exec(page.link ?? '')?.[1];
  assert.ok(next);
  assert.deepEqual(await list(next), { uuids: [uuids[2]], link: null });
});

test('the configuration is plain text with a tag, of all ends or of one location, and of no tunnel without ends', async () => {
  const { uuid, tunnel_information: ends } = await created(good);
  const config = (query: string, headers = {}) =>
    api.call('readTunnelConfig', { uuid }, { key: user.key, query, headers });
  const all = await config('?format=iproute2');
  assert.equal(all.headers.get('content-type'), 'text/plain; charset=utf-8');
  for (const end of ends) assert.match(all.text, new RegExp(`remote ${end.local_endpoint} ttl 64 key ${end.key}\\n`));
  const ams = await config('?format=iproute2&location=ams1');
  assert.match(ams.text, /remote 192\.0\.2\.2 /);
  assert.doesNotMatch(ams.text, /192\.0\.2\.1 /);
  const same = await config('?format=iproute2', { 'if-none-match': all.headers.get('etag') });
  assert.deepEqual([same.status, same.text], [304, '']);
  const elsewhere = await config('?format=ios&location=bare');
  assert.deepEqual([elsewhere.status, codesOf(elsewhere)], [400, ['?location not_allowed']]);
  assert.match(elsewhere.body.message, /no end at "bare"; it has at: fra1, ams1/);
  const keyed = await config('?format=mikrotik');
  assert.deepEqual([keyed.status, codesOf(keyed)], [400, ['?format not_expressible']]);
  assert.match(
    keyed.body.message,
    /mikrotik knows no key in GRE.*iproute2, systemd-networkd, netplan, junos, ios, vyos/,
  );
  const head = await api.raw('HEAD', `/v1/tunnel/${uuid}/config?format=vyos`, { key: user.key });
  assert.deepEqual([head.status, head.text], [200, '']);
  await api.call('deleteTunnel', { uuid }, { key: user.key });
  assert.equal((await config('?format=vyos')).status, 409);
});

test('what was done to a tunnel is in the audit log, before and after', async () => {
  const { uuid } = await created(good);
  await change(uuid, { endpoint: '198.51.100.10' });
  await api.call('deleteTunnel', { uuid }, { key: user.key });
  await api.call('deleteTunnel', { uuid }, { key: user.key });
  const { rows } = await api.database.pool.query(
    `select operation, before->>'endpoint' as before, after->>'endpoint' as after from audit
      where object_uuid = $1 order by sequence`,
    [uuid],
  );
  assert.deepEqual(rows, [
    { operation: 'createTunnel', before: null, after: '198.51.100.9' },
    { operation: 'changeTunnel', before: '198.51.100.9', after: '198.51.100.10' },
    { operation: 'deleteTunnel', before: '198.51.100.10', after: null },
  ]);
});
