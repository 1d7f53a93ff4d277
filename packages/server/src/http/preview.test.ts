import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { DetectorStreamMessage, PacketSample, SamplesWanted } from '@levee/contract/detector.ts';
import { executorOf } from '../commands/executor.ts';
import { MOST_OPEN, saveAnswer } from '../commands/sample-exchange.ts';
import { sampleOf } from '../commands/testing/detected.ts';
import { type SamplesRelay, startSamplesRelay } from '../detectors/samples-relay.ts';
import type { Database } from '../store/database.ts';
import { newUuid } from '../store/new-uuid.ts';
import { waitUntil } from '../store/testing/wait-until.ts';
import { type ApiFixture, type Holder, startApi } from './testing/api-fixture.ts';

const dst = '203.0.113.7';
let api: ApiFixture;
let provider: Holder;
let user: Holder;
let replica: Database;
let relay: SamplesRelay;
/** The detectors that are connected to the other replica, and what each answers; undefined: nothing. */
let detectors: { readonly uuid: string; readonly answer: ((wanted: SamplesWanted) => PacketSample[]) | undefined }[] =
  [];

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/28', '2001:db8:7::/48']);
  await api.database.pool.query(`update subnet set created_at = created_at - interval '1 day'`);
  replica = api.postgres.openAgain(api.database);
  const streams = {
    get count() {
      return detectors.length;
    },
    send(message: DetectorStreamMessage) {
      if (message.type !== 'samples_wanted') return;
      for (const { uuid, answer } of detectors) {
        const packets = answer?.(message);
        if (packets === undefined) continue;
        const sent = { request: message.request, held: packets.length * 3, packets };
        void saveAnswer(executorOf(replica.pool), uuid, sent);
      }
    },
  };
  relay = startSamplesRelay(replica, streams, () => {});
  await waitUntil(async () => {
    const { rows } = await api.database.pool.query(
      `select from pg_stat_activity where application_name = 'levee samples' and query ilike 'listen%' and state = 'idle'`,
    );
    return rows.length > 0;
  }, 'the relay listens');
});
after(async () => {
  await relay.stop();
  await api.stop();
});
beforeEach(async () => {
  detectors = [];
  await noteReports();
});

const now = () => Date.now() - 60_000;
const connect = (answer?: (wanted: SamplesWanted) => PacketSample[]) => detectors.push({ uuid: newUuid(), answer });

/** Whoever has a stream reports: that nobody was told yet is then no reason to say that there is no detector. */
const noteReports = () =>
  api.database.pool.query(
    `insert into detector (uuid, name, key_hash, last_seen_at)
      values ($1, 'one', '\\x01', case when $2 then now() end)
      on conflict (name) do update set last_seen_at = excluded.last_seen_at`,
    [newUuid(), detectors.length > 0],
  );

async function preview(more: object = {}, key = user.key) {
  await noteReports();
  const body = { dst, protocol: 'udp', action: 'drop', ...more };
  const reply = await api.call('previewFirewallRule', {}, { key, body });
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}

test('a draft is held against the samples of its destination, whichever replica has the detector', async () => {
  const asked: SamplesWanted[] = [];
  const began = now();
  connect((wanted) => {
    asked.push(wanted);
    return [
      ...Array.from({ length: 30 }, (_, index) => sampleOf(dst, began + index, 9)),
      ...Array.from({ length: 10 }, (_, index) => sampleOf(dst, began + 100 + index, 10, { scale: 32 })),
      sampleOf(dst, began + 200, 11, { length: 64, header: Buffer.of(1, 2, 3).toString('base64') }),
    ];
  });
  const of9 = await preview({ src: { start: '198.51.100.9' }, port: { src: { start: 53 } } });
  assert.deepEqual(
    asked.map(({ dst, seconds, most }) => [dst, seconds, most]),
    [[dst, 900, 1000]],
  );
  assert.deepEqual(
    [of9.samples, of9.packets, of9.held, of9.matched, of9.matched_packets, of9.matched_share, of9.undecided],
    [40, 800, 123, 30, 480, 0.6, 0],
  );
  assert.equal(of9.since, new Date(began).toISOString());
  assert.deepEqual(of9.of, { accept: { samples: 30, packets: 480 } });
  assert.deepEqual(of9.changes.newly_discarded, { samples: 30, packets: 480 });
  assert.equal(of9.examples.length, 20);
  assert.deepEqual(of9.examples[0], {
    at: new Date(began).toISOString(),
    src: '198.51.100.9',
    dst,
    protocol: 'udp',
    port: { src: 53, dst: 40_000 },
    length: 1400,
    scale: 16,
    verdict: 'accept',
  });
  assert.deepEqual(of9.top_sources, [{ source: '198.51.100.9', packets: 480, share: 1 }]);
  const all = await preview();
  assert.deepEqual(
    all.top_sources.map(({ source, packets }: { source: string; packets: number }) => [source, packets]),
    [
      ['198.51.100.9', 480],
      ['198.51.100.10', 320],
    ],
  );
});

