import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startRdnsReconciler } from './backends/rdns/reconciler.ts';
import { digPointers, digStatus } from './backends/rdns/testing/dig.ts';
import { bindPrimary, type Primary, testKey } from './backends/rdns/testing/primaries.ts';
import { createApi } from './http/api.ts';
import {
  type ApiFixture,
  type Ask,
  type Holder,
  nowhere,
  type Reply,
  request,
  silent,
  startApi,
} from './http/testing/api-fixture.ts';
import { startChangeTail } from './store/change-tail.ts';
import type { Database } from './store/database.ts';
import { waitUntil } from './store/testing/wait-until.ts';

const zone = '113.0.203.in-addr.arpa';
const classless = '0/25.2.0.192.in-addr.arpa';
const ipv6Zone = '8.b.d.0.1.0.0.2.ip6.arpa';

interface Replica {
  readonly url: string;
  stop(): Promise<void>;
}

/** The interface and the reconciler of one replica. */
async function startReplica(database: Database): Promise<Replica> {
  const tail = await startChangeTail(database);
  const rdns = await startRdnsReconciler({
    database,
    tail,
    log: () => {},
    servesEmbedded: false,
    probeEveryMilliseconds: 500,
  });
  const api = createApi({
    pool: database.pool,
    states: nowhere,
    wake: () => tail.wake(),
    waitApplied: async () => 'not-enforced',
    routersChanged: async () => {},
    rdnsSettled: rdns.settled,
    log: silent,
    isReady: async () => true,
  });
  const { port } = await api.listen({ host: '127.0.0.1', port: 0 });
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      await rdns.stop();
      await api.close(500);
      await tail.stop();
    },
  };
}

let api: ApiFixture;
let one: Replica;
let two: Replica;
let bind: Primary;
let provider: Holder;
let user: Holder;
let zoneUuid: string;

before(async () => {
  bind = await bindPrimary([zone, classless, ipv6Zone], ['77 IN PTR foreign.example.net.', '50 IN CNAME 50.0/25']);
  await bind.start();
  api = await startApi();
  one = await startReplica(api.database);
  two = await startReplica(api.postgres.openAgain(api.database));
  provider = await api.provider(['203.0.113.0/24', '192.0.2.0/24', '198.51.100.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/25', '192.0.2.0/25', '198.51.100.0/25', '2001:db8:7::/48']);
});
after(async () => {
  await two?.stop();
  await one?.stop();
  await api?.stop();
  await bind?.remove();
});

const send = (method: string, path: string, ask: Ask = {}, replica = one): Promise<Reply> =>
  request(replica.url, method, `/v1${path}`, { key: user.key, ...ask });
const operator = (method: string, path: string, body?: object): Promise<Reply> =>
  send(method, path, { key: api.operatorKey, ...(body && { body }) });
const waiting = { headers: { prefer: 'wait=10' } };

async function addZone(name: string): Promise<string> {
  const body = { zone: name, driver: 'rfc2136', server: `127.0.0.1:${bind.port}`, tsig: testKey };
  const reply = await operator('POST', '/operator/rdns-zone', body);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.uuid;
}

async function readOne(ips: string, replica = one) {
  const reply = await send('GET', `/rdns?ip=${ips}`, {}, replica);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.at(-1);
}

test('a record waits for a zone and says so, and is served as soon as there is one', async () => {
  const made = await send('POST', '/rdns', { body: { ips: '203.0.113.7', record: 'Mail.Example.NET.' }, ...waiting });
  assert.equal(made.status, 200, made.text);
  assert.equal(made.headers.get('preference-applied'), 'wait=10, outcome=not-enforced');
  assert.equal(made.body.state, 'pending');
  assert.equal(made.body.record, 'mail.example.net');
  assert.match(made.body.state_reason, /No reverse zone covers 203\.0\.113\.7: the operator adds one/);
  assert.deepEqual(made.body.applied, []);
  zoneUuid = await addZone(zone);
  await waitUntil(async () => (await readOne('203.0.113.7')).state === 'active', 'the record is active');
  assert.deepEqual(await digPointers(bind.port, `7.${zone}`), ['mail.example.net']);
  const { applied } = await readOne('203.0.113.7', two);
  assert.equal(applied[0].zone, zone);
  assert.equal(applied[0].state, 'active');
});

test('a record is created, changed, deleted, and each answer that waited is true at the server', async () => {
  const ips = '203.0.113.8';
  const made = await send('POST', '/rdns', { body: { ips, record: 'a.example.net' }, ...waiting }, two);
  assert.equal(made.body.state, 'active', made.text);
  assert.equal(made.headers.get('preference-applied'), 'wait=10, outcome=applied');
  assert.deepEqual(await digPointers(bind.port, `8.${zone}`), ['a.example.net']);
  const changed = await send('PUT', '/rdns', { body: { ips, record: 'bücher.example' }, ...waiting });
  assert.equal(changed.body.state, 'active', changed.text);
  assert.equal(changed.body.uuid, made.body.uuid);
  assert.deepEqual(await digPointers(bind.port, `8.${zone}`), ['xn--bcher-kva.example']);
  const gone = await send('DELETE', '/rdns', { body: { ips }, ...waiting });
  assert.equal(gone.body.state, 'marked_for_deletion', gone.text);
  assert.equal(gone.body.applied[0].state, 'removed');
  assert.equal(await digStatus(bind.port, `8.${zone}`), 'NXDOMAIN');
  assert.equal(await readOne(ips), undefined);
  const again = await send('DELETE', '/rdns', { body: { ips } });
  assert.equal(again.status, 404);
});

