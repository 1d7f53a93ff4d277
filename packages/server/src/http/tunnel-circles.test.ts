/** Tunnels whose own packets go into other tunnels: as deep as one likes, but never back into themselves. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let other: { readonly url: string; readonly close: () => Promise<void> };
let user: Holder;
let stranger: Holder;

before(async () => {
  api = await startApi();
  other = await api.openReplica();
  user = await api.user(await api.provider(['203.0.113.0/24', '2001:db8::/32']), ['203.0.113.0/24', '2001:db8::/32']);
  stranger = await api.user(await api.provider(['198.18.0.0/24', '9.9.9.0/24']), ['9.9.9.0/24']);
});
after(async () => {
  await other?.close();
  await api?.stop();
});
beforeEach(() => api.database.pool.query('delete from tunnel'));

const outside = '198.51.100.9';
const tunnel = (routed: string, endpoint: string) => ({ ips: [routed], endpoint, type: 'GRE' });
const create = (body: object, { key } = user): Promise<Reply> => api.call('createTunnel', {}, { key, body });
const change = (uuid: string, body: object, { key } = user): Promise<Reply> =>
  api.call('changeTunnel', { uuid }, { key, body });
const refusal = ({ status, body }: Reply) => [
  status,
  ...(body.details ?? []).map(({ field, code }: { field: string; code: string }) => `${field} ${code}`),
];

async function created(routed: string, endpoint: string, holder = user): Promise<string> {
  const reply = await create(tunnel(routed, endpoint), holder);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.uuid;
}

test('a tunnel may end inside what another routes, whoever has either and whichever is first', async () => {
  await created('203.0.113.0/28', outside);
  const inner = await created('203.0.113.16/28', '203.0.113.1');
  await created('203.0.113.32/28', '203.0.113.17');
  const theirs = await created('9.9.9.0/28', '203.0.113.130', stranger);
  assert.deepEqual(refusal(await change(theirs, { endpoint: '203.0.113.129' }, stranger)), [200]);
  const over = await created('203.0.113.128/28', outside);
  assert.deepEqual(refusal(await change(inner, { endpoint: '203.0.113.131' })), [200]);
  assert.deepEqual(refusal(await change(over, { ips: ['203.0.113.128/28', '203.0.113.64/28'] })), [200]);
});

test('whoever ends a tunnel in the space of others does not keep them from routing it, by POST or by PATCH', async () => {
  await created('9.9.9.0/28', '203.0.113.5', stranger);
  await created('9.9.9.16/28', '203.0.113.77', stranger);
  const own = await created('203.0.113.0/28', outside);
  assert.deepEqual(refusal(await change(own, { ips: ['203.0.113.0/24'] })), [200]);
  assert.deepEqual(refusal(await change(own, { endpoint: '2600:db8::1' })), [200]);
});

test('a circle of two is refused by POST and by PATCH of endpoint and of ips, which name what makes it', async () => {
  const a = await created('203.0.113.0/28', '203.0.113.17');
  const posted = await create({
    ...tunnel('203.0.113.64/28', '203.0.113.1'),
    ips: ['203.0.113.64/28', '203.0.113.16/28'],
  });
  assert.deepEqual(refusal(posted), [409, '/endpoint tunnel_circle']);
  assert.match(
    posted.body.message,
    new RegExp(
      `endpoint: 203\\.0\\.113\\.1 lies inside 203\\.0\\.113\\.0/28, which ${a} routes, and ips\\.1, 203\\.0\\.113\\.16/28 ` +
        `holds 203\\.0\\.113\\.17, the endpoint of ${a}: .* leave that address out`,
    ),
  );
  const b = await created('203.0.113.16/28', outside);
  assert.deepEqual(refusal(await change(b, { endpoint: '203.0.113.1' })), [409, '/endpoint tunnel_circle']);

  const c = await created('203.0.113.32/28', '203.0.113.2');
  assert.deepEqual(refusal(await change(a, { endpoint: '203.0.113.49' })), [200]);
  const over = await change(c, { ips: ['203.0.113.32/28', '203.0.113.48/28'] });
  assert.deepEqual(refusal(over), [409, '/ips/1 tunnel_circle']);
  assert.match(
    over.body.message,
    new RegExp(`ips\\.1: 203\\.0\\.113\\.48/28 holds 203\\.0\\.113\\.49, the endpoint of ${a}`),
  );
  assert.deepEqual(refusal(await change(c, { ips: ['203.0.113.32/28', '203.0.113.64/28'] })), [200]);
});

test('a circle of three is refused by POST and by PATCH of endpoint and of ips, and not once a link of it is deleted', async () => {
  const a = await created('203.0.113.0/28', '203.0.113.17');
  const b = await created('203.0.113.16/28', '203.0.113.33');
  assert.deepEqual(refusal(await create(tunnel('203.0.113.32/28', '203.0.113.1'))), [409, '/endpoint tunnel_circle']);
  const c = await created('203.0.113.32/28', outside);
  assert.deepEqual(refusal(await change(c, { endpoint: '203.0.113.1' })), [409, '/endpoint tunnel_circle']);
  assert.deepEqual(refusal(await change(c, { endpoint: '203.0.113.129' })), [200]);
  const over = await change(a, { ips: ['203.0.113.0/28', '203.0.113.128/28'] });
  assert.deepEqual(refusal(over), [409, '/ips/1 tunnel_circle']);
  assert.match(over.body.message, new RegExp(`holds 203\\.0\\.113\\.129, the endpoint of ${c}.*which ${b} routes`));

  await api.call('deleteTunnel', { uuid: b }, { key: user.key });
  assert.deepEqual(refusal(await change(a, { ips: ['203.0.113.0/28', '203.0.113.128/28'] })), [200]);
});

test('a tunnel may give up what would make a circle in the same request that makes the rest of it', async () => {
  const a = await created('203.0.113.0/28', '203.0.113.17');
  await created('203.0.113.16/28', '203.0.113.129');
  const swapped = { ips: ['203.0.113.128/28'], endpoint: outside };
  assert.deepEqual(refusal(await change(a, swapped)), [200], 'with its old endpoint the new ips were a circle');
  const own = { ips: ['203.0.113.64/28'], endpoint: '203.0.113.130' };
  assert.deepEqual(refusal(await change(a, own)), [200], 'with its old ips the new endpoint was inside them');
  assert.deepEqual(refusal(await change(a, { endpoint: '203.0.113.65' })), [400, '/endpoint inside_ips']);
});

test('a circle over tunnels of strangers is refused without telling whose they are, and where they end', async () => {
  const own = await created('203.0.113.0/28', '9.9.9.1');
  const hidden = await create(tunnel('9.9.9.0/28', '203.0.113.3'), stranger);
  assert.deepEqual(refusal(hidden), [409, '/endpoint tunnel_circle']);
  assert.doesNotMatch(hidden.text, new RegExp(`${own}|203\\.0\\.113\\.0|9\\.9\\.9\\.1\\b`));
  const theirs = await created('9.9.9.16/28', '203.0.113.3', stranger);
  const over = await change(theirs, { ips: ['9.9.9.0/24'] }, stranger);
  assert.deepEqual(refusal(over), [409, '/ips/0 tunnel_circle']);
  assert.doesNotMatch(over.text, new RegExp(`${own}|203\\.0\\.113\\.0|9\\.9\\.9\\.1\\b`));
});

test('who may not have an address routed is not told whether a tunnel ends there', async () => {
  await created('203.0.113.0/28', '9.9.9.1');
  const asked = await create(tunnel('9.9.9.0/28', '203.0.113.3'));
  assert.deepEqual(refusal(asked), [403, '/ips/0 ip_not_allowed']);
});

test('a tunnel is refused inside more than sixty-four, where nothing is left of a packet, and may still be changed there', async () => {
  const uuids: string[] = [];
  // Each ends inside what the one before routes; the first outside of all.
  const net = (at: number) => `2001:db8:0:${at.toString(16)}`;
  for (let at = 0; at < 64; at++)
    uuids.push(await created(`${net(at)}::/64`, at === 0 ? outside : `${net(at - 1)}::1`));
  const deeper = await create(tunnel('203.0.113.0/28', '2001:db8:0:3f::1'));
  assert.deepEqual(refusal(deeper), [409, '/endpoint tunnels_too_deep']);
  const last = await created('203.0.113.16/28', '2001:db8:0:3e::1');
  await change(uuids[0] as string, { endpoint: '9.9.9.1' });
  await created('9.9.9.0/28', outside, stranger);
  assert.deepEqual(refusal(await change(last, { locations: null })), [200]);
  assert.deepEqual(refusal(await change(last, { ips: ['203.0.113.32/28'] })), [409, '/endpoint tunnels_too_deep']);
});

test('of requests on two replicas that close one circle together all but one succeed', async () => {
  const send = (at: number, method: string, path: string, body: object) =>
    request([api.url, other.url][at % 2] ?? '', method, path, { key: user.key, body });
  const held = async (requests: readonly Promise<Reply>[]) => {
    const replies = await Promise.all(requests);
    const told = replies.map(({ text }) => text).join();
    assert.equal(replies.filter(({ status }) => status === 200).length, replies.length - 1, told);
    const refused = replies.find(({ status }) => status !== 200) as Reply;
    assert.equal(refused.status, 409, told);
    assert.equal(refused.body.details[0].code, 'tunnel_circle', told);
  };
  for (let round = 0; round < 4; round++) {
    await api.database.pool.query('delete from tunnel');
    const two = [tunnel('203.0.113.0/28', '203.0.113.17'), tunnel('203.0.113.16/28', '203.0.113.1')];
    await held(two.map((body, at) => send(at, 'POST', '/v1/tunnel', body)));

    await api.database.pool.query('delete from tunnel');
    const [a, b] = [await created('203.0.113.0/28', outside), await created('203.0.113.16/28', '203.0.113.129')];
    await held([
      send(0, 'PATCH', `/v1/tunnel/${a}`, { endpoint: '203.0.113.17' }),
      send(1, 'PATCH', `/v1/tunnel/${round % 2 === 0 ? b : a}`, {
        ...(round % 2 === 0 ? { endpoint: '203.0.113.1' } : { ips: ['203.0.113.0/28', '203.0.113.128/28'] }),
      }),
    ]);

    await api.database.pool.query('delete from tunnel');
    const three = [32, 0, 16].map((into, at) => tunnel(`203.0.113.${at * 16}/28`, `203.0.113.${into + 1}`));
    await held(three.map((body, at) => send(at + round, 'POST', '/v1/tunnel', body)));
  }
});