test('what a draft would change is told beside the rules that are there, others’ too', async () => {
  const began = now();
  connect(() => [sampleOf(dst, began, 9), sampleOf(dst, began + 1, 10), sampleOf(dst, began + 2, 11)]);
  const make = async (body: object) => {
    const reply = await api.call('createFirewallRule', {}, { key: user.key, body: { dst, protocol: 'udp', ...body } });
    assert.equal(reply.status, 200, reply.text);
    return reply.body.uuid as string;
  };
  const rules = [
    await make({ action: 'drop', src: { start: '198.51.100.9' }, priority: 10 }),
    await make({ action: 'accept', src: { start: '198.51.100.10' }, priority: 20 }),
  ];
  const one = { samples: 1, packets: 16 };
  const none = { samples: 0, packets: 0 };
  const behind = await preview({ priority: 1000 });
  assert.equal(behind.matched, 3);
  assert.deepEqual(behind.of, { drop: one, accept: { samples: 2, packets: 32 } });
  assert.deepEqual(behind.changes, { newly_discarded: one, newly_accepted: none, unclear: none });
  const before = await preview({ action: 'accept', priority: 1 });
  assert.deepEqual(before.changes, { newly_discarded: none, newly_accepted: one, unclear: none });
  const tracked = await preview({ statetype: 'new', priority: 1 });
  assert.deepEqual([tracked.matched, tracked.undecided], [0, 3]);
  assert.deepEqual(tracked.changes.unclear, { samples: 2, packets: 32 });
  for (const uuid of rules) await api.call('deleteFirewallRule', { uuid }, { key: user.key });
});

test('packets from before the caller held the address are none of a preview', async () => {
  const handedOver = '203.0.113.40';
  const former = await api.user(provider, [handedOver]);
  await api.call('deleteUser', { uuid: former.uuid }, { key: provider.key });
  const present = await api.user(provider, [handedOver]);
  const asked: SamplesWanted[] = [];
  connect((wanted) => {
    asked.push(wanted);
    return Array.from({ length: 10 }, (_, index) => sampleOf(handedOver, Date.now() - 60_000 + index));
  });
  const before = await preview({ dst: handedOver }, present.key);
  assert.deepEqual([before.samples, before.held, before.top_sources, before.examples], [0, 0, [], []]);
  assert.equal(before.reason.code, 'no_samples');
  assert.ok(Number(asked[0]?.seconds) < 60, 'nor are they asked for');
  detectors = [];
  connect(() => [sampleOf(handedOver, Date.now() - 60_000, 9), sampleOf(handedOver, Date.now(), 10)]);
  const after = await preview({ dst: handedOver }, present.key);
  assert.deepEqual([after.samples, after.examples[0].src], [1, '198.51.100.10']);
});

test('what the samples do not show is undecided, and never matched', async () => {
  const began = now();
  const short = (sample: PacketSample) => ({
    ...sample,
    header: Buffer.from(sample.header, 'base64').subarray(0, 21).toString('base64'),
  });
  connect(() => [sampleOf(dst, began, 9), short(sampleOf(dst, began + 1, 9))]);
  const answer = await preview({ port: { src: { start: 53 } } });
  assert.deepEqual([answer.samples, answer.matched, answer.undecided, answer.undecided_packets], [2, 1, 1, 16]);
  assert.equal((await preview({ port: { src: { start: 54 } } })).matched, 0);
  assert.equal((await preview({ packetlength: 1399, port: { src: { start: 53 } } })).undecided, 0);
});