test('of two creators of one address one gets the record and the other is told, whichever replica they ask', async () => {
  for (let round = 0; round < 5; round++) {
    const body = { ips: `203.0.113.${20 + round}`, record: 'twice.example.net' };
    const replies = await Promise.all([one, two, one, two].map((replica) => send('POST', '/rdns', { body }, replica)));
    assert.deepEqual(replies.map((reply) => reply.status).sort(), [200, 409, 409, 409]);
    const refused = replies.find((reply) => reply.status === 409);
    assert.equal(refused?.body.error, 'conflict');
    assert.equal(refused?.body.details[0].code, 'already_exists');
    assert.match(refused?.body.message, /PUT changes it/);
  }
});

test('while the server is away the answer comes at once and says so, and the record is there within a second of its return', async () => {
  await waitUntil(async () => (await send('GET', '/rdns?state=pending')).body.length === 0, 'nothing is pending');
  await bind.kill();
  const begun = performance.now();
  const made = await send('POST', '/rdns', { body: { ips: '203.0.113.9', record: 'away.example.net' } });
  assert.ok(performance.now() - begun < 500, 'answered at once');
  assert.equal(made.body.state, 'pending');
  await waitUntil(async () => /is away since/.test((await readOne('203.0.113.9')).state_reason), 'the reason is told');
  const { state, state_reason } = await readOne('203.0.113.9');
  assert.equal(state, 'pending');
  assert.match(state_reason, new RegExp(`The DNS server of ${zone} is away since \\d{4}-.*: connection refused\\.`));
  const { status } = (await operator('GET', `/operator/rdns-zone/${zoneUuid}`)).body;
  assert.equal(status.reachable, false);
  assert.equal(status.trouble, 'away');
  assert.equal(status.last_error, 'connection refused');
  assert.equal(status.records_pending, 1);
  const deleted = await send('DELETE', '/rdns', { body: { ips: '203.0.113.7' } });
  assert.equal(deleted.status, 200);
  await bind.start();
  const returned = performance.now();
  await waitUntil(async () => (await readOne('203.0.113.9')).state === 'active', 'the record is active again', 3_000);
  const late = performance.now() - returned;
  assert.deepEqual(await digPointers(bind.port, `9.${zone}`), ['away.example.net']);
  assert.ok(late < 1_000, `active ${late} ms after the server answered`);
  await waitUntil(async () => (await readOne('203.0.113.7')) === undefined, 'what was deleted meanwhile is gone');
  assert.equal(await digStatus(bind.port, `7.${zone}`), 'NXDOMAIN');
  await waitUntil(async () => {
    const zoneNow = (await operator('GET', `/operator/rdns-zone/${zoneUuid}`)).body;
    return zoneNow.status.reachable === true && zoneNow.status.trouble === undefined;
  }, 'the zone is well again');
});

test('a record that the server refuses is failed with its reason, others are not held up, and a change heals it', async () => {
  const refused = await send('POST', '/rdns', { body: { ips: '203.0.113.99', record: 'no.example.net' }, ...waiting });
  assert.equal(refused.body.state, 'failed', refused.text);
  assert.equal(refused.headers.get('preference-applied'), 'wait=10, outcome=failed');
  assert.match(refused.body.state_reason, /does not allow this update with the key levee-test \(REFUSED\)/);
  assert.ok(!refused.text.includes(testKey.secret));
  const alias = await send('POST', '/rdns', { body: { ips: '203.0.113.50', record: 'no.example.net' }, ...waiting });
  assert.equal(alias.body.state, 'failed');
  assert.match(alias.body.state_reason, /is an alias of 50\.0\/25\.113\.0\.203\.in-addr\.arpa/);
  const good = await send('POST', '/rdns', { body: { ips: '203.0.113.51', record: 'yes.example.net' }, ...waiting });
  assert.equal(good.body.state, 'active', good.text);
  const { status } = (await operator('GET', `/operator/rdns-zone/${zoneUuid}`)).body;
  assert.equal(status.records_failed, 2);
  assert.equal(status.reachable, true);
  for (const ips of ['203.0.113.99', '203.0.113.50']) {
    const gone = await send('DELETE', '/rdns', { body: { ips } });
    assert.equal(gone.status, 200);
  }
});

