/** Guarantees to detectors, on two replicas with a real database. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import type { ExporterStatus } from '@levee/contract/detector.ts';
import fc from 'fast-check';
import {
  type DetectorStream,
  openDetectorStream,
  reportOf,
  sendReport,
  synFlood,
} from './detectors/testing/detector-client.ts';
import { type DetectorReplica, startDetectorReplica } from './detectors/testing/replica.ts';
import { type ApiFixture, startApi } from './http/testing/api-fixture.ts';
import { buildWorld, type World } from './http/testing/world.ts';
import type { Database } from './store/database.ts';
import { waitUntil } from './store/testing/wait-until.ts';

let api: ApiFixture;
let world: World;
let first: DetectorReplica;
let second: DetectorReplica;
let key: string;
const streams: DetectorStream[] = [];

before(async () => {
  api = await startApi();
  world = await buildWorld(api);
  first = await startDetectorReplica(api.database);
  second = await startDetectorReplica(api.database);
  key = (await byOperator('createDetector', { name: 'detect1' })).key;
});
after(async () => {
  for (const stream of streams) stream.close();
  await first?.stop();
  await second?.stop();
  await api?.stop();
});

async function byOperator(operation: string, body?: object, params = {}) {
  const reply = await api.call(operation, params, { key: api.operatorKey, ...(body !== undefined && { body }) });
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}

async function open(replica: DetectorReplica, with_ = key): Promise<DetectorStream> {
  const stream = await openDetectorStream(replica.base, with_);
  streams.push(stream);
  return stream;
}

test('a stream begins with hello and tells the settings whole; each change is told within a second, on every replica', async () => {
  const both = [await open(first), await open(second)];
  for (const { messages } of both) await waitUntil(() => messages.length >= 2, 'hello and settings');
  const [hello, settings] = both[0]?.messages ?? [];
  assert.equal(hello?.type === 'hello' && hello.detector.name, 'detect1');
  assert.equal(settings?.type, 'settings');
  assert.deepEqual(both[0]?.settings?.prefixes, ['198.51.100.0/24', '203.0.113.0/24', '2001:db8::/32']);

  const within = async (what: string, holds: (settings: NonNullable<DetectorStream['settings']>) => boolean) => {
    for (const stream of both) {
      await waitUntil(() => stream.settings !== undefined && holds(stream.settings), what, 1_000);
    }
  };
  const { provider, user } = world.holders;
  await byOperator('changeProvider', { add_prefixes: ['192.0.2.0/24'] }, { uuid: provider.uuid });
  await within('a prefix', ({ prefixes }) => prefixes.includes('192.0.2.0/24'));

  const body = { scope: user.uuid, thresholds: { 'tcp-syn': { pps: 500 } }, hold_s: 5, baseline_factor: 2 };
  const policy = await byOperator('createDetectionPolicy', body);
  await within('a policy', ({ policies }) => policies.length === 1);
  assert.deepEqual(both[1]?.settings?.policies, [
    {
      uuid: policy.uuid,
      rank: 2,
      subnets: ['203.0.113.0/28', '2001:db8:7::/48'],
      thresholds: { 'tcp-syn': { pps: 500 } },
      hold_s: 5,
      baseline_factor: 2,
    },
  ]);
  const exporter = await byOperator('createExporter', { name: 'edge1', source: '192.0.2.1', interfaces: [3] });
  await within('an exporter', ({ exporters }) => exporters.length === 1);
  assert.deepEqual(both[0]?.settings?.exporters, [
    { uuid: exporter.uuid, name: 'edge1', source: '192.0.2.1', sampling: 'auto', interfaces: [3] },
  ]);
  const attack = synFlood('203.0.113.9');
  await sendReport(first.base, key, reportOf([attack]));
  await within('an ongoing attack', ({ ongoing }) => ongoing.some(({ id }) => id === attack.id));
  const { detected_ms, ...known } = both[1]?.settings?.ongoing[0] ?? {};
  const { id, dst, vectors, started_ms, packets, bytes, sampled, threshold } = attack;
  assert.deepEqual(known, { id, dst, vectors, started_ms, told: { packets, bytes, sampled, threshold } });
  assert.equal(Math.round(detected_ms ?? 0), attack.detected_ms);
  await sendReport(second.base, key, reportOf([{ ...attack, phase: 'ended', ended_ms: Date.now() }]));
  await within('its end', ({ ongoing }) => ongoing.length === 0);

  for (const [operation, { uuid }] of [
    ['deleteDetectionPolicy', policy],
    ['deleteExporter', exporter],
  ] as const) {
    await byOperator(operation, undefined, { uuid });
  }
  await byOperator('changeProvider', { remove_prefixes: ['192.0.2.0/24'] }, { uuid: provider.uuid });
  await within('nothing is left', ({ prefixes, policies, exporters }) => {
    return prefixes.length === 3 && policies.length === 0 && exporters.length === 0;
  });
  const revisions = both[0]?.messages.flatMap((each) => (each.type === 'settings' ? [each.revision] : [])) ?? [];
  assert.deepEqual(
    revisions,
    [...new Set(revisions)].sort((a, b) => a - b),
    'revisions rise',
  );
});

test('a revision of a replica whose clock is ahead is lower than one that another gives later', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 3_600_000 });
  const ahead = await startDetectorReplica(api.database);
  t.after(() => ahead.stop());
  const streams = [await open(ahead), await open(first)];
  for (const stream of streams) await waitUntil(() => stream.settings !== undefined, 'settings');
  t.mock.timers.reset();
  const former = streams[0]?.settings?.revision ?? assert.fail();
  const exporter = await byOperator('createExporter', { name: 'later', source: '192.0.2.44' });
  const isTold = (stream?: DetectorStream) =>
    stream?.settings?.exporters.some(({ source }) => source === '192.0.2.44') === true;
  await waitUntil(() => isTold(streams[1]), 'an exporter');
  assert.ok((streams[1]?.settings?.revision ?? 0) > former);
  await byOperator('deleteExporter', undefined, { uuid: exporter.uuid });
  for (const stream of streams) await waitUntil(() => !isTold(stream), 'it is gone');
});

test('detectors that take over the figures of the same collectors from each other never wait in a circle', async () => {
  const { key: other } = await byOperator('createDetector', { name: 'crosswise' });
  const figures = (collector: string): ExporterStatus[] =>
    ['198.18.0.1', '198.18.0.2'].map((source) => ({
      collector,
      source,
      last_seen_ms: Date.now(),
      protocols: [],
      datagrams: 1,
      records: 1,
      datagrams_per_second: 0,
      records_per_second: 0,
      templates: 0,
      dropped: {},
      lost: 0,
    }));
  const [one, two] = ['10000000-0000-4000-8000-00000000c0de', '20000000-0000-4000-8000-00000000c0de'] as const;
  const tell = (a: string, b: string) =>
    Promise.all([
      sendReport(first.base, key, reportOf([], { exporters: figures(a) })),
      sendReport(second.base, other, reportOf([], { exporters: figures(b) })),
    ]);
  await tell(one, two);
  // Both are held where they have some of their rows.
  const holder = await api.database.pool.connect();
  try {
    await holder.query(`begin`);
    await holder.query(`select from exporter_figures where source = '198.18.0.2' for update`);
    const crossed = tell(two, one);
    await waitUntil(async () => {
      const { rows } = await api.database.pool.query(`select count(*)::int as waiting from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%exporter_figures%'`);
      return rows[0].waiting === 2;
    }, 'both wait');
    await holder.query('commit');
    for (const { status } of await crossed) assert.equal(status, 200);
  } finally {
    await holder.query('rollback');
    holder.release();
  }
  for (const each of [key, other]) await sendReport(first.base, each, reportOf([], { exporters: [] }));
});

test('an attack is recorded for who holds the address, and told again, on whichever replica, it changes nothing', async () => {
  const attack = synFlood(world.addressOf.user);
  const report = reportOf([attack]);
  assert.deepEqual((await sendReport(first.base, key, report)).body, { refused: [] });
  const read = async () => {
    const { body } = await api.call('listAttacks', {}, { key: world.holders.user.key });
    return body.filter((each: { external_id: string }) => each.external_id === attack.id);
  };
  const rows = await read();
  assert.equal(rows.length, 1);
  assert.equal(rows[0].source, 'levee');
  assert.equal(rows[0].owner_uuid, world.holders.user.uuid);
  assert.equal(rows[0].peak_pps, 50_000);
  assert.equal(rows[0].timings.detect_ms, attack.detected_ms - attack.started_ms);
  const entries = async () =>
    (await api.database.pool.query(`select count(*) from change where object_uuid = $1`, [rows[0].uuid])).rows[0].count;
  const before = await entries();
  await sendReport(second.base, key, report);
  await sendReport(first.base, key, { ...report, sequence: 1 });
  assert.deepEqual(await read(), rows);
  assert.equal(await entries(), before);

  const end = { ...attack, phase: 'ended' as const, ended_ms: attack.detected_ms + 1 };
  await sendReport(second.base, key, reportOf([end]));
  const [ended] = await read();
  assert.equal(ended.state, 'ended');
  assert.equal(ended.end_reason, 'reported');
});

test('an end whose start was never told is an attack all the same', async () => {
  const now = Date.now();
  const attack = synFlood('203.0.113.11', { phase: 'ended', started_ms: now - 9_000, ended_ms: now - 1_000 });
  assert.deepEqual((await sendReport(first.base, key, reportOf([attack]))).body, { refused: [] });
  const { body } = await api.call('listAttacks', {}, { key: world.holders.user.key, query: '?dst=203.0.113.11' });
  assert.deepEqual([body[0].state, Date.parse(body[0].started_at)], ['ended', now - 9_000]);
});

test('an attack on an address that nobody holds is refused by name, and stops no other', async () => {
  const lost = synFlood('100.0.0.1');
  const kept = synFlood('203.0.113.12');
  const { status, body } = await sendReport(first.base, key, reportOf([lost, kept]));
  assert.equal(status, 200);
  assert.deepEqual(
    body.refused.map(({ id }: { id: string }) => id),
    [lost.id],
  );
  assert.match(body.refused[0].message, /no provider of this installation holds 100\.0\.0\.1/);
  const found = await api.call('listAttacks', {}, { key: world.holders.user.key, query: '?dst=203.0.113.12' });
  assert.equal(found.body.length, 1);
});

test('what of a report cannot be read is named and left out; the attack that it is about and all else is taken', async () => {
  const [whole, torn, none] = ['203.0.113.4', '203.0.113.5', '203.0.113.6'].map((dst) => synFlood(dst));
  assert.ok(whole && torn && none);
  const [profile] = torn.profile;
  assert.ok(profile);
  const samples = [{ ...torn.packet_samples[0], header: '!' }, torn.packet_samples[0]];
  const profiles = [
    { ...profile, length: { min: 84, p5: 84, max: 65_575 } },
    { ...profile, length: { min: 90, p5: 84, max: 65 } },
  ];
  const exporter = (source: string, more: object = {}) => ({
    source,
    last_seen_ms: Date.now(),
    protocols: ['ipfix'],
    datagrams: 1,
    records: 1,
    datagrams_per_second: 1,
    records_per_second: 1,
    templates: 0,
    dropped: {},
    lost: 0,
    ...more,
  });
  const baseline = (hour: number) => ({ dst: '203.0.113.5', vector: 'gre', hour, pps: 1, bps: 1, weight: 1 });
  const report = {
    ...reportOf([]),
    attacks: [whole, { ...torn, profile: profiles, packet_samples: samples }, { ...none, dst: 'nowhere' }],
    exporters: [exporter('192.0.2.91', { sampling_rate: 4096 }), exporter('192.0.2.92', { records: -1 })],
    baselines: [baseline(168), baseline(5)],
    status: { listen: 7 },
  };
  const { status, body } = await sendReport(first.base, key, report);
  assert.equal(status, 200);
  assert.deepEqual(body.refused, [
    { id: none.id, message: 'attacks/2/dst: must be an address or a subnet in canonical form' },
  ]);
  assert.deepEqual(
    body.left_out.map(({ field }: { field: string }) => field),
    [
      '/attacks/1/profile/1/length',
      '/attacks/1/packet_samples/0/header',
      '/exporters/1/records',
      '/baselines/0/hour',
      '/status/listen',
    ],
  );
  for (const dst of [whole.dst, torn.dst]) {
    const query = `?dst=${dst}&state=ongoing`;
    const found = await api.call('listAttacks', {}, { key: world.holders.user.key, query });
    assert.equal(found.body.length, 1, dst);
  }
  const kept = await api.database.pool.query(
    `select array(select host(source) from exporter_figures where source in ('192.0.2.91', '192.0.2.92')) as sources,
      array(select hour::int from detection_baseline where dst = '203.0.113.5' and vector = 'gre') as hours`,
  );
  assert.deepEqual(kept.rows, [{ sources: ['192.0.2.91'], hours: [5] }]);
  await api.database.pool.query('delete from detection_baseline');
  const ended = [whole, torn].map((each) => ({ ...each, phase: 'ended' as const, ended_ms: Date.now() }));
  await sendReport(first.base, key, reportOf(ended));
});

test('a mistake of ours about one attack costs no other, and neither measures nor evidence cost the attack', async () => {
  const [lost, kept, helpless] = ['203.0.113.1', '203.0.113.2', '203.0.113.3'].map((dst) => synFlood(dst));
  assert.ok(lost && kept && helpless);
  // Statements that fail as those of a mistake would: the database is there, and says no.
  await api.database.pool.query(`
    create function broken() returns trigger language plpgsql as $$ begin raise exception 'broken'; end $$;
    create trigger broken before insert on attack for each row when (new.dst = '203.0.113.1') execute function broken();
    create trigger broken before insert on flowrule for each row when (new.dst = '203.0.113.3') execute function broken();
    create trigger broken before insert on attack_evidence for each row execute function broken();
  `);
  const failures = first.failures.length;
  try {
    const { status, body } = await sendReport(first.base, key, reportOf([lost, helpless, kept]));
    assert.equal(status, 200);
    assert.deepEqual(body.refused, [{ id: lost.id, message: 'The service failed on this attack; its log tells why.' }]);
  } finally {
    await api.database.pool.query('drop function broken cascade');
  }
  assert.ok(first.failures.length > failures, 'it is not logged');
  const attackOn = async (dst: string) => {
    const query = `?dst=${dst}&state=ongoing`;
    return (await api.call('listAttacks', {}, { key: world.holders.user.key, query })).body;
  };
  assert.equal((await attackOn(kept.dst)).length, 1);
  const [row] = await attackOn(helpless.dst);
  const notes = async () =>
    (await api.call('readAttack', { uuid: row.uuid }, { key: world.holders.user.key })).body[0].measures.notes;
  assert.match(JSON.stringify(await notes()), /could not be decided/);
  // Told again it is whole, and nothing is left to be told twice.
  const again = await sendReport(first.base, key, reportOf([lost, { ...helpless, phase: 'changed' }]));
  assert.deepEqual(again.body, { refused: [] });
  assert.doesNotMatch(JSON.stringify(await notes()), /could not be decided/);
  assert.equal((await attackOn(lost.dst)).length, 1);
  const ended = [lost, kept, helpless].map((each) => ({ ...each, phase: 'ended' as const, ended_ms: Date.now() }));
  assert.deepEqual((await sendReport(first.base, key, reportOf(ended))).body, { refused: [] });
  (first.failures as unknown[]).length = failures;
});

test('what exporters do is shown by every replica: those configured, those beside a detector, and strangers', async () => {
  const { uuid } = await byOperator('createExporter', { name: 'core1', source: '192.0.2.77' });
  const figures = (source: string, more: Partial<ExporterStatus> = {}): ExporterStatus => ({
    source,
    last_seen_ms: Date.now(),
    protocols: ['ipfix'],
    datagrams: 10,
    records: 200,
    datagrams_per_second: 1,
    records_per_second: 20.5,
    templates: 2,
    dropped: { truncated: 3 },
    lost: 4,
    ...more,
  });
  const exporters = [
    figures('192.0.2.77', { uuid, sampling_rate: 512, longest_flow_s: 1800 }),
    figures('127.0.0.1'),
    figures('192.0.2.99'),
  ];
  const { status } = await sendReport(second.base, key, reportOf([], { exporters }));
  assert.equal(status, 200);
  const { key: other } = await byOperator('createDetector', { name: 'detect2' });
  await sendReport(first.base, other, reportOf([], { exporters: [figures('192.0.2.77', { uuid })] }));

  const all = await byOperator('listExporters');
  const known = all.find((each: { source: string }) => each.source === '192.0.2.77');
  const { datagrams, records_per_second, sampling_rate, dropped, lost, detectors, collectors } = known.live;
  assert.deepEqual(
    { datagrams, records_per_second, sampling_rate, dropped, lost, detectors, collectors },
    {
      datagrams: 20,
      records_per_second: 41,
      sampling_rate: 512,
      dropped: { truncated: 6 },
      lost: 8,
      detectors: ['detect1', 'detect2'],
      collectors: ['detect1', 'detect2'],
    },
  );
  assert.equal(known.live.longest_flow_s, 1800);
  assert.match(known.live.warning, /last up to 1800 s .* active timeout is too long/);
  assert.match(known.live.warning, /2 collectors hear it at the same time \(detect1, detect2\)/);
  const byOne = all.find((each: { source: string }) => each.source === '192.0.2.99');
  assert.deepEqual([byOne.live.collectors, byOne.live.warning], [['detect1'], undefined]);
  assert.equal(all.find((each: { local?: true }) => each.local)?.source, '127.0.0.1');
  assert.equal(all.find((each: { unknown?: true }) => each.unknown)?.source, '192.0.2.99');
  // What a detector no longer tells of is no longer shown.
  await sendReport(first.base, key, reportOf([], { exporters: exporters.slice(0, 1) }));
  assert.ok(!(await byOperator('listExporters')).some((each: { unknown?: true }) => each.unknown));
});

test('what is usual is told to a detector that begins, before the settings', async () => {
  const baselines = [{ dst: '203.0.113.7', vector: 'tcp-syn', hour: 3, pps: 12.5, bps: 9_000, weight: 2 }];
  await sendReport(first.base, key, reportOf([], { baselines }));
  const again = [{ ...(baselines[0] ?? assert.fail()), pps: 14 }];
  await sendReport(first.base, key, reportOf([], { baselines: again }));
  const { messages } = await open(second);
  await waitUntil(() => messages.length >= 3, 'hello, baselines, settings');
  assert.deepEqual(
    messages.map(({ type }) => type),
    ['hello', 'baselines', 'settings'],
  );
  assert.deepEqual(messages[1], { type: 'baselines', entries: again });
});

test('without a good key of a detector nothing is read of a body', async () => {
  for (const bad of ['', 'nonsense', api.operatorKey, world.holders.user.key, `${key.slice(0, -1)}_`]) {
    assert.equal((await sendReport(first.base, bad, reportOf([]))).status, 401);
    assert.equal((await open(first, bad)).status, 401);
  }
  const { hostname, port } = new URL(first.base);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST /detector/v1/report HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n`,
  );
  const [answer] = await once(socket, 'data');
  assert.match(String(answer), /^HTTP\/1\.1 401 /);
  socket.destroy();
});

test("a removed detector's stream ends and its key is void within a second", async () => {
  const { uuid, key: gone } = await byOperator('createDetector', { name: 'detect3' });
  const stream = await open(first, gone);
  await waitUntil(() => stream.messages.length > 0, 'hello');
  assert.equal((await sendReport(second.base, gone, reportOf([]))).status, 200);
  await byOperator('deleteDetector', undefined, { uuid });
  await waitUntil(() => stream.closed, 'the end of the stream', 1_000);
  await waitUntil(async () => (await sendReport(second.base, gone, reportOf([]))).status === 401, '401', 1_500);
});

test('whatever a report holds, it is taken or refused with the field, and breaks nothing', async () => {
  const dst = '203.0.113.14';
  await byOperator('createDetectionPolicy', { scope: dst, mitigation: 'flowspec' });
  const good = reportOf([synFlood(dst)], {
    exporters: [],
    baselines: [{ dst, vector: 'total', hour: 0, pps: 1, bps: 1, weight: 1 }],
  });
  const paths: (string | number)[][] = [];
  const walk = (value: unknown, path: (string | number)[]): void => {
    paths.push(path);
    if (typeof value !== 'object' || value === null) return;
    for (const [name, each] of Object.entries(value)) walk(each, [...path, name]);
  };
  walk(good, []);
  const hostile = fc.oneof(
    fc.constantFrom<unknown>(
      null,
      -1,
      1e300,
      '\u0000',
      'x'.repeat(10_000),
      {},
      [],
      [[]],
      true,
      '203.0.113.1/24',
      '::ffff:1.2.3.4',
    ),
    fc.jsonValue({ maxDepth: 3 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...paths), hostile, async (path, value) => {
      const report = path.length === 0 ? value : replaced(good, path, value);
      const { status, body } = await sendReport(first.base, key, report);
      assert.ok(status === 200 || status === 400, `${status} ${JSON.stringify(body)}`);
      if (status === 400) assert.ok(typeof body.message === 'string');
      else assert.doesNotMatch(JSON.stringify(body), /The service failed/);
    }),
    { numRuns: 400 },
  );
  assert.deepEqual(first.failures, []);
});

test('while the database is away a report is not taken: 503, and when to come again', async () => {
  const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  const { pool } = api.database;
  let refusing = false;
  const wrapped = new Proxy(pool, {
    get(target, name) {
      if (refusing && (name === 'query' || name === 'connect')) return () => Promise.reject(away);
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const database: Database = { ...api.database, pool: wrapped, connect: (...given) => api.database.connect(...given) };
  const replica = await startDetectorReplica(database);
  try {
    const attack = synFlood('203.0.113.13');
    refusing = true;
    const { status, headers } = await sendReport(replica.base, key, reportOf([attack]));
    assert.deepEqual([status, headers.get('retry-after')], [503, '1']);
    refusing = false;
    assert.equal((await sendReport(replica.base, key, reportOf([attack]))).status, 200);
  } finally {
    refusing = false;
    await replica.stop();
  }
});

function replaced(value: unknown, [name, ...rest]: readonly (string | number)[], by: unknown): unknown {
  if (name === undefined) return by;
  if (Array.isArray(value))
    return value.map((each, index) => (String(index) === String(name) ? replaced(each, rest, by) : each));
  const members = value as Record<string, unknown>;
  return { ...members, [name]: replaced(members[name], rest, by) };
}