test('without samples the answer says at once why: no detector, no traffic; and after two seconds that none answered', async () => {
  const reasons: [() => void, string][] = [
    [() => {}, 'no_detector'],
    [() => connect(() => []), 'no_samples'],
    [() => connect(), 'no_answer'],
  ];
  for (const [prepare, code] of reasons) {
    detectors = [];
    prepare();
    const began = performance.now();
    const answer = await preview();
    const took = performance.now() - began;
    assert.deepEqual([answer.reason?.code, answer.samples, answer.matched_share], [code, 0, 0]);
    assert.ok(took < (code === 'no_answer' ? 6_000 : 1_800), `${code} took ${took} ms`);
    if (code === 'no_answer') assert.ok(took > 1_900, `${took}`);
  }
});

test('the answers of several detectors count together', async () => {
  const began = now();
  connect(() => [sampleOf(dst, began + 5, 9)]);
  connect(() => Array.from({ length: 1000 }, (_, index) => sampleOf(dst, began + index, 10)));
  const answer = await preview();
  assert.deepEqual([answer.samples, answer.held], [1000, 3003]);
});

test('a repetition under an idempotency key replays the answer, and a preview leaves nothing behind', async () => {
  const began = now();
  connect(() => [sampleOf(dst, began, 9)]);
  const headers = { 'idempotency-key': 'preview-1' };
  const body = { dst, protocol: 'udp', action: 'drop' };
  const first = await api.call('previewFirewallRule', {}, { key: user.key, body, headers });
  assert.deepEqual([first.status, first.body.matched], [200, 1]);
  detectors = [];
  const again = await api.call('previewFirewallRule', {}, { key: user.key, body, headers });
  assert.equal(again.text, first.text);
  for (const table of ['sample_request', 'sample_answer', 'firewall_rule where deletion_marked_at is null']) {
    const { rows } = await api.database.pool.query(`select count(*)::int as count from ${table}`);
    assert.equal(rows[0].count, 0, table);
  }
});

test('open questions are bounded, and those of a replica that died are forgotten', async () => {
  const fill = (age: string) =>
    api.database.pool.query(
      `insert into sample_request (uuid, dst, seconds, most, asked_at)
        select gen_random_uuid(), '203.0.113.7', 1, 1, clock_timestamp() - $1::interval from generate_series(1, $2)`,
      [age, MOST_OPEN],
    );
  await fill('1 second');
  const body = { dst, protocol: 'udp', action: 'drop' };
  const refused = await api.call('previewFirewallRule', {}, { key: user.key, body });
  assert.deepEqual([refused.status, refused.body.error], [429, 'rate_limited']);
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
  await api.database.pool.query(`update sample_request set asked_at = asked_at - interval '1 minute'`);
  assert.equal((await preview()).reason.code, 'no_detector');
  const { rows } = await api.database.pool.query('select count(*)::int as count from sample_request');
  assert.equal(rows[0].count, 0);
});

test('a draft is judged as a rule is, and only for addresses that the caller may have rules on', async () => {
  const ask = (body: object, key = user.key) => api.call('previewFirewallRule', {}, { key, body });
  const wrong = await ask({ dst, protocol: 'udp', action: 'discard', port: { src: { start: 70_000 } } });
  assert.equal(wrong.status, 400);
  assert.deepEqual(
    wrong.body.details.map(({ field }: { field: string }) => field),
    ['/action', '/port/src/start'],
  );
  assert.equal((await ask({ dst: '203.0.113.99', protocol: 'udp', action: 'drop' })).status, 403);
  assert.equal((await ask({ dst, protocol: 'udp', action: 'drop' }, provider.key)).status, 403, 'a user holds it');
  assert.equal((await ask({ dst: '203.0.113.99', protocol: 'udp', action: 'drop' }, provider.key)).status, 200);
});