test('a wrong key fails the whole zone with a reason that tells what to mend, and mending it brings the records', async () => {
  const wrong = { tsig: { ...testKey, secret: Buffer.from('another').toString('base64') } };
  const changed = await operator('PATCH', `/operator/rdns-zone/${zoneUuid}`, wrong);
  assert.equal(changed.status, 200, changed.text);
  assert.ok(!changed.text.includes(testKey.secret) && !changed.text.includes(wrong.tsig.secret));
  const made = await send('POST', '/rdns', { body: { ips: '203.0.113.60', record: 'key.example.net' }, ...waiting });
  assert.equal(made.body.state, 'failed', made.text);
  assert.match(made.body.state_reason, /refuses changes: it has another secret for the key levee-test \(BADSIG\)/);
  await operator('PATCH', `/operator/rdns-zone/${zoneUuid}`, { tsig: testKey });
  await waitUntil(async () => (await readOne('203.0.113.60')).state === 'active', 'applied with the right key');
  assert.deepEqual(await digPointers(bind.port, `60.${zone}`), ['key.example.net']);
});

test('classless and IPv6 zones get their records under their own names', async () => {
  await Promise.all([addZone(classless), addZone(ipv6Zone)]);
  const four = await send('POST', '/rdns', { body: { ips: '192.0.2.9', record: 'four.example.net' }, ...waiting });
  assert.equal(four.body.state, 'active', four.text);
  assert.equal(four.body.applied[0].zone, classless);
  assert.deepEqual(await digPointers(bind.port, `9.${classless}`), ['four.example.net']);
  const six = await send('POST', '/rdns', { body: { ips: '2001:DB8:7:0::1', record: 'six.example.net' }, ...waiting });
  assert.equal(six.body.ips, '2001:db8:7::1');
  assert.equal(six.body.state, 'active', six.text);
  const name = `1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.7.0.0.0.${ipv6Zone}`;
  assert.deepEqual(await digPointers(bind.port, name), ['six.example.net']);
});

test('a zone taken over by another primary gets every record again, and records without a row stay as they are', async () => {
  const other = await bindPrimary([zone], ['77 IN PTR foreign.example.net.', '60 IN PTR stale.example.net.']);
  try {
    await other.start();
    await operator('PATCH', `/operator/rdns-zone/${zoneUuid}`, { server: `127.0.0.1:${other.port}` });
    await waitUntil(
      async () => (await digPointers(other.port, `60.${zone}`))[0] === 'key.example.net',
      'applied there',
    );
    await waitUntil(async () => (await readOne('203.0.113.60')).state === 'active', 'active');
    assert.deepEqual(await digPointers(other.port, `77.${zone}`), ['foreign.example.net']);
    assert.deepEqual(await digPointers(bind.port, `60.${zone}`), ['key.example.net'], 'the former keeps what it has');
    await operator('PATCH', `/operator/rdns-zone/${zoneUuid}`, { server: `127.0.0.1:${bind.port}` });
    await waitUntil(async () => (await readOne('203.0.113.60')).state === 'active', 'active');
  } finally {
    await other.remove();
  }
});

test('a replica that dies leaves its zones to the other within seconds', async () => {
  const holder = await startReplica(api.postgres.openAgain(api.database));
  try {
    await Promise.all([one.stop(), two.stop()]);
    const body = { ips: '203.0.113.61', record: 'taken-over.example.net' };
    const made = await send('POST', '/rdns', { body, ...waiting }, holder);
    assert.equal(made.body.state, 'active', made.text);
  } finally {
    await holder.stop();
    one = await startReplica(api.database);
    two = await startReplica(api.postgres.openAgain(api.database));
  }
});

test('replicas that lose the connection with their locks take the zones again', async () => {
  const sessions = `from pg_stat_activity where application_name = 'levee rdns' and datname = current_database()`;
  const { pool } = api.database;
  await waitUntil(async () => (await pool.query(`select ${sessions}`)).rows.length === 2, 'both have asked for locks');
  await pool.query(`select pg_terminate_backend(pid) ${sessions}`);
  const made = await send('POST', '/rdns', { body: { ips: '203.0.113.62', record: 'again.example.net' }, ...waiting });
  assert.equal(made.body.state, 'active', made.text);
  assert.deepEqual(await digPointers(bind.port, `62.${zone}`), ['again.example.net']);
});

test('letting go of a zone leaves the server alone, and what was deleted goes', async () => {
  const reply = await operator('DELETE', `/operator/rdns-zone/${zoneUuid}`);
  assert.equal(reply.status, 200, reply.text);
  await waitUntil(async () => (await readOne('203.0.113.60')).state === 'pending', 'no zone any more');
  assert.match((await readOne('203.0.113.60')).state_reason, /No reverse zone covers/);
  assert.deepEqual(await digPointers(bind.port, `60.${zone}`), ['key.example.net']);
  const gone = await send('DELETE', '/rdns', { body: { ips: '203.0.113.60' }, ...waiting });
  assert.equal(gone.headers.get('preference-applied'), 'wait=10, outcome=applied');
  assert.equal(await readOne('203.0.113.60'), undefined);
});
