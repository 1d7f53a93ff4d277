import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { STREAMS_OF_A_KEY } from '../events/streams.ts';
import { silenceServer } from '../store/testing/silent-server.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { type ApiFixture, type Holder, type Reply, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let user: Holder;
before(async () => {
  api = await startApi();
  user = await api.user(await api.provider(['203.0.113.0/24']), ['203.0.113.0/28']);
});
after(() => api?.stop());

const rule = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };

/** Well above what is promised, for a machine that is busy. */
const BOUND_MILLISECONDS = 13_000;

interface Timed {
  readonly what: string;
  readonly reply: Reply;
  readonly milliseconds: number;
}

test('a database that falls silent gives 503 in time on every path, and what is said of a change is true', async (context) => {
  const { key } = user;
  const [unused, watching] = [await api.key(user.uuid), await api.key(user.uuid)];
  const replica = await api.openReplica();
  context.after(() => replica.close());
  /** As many as the key may hold, at once. */
  const openStreams = async () => {
    const open = () => fetch(`${replica.url}/v1/event`, { headers: { 'x-api-key': watching } });
    const responses = await Promise.all(Array.from({ length: STREAMS_OF_A_KEY }, open));
    await Promise.all(responses.map(({ body }) => body?.cancel()));
    return new Set(responses.map(({ status }) => status));
  };
  assert.deepEqual(await openStreams(), new Set([200]));
  const kept = (await api.call('createFirewallRule', {}, { key, body: rule })).body;
  const timed = async (what: string, id: string, params: Record<string, string>, ask: object): Promise<Timed> => {
    const begin = performance.now();
    const reply = await api.call(id, params, { key, ...ask });
    return { what, reply, milliseconds: performance.now() - begin };
  };
  const named = { headers: { 'idempotency-key': 'once' }, body: { ips: '203.0.113.1', record: 'once.example.net' } };
  const byUuid = { uuid: kept.uuid };
  const write = () => [
    timed('rule', 'createFirewallRule', {}, { body: rule }),
    timed('record', 'createRdns', {}, { body: { ips: '203.0.113.2', record: 'mail.example.net' } }),
    timed('named', 'createRdns', {}, named),
    timed('change', 'changeFirewallRule', byUuid, { body: { priority: 7 } }),
    timed('filter', 'createFilter', {}, { body: { dst: '203.0.113.7', filter: 20 } }),
  ];
  const read = () => [
    timed('read', 'readFirewallRule', byUuid, {}),
    timed('list', 'listFirewallRules', {}, {}),
    timed('page', 'listFirewallRules', {}, { query: '?limit=3' }),
    timed('records', 'listRdns', {}, {}),
  ];
  // Keys that were just good are trusted for a moment, so that the requests themselves meet the silence.
  await api.call('whoAmI', {}, { key });
  await Promise.all(Array.from({ length: 8 }, () => api.database.pool.query('select pg_sleep(0.02)')));
  await Promise.all([
    api.call('whoAmI', {}, { key }),
    fetch(`${replica.url}/v1/whoami`, { headers: { 'x-api-key': watching } }),
  ]);
  const goOn = silenceServer(api.postgres.server.pid);
  let replies: readonly Timed[];
  try {
    const streams = openStreams();
    // More than there are connections; the last with a key that has to be looked up.
    replies = await Promise.all([...write(), ...read(), timed('another key', 'listFilters', {}, { key: unused })]);
    assert.deepEqual(await streams, new Set([503]));
  } finally {
    goOn();
  }
  for (const { what, reply, milliseconds } of replies) {
    assert.deepEqual(
      [reply.status, reply.body.error, reply.headers.get('retry-after')],
      [503, 'unavailable', '1'],
      what,
    );
    assert.ok(milliseconds < BOUND_MILLISECONDS, `${what}: ${Math.round(milliseconds)} ms`);
  }
  const isUnknown = ({ reply }: Timed) => reply.body.details?.[0]?.code === 'outcome_unknown';
  for (const each of replies.filter(({ what }) => ['named', 'rule'].includes(what))) {
    assert.ok(isUnknown(each), `${each.what}: ${each.reply.text}`);
    assert.match(each.reply.body.message, /may or may not .* Idempotency-Key/);
  }
  for (const each of replies.slice(5)) assert.equal(isUnknown(each), false, each.what);

  // Whatever became of the first one, it is there once.
  let again: Reply | undefined;
  await waitUntil(async () => {
    again = await api.call('createRdns', {}, { key, ...named });
    return again.status !== 503;
  }, 'the database is back');
  assert.equal(again?.status, 200, again?.text);
  const records = (await api.call('listRdns', {}, { key })).body;
  assert.equal(records.filter(({ ips }: { ips: string }) => ips === '203.0.113.1').length, 1);
  assert.equal((await api.call('createRdns', {}, { key, ...named })).headers.get('idempotent-replayed'), 'true');
  assert.deepEqual(await openStreams(), new Set([200]), 'streams that were not opened hold no place of their key');
});
