import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { type ApiFixture, type Holder, type Reply, startApi } from './testing/api-fixture.ts';
import { createTestRouter } from './testing/tunnel-world.ts';

let api: ApiFixture;
let user: Holder;

/** Seven numbers. */
const innerPools = { ipv4: prefixFromTrusted('10.0.0.0/28'), ipv6: prefixFromTrusted('fd00::/64') };

before(async () => {
  api = await startApi({ innerPools });
  await api.call('createLocation', {}, { key: api.operatorKey, body: { name: 'fra1' } });
  await createTestRouter(api, 'edge', 'fra1', ['192.0.2.1']);
  const provider = await api.provider(['203.0.113.0/24']);
  user = await api.user(provider, ['203.0.113.0/24']);
});
after(() => api?.stop());
beforeEach(async () => {
  await api.database.pool.query('delete from tunnel');
  await api.database.pool.query('update tunnel_turn set next_number = 1');
});

const create = (at: number): Promise<Reply> => {
  const body = { ips: [`203.0.113.${at}`], endpoint: '198.51.100.9', type: 'GRE' };
  return api.call('createTunnel', {}, { key: user.key, body });
};
const gone = (reply: Reply) => api.database.pool.query('delete from tunnel where uuid = $1', [reply.body.uuid]);

async function keyOf(at: number): Promise<number> {
  const reply = await create(at);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.tunnel_information[0].key;
}

test('the inner addresses come from the pools that the operator set', async () => {
  const { body } = await create(1);
  const [end] = body.tunnel_information;
  assert.deepEqual(
    [end.inner_ipv4, end.inner_ipv6],
    [
      { router: '10.0.0.2', customer: '10.0.0.3', prefix_length: 31 },
      { router: 'fd00::2', customer: 'fd00::3', prefix_length: 127 },
    ],
  );
});

test('a number comes up again only when its tunnel is gone, and after all others', async () => {
  const first = await create(1);
  assert.equal(await keyOf(2), 2);
  await gone(first);
  const later: number[] = [];
  for (let at = 3; at <= 8; at++) later.push(await keyOf(at));
  assert.deepEqual(later, [3, 4, 5, 6, 7, 1]);
});

test('with every inner address in use a tunnel is refused with what the operator can do, and nothing is left of it', async () => {
  const made: Reply[] = [];
  for (let at = 1; at <= 7; at++) made.push(await create(at));
  const refused = await create(8);
  assert.deepEqual([refused.status, refused.body.details[0].code], [409, 'inner_addresses_exhausted'], refused.text);
  assert.match(refused.body.message, /LEVEE_TUNNEL_INNER_IPV4/);
  const { rows } = await api.database.pool.query('select (select count(*)::int from tunnel) as count');
  assert.equal(rows[0]?.count, 7);
  await gone(made[4] as Reply);
  assert.equal(await keyOf(8), 5);
});

test('a router whose ends would not fit is not added', async () => {
  for (let at = 1; at <= 4; at++) await create(at);
  const body = { name: 'second', location: 'fra1', tunnel_addresses: ['192.0.2.2'] };
  const refused = await api.call('createRouter', {}, { key: api.operatorKey, body });
  assert.deepEqual([refused.status, refused.body.details[0].code], [409, 'inner_addresses_exhausted'], refused.text);
  const { body: routers } = await api.call('listRouters', {}, { key: api.operatorKey });
  assert.equal(routers.length, 1);
});

test('numbers and addresses that were given out of other pools are never given again', async () => {
  const other = await create(1);
  await api.database.pool.query(
    `update tunnel_end set number = 900000, inner_ipv4 = '10.0.0.6/31' where tunnel_uuid = $1`,
    [other.body.uuid],
  );
  const given: number[] = [];
  await api.database.pool.query('update tunnel_turn set next_number = 900001');
  for (let at = 2; at <= 6; at++) given.push(await keyOf(at));
  // fd00::2/127 is the pair of number 1, 10.0.0.6/31 that of number 3.
  assert.deepEqual(given, [2, 4, 5, 6, 7]);
});
