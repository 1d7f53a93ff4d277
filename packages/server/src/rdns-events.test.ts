import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type RdnsReconciler, startRdnsReconciler } from './backends/rdns/reconciler.ts';
import { bindPrimary, type Primary, testKey } from './backends/rdns/testing/primaries.ts';
import { openSse, type SseClient } from './events/testing/sse-client.ts';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './http/testing/api-fixture.ts';
import { type ControlPlane, startControlPlane } from './http/testing/control-plane.ts';
import { type ChangeTail, startChangeTail } from './store/change-tail.ts';
import { waitUntil } from './store/testing/wait-until.ts';

const zone = '113.0.203.in-addr.arpa';
const wide = '0.203.in-addr.arpa';

let api: ApiFixture;
let plane: ControlPlane;
let bind: Primary;
let tail: ChangeTail;
let rdns: RdnsReconciler;
let user: Holder;
let stream: SseClient;

before(async () => {
  bind = await bindPrimary([zone]);
  await bind.start();
  api = await startApi();
  plane = await startControlPlane(api.database);
  tail = await startChangeTail(api.database);
  rdns = await startRdnsReconciler({ database: api.database, tail, log: () => {}, servesEmbedded: false });
  user = await api.user(await api.provider(['203.0.113.0/24']), ['203.0.113.0/25']);
  await waitUntil(() => plane.events.leads, 'the replica leads');
  stream = await openSse(plane.url, user.key);
  await waitUntil(() => stream.heartbeats > 0, 'the stream stands at the present');
});
after(async () => {
  stream?.close();
  await rdns?.stop();
  await tail?.stop();
  await plane?.stop();
  await api?.stop();
  await bind?.remove();
});

async function send(method: string, path: string, body?: object, key = user.key): Promise<Reply> {
  const reply = await request(plane.url, method, `/v1${path}`, { key, body });
  assert.equal(reply.status, 200, reply.text);
  tail.wake();
  return reply;
}
const operator = (method: string, path: string, body?: object) => send(method, path, body, api.operatorKey);
const make = async (last: number): Promise<string> =>
  (await send('POST', '/rdns', { ips: `203.0.113.${last}`, record: `h${last}.example.net` })).body.uuid;
const told = (uuid: string) =>
  stream.messages.filter(({ data }) => data.data?.uuid === uuid).map(({ event }) => event.slice('rdns.'.length));
/** Whether a change was seen waiting before it was applied is a matter of milliseconds. */
const settled = (uuid: string) => told(uuid).filter((what) => what !== 'pending');

test("what becomes of a record's change is told; that its zone's server refuses everything is told of no record that had settled", async () => {
  const server = `127.0.0.1:${bind.port}`;
  const made = await operator('POST', '/operator/rdns-zone', { zone, driver: 'rfc2136', server, tsig: testKey });
  const path = `/operator/rdns-zone/${made.body.uuid}`;
  const records: string[] = [];
  for (let last = 1; last <= 20; last++) records.push(await make(last));
  for (const uuid of records) await waitUntil(() => settled(uuid).join() === 'active', `${uuid} is told as active`);

  const wrong = { ...testKey, secret: Buffer.from('another').toString('base64') };
  await operator('PATCH', path, { tsig: wrong });
  await waitUntil(
    async () => (await operator('GET', path)).body.status.trouble === 'refused',
    'the zone is in trouble',
  );
  // All records are open again, and read as failed.
  await operator('POST', '/operator/rdns-zone', { zone: wide, driver: 'rfc2136', server: '127.0.0.1:9' });
  assert.equal((await send('GET', '/rdns')).body[0].state, 'failed');
  const fresh = await make(21);
  await waitUntil(() => settled(fresh).join() === 'failed', 'a new change is told as what it comes to');
  for (const uuid of records) assert.deepEqual(settled(uuid), ['active'], 'nothing more');

  await operator('PATCH', path, { tsig: testKey });
  await waitUntil(() => settled(fresh).join() === 'failed,active', 'and as active once it is');
  await waitUntil(async () => (await send('GET', '/rdns?state=active')).body.length === 21, 'all are active');
  const last = await make(22);
  await waitUntil(() => settled(last).join() === 'active', 'the log was followed to here');
  for (const uuid of records) assert.deepEqual(settled(uuid), ['active']);
});
