import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './testing/api-fixture.ts';
import { createTestRouter } from './testing/tunnel-world.ts';

let api: ApiFixture;
let other: { readonly url: string; readonly close: () => Promise<void> };
let user: Holder;

before(async () => {
  api = await startApi();
  other = await api.openReplica();
  await api.call('createLocation', {}, { key: api.operatorKey, body: { name: 'fra1' } });
  for (const at of [1, 2]) await createTestRouter(api, `edge${at}`, 'fra1', [`192.0.2.${at}`]);
  const provider = await api.provider(['203.0.113.0/24', '2001:db8::/40']);
  user = await api.user(provider, ['203.0.113.0/24', '2001:db8::/40']);
});
after(async () => {
  await other?.close();
  await api?.stop();
});
beforeEach(() => api.database.pool.query('delete from tunnel'));

const urls = () => [api.url, other.url];
const body = (ips: readonly string[]) => ({ ips, endpoint: '198.51.100.9', type: 'Geneve' });
const create = (at: number, ips: readonly string[], headers = {}): Promise<Reply> =>
  request(urls()[at % 2] ?? '', 'POST', '/v1/tunnel', { key: user.key, body: body(ips), headers });

interface EndText {
  readonly vni: number;
  readonly inner_ipv4: { readonly router: string };
  readonly inner_ipv6: { readonly router: string };
}

test('of two creators of one subnet on two replicas one is answered 200 and the other 409', async () => {
  for (let round = 0; round < 5; round++) {
    await api.database.pool.query('delete from tunnel');
    const replies = await Promise.all([
      create(0, ['203.0.113.0/28']),
      create(1, round % 2 === 0 ? ['203.0.113.0/28'] : ['203.0.113.5', '203.0.113.64/26']),
    ]);
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409]);
    const refused = replies.find(({ status }) => status === 409);
    assert.equal(refused?.body.details[0].code, 'subnet_already_routed', refused?.text);
  }
});

test('fifty tunnels made at once over two replicas have a hundred ends and no number or address twice', async () => {
  const replies = await Promise.all(
    Array.from({ length: 50 }, (_, at) => create(at, [`2001:db8:0:${at.toString(16)}::/64`])),
  );
  const ends = replies.flatMap((reply): EndText[] => {
    assert.equal(reply.status, 200, reply.text);
    return reply.body.tunnel_information;
  });
  assert.equal(ends.length, 100);
  for (const of of [
    (end: EndText) => String(end.vni),
    (end: EndText) => end.inner_ipv4.router,
    (end: EndText) => end.inner_ipv6.router,
  ]) {
    assert.equal(new Set(ends.map(of)).size, 100);
  }
});

test('tunnels and routers that are made at the same time all meet', async () => {
  const added = Array.from({ length: 4 }, (_, at) =>
    createTestRouter(api, `late${at}`, 'fra1', [`192.0.2.${100 + at}`]),
  );
  const made = Array.from({ length: 12 }, (_, at) => create(at, [`203.0.113.${at}`]));
  const routers = await Promise.all(added);
  const uuids = (await Promise.all(made)).map((reply) => reply.body.uuid);
  for (const uuid of uuids) {
    const { body: read } = await api.call('readTunnel', { uuid }, { key: user.key });
    assert.equal(read[0].tunnel_information.length, 6, read[0].state_reason);
  }
  // Removed while tunnels are made: none of them keeps an end there.
  const removed = routers.map((uuid) => api.call('deleteRouter', { uuid }, { key: api.operatorKey }));
  const more = Array.from({ length: 6 }, (_, at) => create(at, [`203.0.113.${100 + at}`]));
  for (const reply of await Promise.all([...removed, ...more])) assert.equal(reply.status, 200, reply.text);
  const { body: list } = await api.call('listTunnels', {}, { key: user.key });
  for (const tunnel of list.tunnels) assert.equal(tunnel.tunnel_information.length, 2);
});

test('a repeated request replays the tunnel that the first one made, on the other replica too', async () => {
  const headers = { 'idempotency-key': 'one-tunnel' };
  const first = await create(0, ['203.0.113.0/28'], headers);
  const again = await create(1, ['203.0.113.0/28'], headers);
  assert.deepEqual([first.status, again.status, again.text], [200, 200, first.text]);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
});

/** Everything that comes back on one connection for the texts, sent one after the other without waiting. */
function exchange(texts: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1', () => socket.write(texts.join('')));
    let received = '';
    socket.setEncoding('utf8').on('data', (part: string) => {
      received += part;
    });
    socket.on('end', () => resolve(received)).on('error', reject);
  });
}

test('GET /tunnel takes a JSON body, an empty one or none, and the connection serves the next request', async () => {
  const { body: made } = await create(0, ['203.0.113.0/28']);
  const get = (more: string, text = '') =>
    `GET /v1/tunnel HTTP/1.1\r\nhost: x\r\nx-api-key: ${user.key}\r\n${more}\r\n${text}`;
  const json = 'content-type: application/json\r\n';
  const requests = [
    get(`${json}content-length: 2\r\n`, '{}'),
    get(''),
    get(`${json}content-length: 0\r\n`),
    get(`${json}transfer-encoding: chunked\r\n`, '2\r\n{}\r\n0\r\n\r\n'),
    get(json),
    get(`${json}content-length: 16\r\n`, '{"limit": "all"}'),
    get('connection: close\r\n'),
  ];
  const received = await exchange(requests);
  assert.equal(received.match(/HTTP\/1\.1 200 OK/g)?.length, requests.length, received);
  assert.equal(received.match(new RegExp(`\\{"tunnels":\\[\\{"uuid":"${made.uuid}"`, 'g'))?.length, requests.length);
});
