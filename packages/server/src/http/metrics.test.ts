/** Guarantees of `/metrics` and of the alerting rules that go by it; the rules are read by Prometheus' own tool. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { reportOf, sendReport, synFlood } from '../detectors/testing/detector-client.ts';
import { type DetectorReplica, startDetectorReplica } from '../detectors/testing/replica.ts';
import { newUuid } from '../store/new-uuid.ts';
import { type Api, createApi } from './api.ts';
import { type ApiFixture, nowhere, silent, startApi } from './testing/api-fixture.ts';
import { buildWorld, type World } from './testing/world.ts';

const rules = join(import.meta.dirname, '../../../../deploy/prometheus/levee-alerts.yml');
const hasPromtool = spawnSync('promtool', ['--version']).status === 0;
const folder = mkdtempSync(join(tmpdir(), `levee-metrics-${process.pid}-`));

let api: ApiFixture;
let world: World;
let replica: DetectorReplica;
let served: Api;
let url: string;
let databaseIsAway = false;

before(async () => {
  api = await startApi();
  world = await buildWorld(api);
  replica = await startDetectorReplica(api.database);
  const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  const pool = new Proxy(api.database.pool, {
    get(target, name) {
      if (databaseIsAway && (name === 'query' || name === 'connect')) return () => Promise.reject(away);
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  served = createApi({
    pool,
    states: nowhere,
    wake: () => {},
    waitApplied: async () => 'not-enforced',
    routersChanged: async () => {},
    log: silent,
    isReady: async () => true,
    metrics: {
      tail: { cursor: { xid: Number.MAX_SAFE_INTEGER, position: 0 }, connected: true },
      registry: { routers: [] },
      hasSpeaker: false,
      streams: () => ({ routers: 2, detectors: 1 }),
    },
  });
  const { port } = await served.listen({ host: '127.0.0.1', port: 0 });
  url = `http://127.0.0.1:${port}`;
});
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await served?.close();
  await replica?.stop();
  await api?.stop();
});

async function metrics(headers: Record<string, string> = { 'x-api-key': api.operatorKey }) {
  const response = await fetch(`${url}/metrics`, { headers });
  return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
}

function sampleOf(text: string, name: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
}

/** An exporter, a stranger and an attack, as a detector tells of them. */
async function somethingHappens(): Promise<void> {
  const operator = async (operation: string, body: object) =>
    (await api.call(operation, {}, { key: api.operatorKey, body })).body;
  const { key } = await operator('createDetector', { name: 'detect1' });
  const { uuid } = await operator('createExporter', { name: 'edge1', source: '192.0.2.1' });
  const figures = {
    last_seen_ms: Date.now(),
    protocols: ['sflow5'],
    datagrams: 70,
    records: 700,
    datagrams_per_second: 7,
    records_per_second: 70,
    templates: 0,
    dropped: { truncated: 5 },
    lost: 2,
  };
  const exporters = [
    { ...figures, uuid, source: '192.0.2.1', sampling_rate: 64 },
    { ...figures, source: '127.0.0.1' },
    { ...figures, source: '192.0.2.200' },
  ];
  const status = {
    listen: ['127.0.0.1:6343'],
    receive_buffers: [{ bytes: 212_992, wanted: 4_194_304 }],
    kernel_drops: 9,
    tracked_destinations: 3,
    memory_bytes: 1_000,
    refused: ['127.0.0.1:2055 cannot be listened on'],
    overflow: { unknown_datagrams: 4, samples: 3, unspread: 2, unprofiled: 1 },
    bus: { connected: false, collectors: 2, detectors: 3, partitions: 21, unsent: 5, malformed: 6 },
  };
  const report = reportOf([synFlood(world.addressOf.user)], { exporters, status });
  assert.equal((await sendReport(replica.base, key, report)).status, 200);
}

test('the metrics are for keys of operators, in either header; a key for some operations is none', async () => {
  const readOnly = await api.key((await api.call('whoAmI', {}, { key: api.operatorKey })).body.account.uuid, {
    read_only: true,
  });
  assert.equal((await metrics({ authorization: `Bearer ${readOnly}` })).status, 200);
  const page = await metrics();
  assert.equal(page.status, 200);
  assert.match(page.type ?? '', /^text\/plain; version=0\.0\.4/);
  assert.equal((await metrics({})).status, 401);
  assert.equal((await metrics({ authorization: 'Bearer nonsense' })).status, 401);
  assert.equal((await metrics({ 'x-api-key': world.holders.provider.key })).status, 403);
  const account = (await api.call('whoAmI', {}, { key: api.operatorKey })).body.account.uuid;
  const limited = await api.key(account, { operations: ['listExporters'] });
  assert.equal((await metrics({ 'x-api-key': limited })).status, 403);
  const posted = await fetch(`${url}/metrics`, { method: 'POST' });
  assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD, OPTIONS']);
});

test('what happens is counted, by names that are few; no account and no address is a label', async () => {
  await somethingHappens();
  await fetch(`${url}/v1/firewall/rule/${world.holders.user.uuid}`);
  await fetch(`${url}/v1/nowhere-${world.holders.user.uuid}`);
  const { text } = await metrics();
  const expected: Record<string, number> = {
    'levee_attacks_ongoing{source="levee",mitigation="observe"}': 1,
    'levee_attacks_ongoing{source="other",mitigation="observe"}': 0,
    'levee_exporter_datagrams_total{exporter="edge1"}': 70,
    'levee_exporter_records_total{exporter="local"}': 700,
    'levee_exporter_lost_datagrams_total{exporter="edge1"}': 2,
    'levee_exporter_sampling_rate{exporter="edge1"}': 64,
    'levee_exporter_collectors{exporter="edge1"}': 1,
    'levee_exporter_dropped_total{exporter="edge1",reason="truncated"}': 5,
    levee_unknown_exporters: 1,
    levee_unknown_exporter_datagrams_total: 70,
    'levee_detector_kernel_drops_total{detector="detect1"}': 9,
    'levee_detector_receive_buffer_bytes{detector="detect1"}': 212_992,
    'levee_detector_refused_addresses{detector="detect1"}': 1,
    'levee_detector_overflow_total{detector="detect1",of="unknown_datagrams"}': 4,
    'levee_detector_bus_connected{detector="detect1"}': 0,
    'levee_detector_bus_partitions{detector="detect1"}': 21,
    'levee_detector_bus_dropped_total{detector="detect1",reason="malformed"}': 6,
    'levee_streams{of="routers"}': 2,
    levee_database_up: 1,
    levee_change_log_lag_seconds: 0,
    'levee_http_requests_total{route="GET /v1/firewall/rule/:uuid",status="4xx"}': 1,
  };
  for (const [name, value] of Object.entries(expected)) assert.equal(sampleOf(text, name), value, name);
  // Totals stand for themselves: a second page does not add to them.
  assert.equal(sampleOf((await metrics()).text, 'levee_exporter_datagrams_total{exporter="edge1"}'), 70);
  const labels = [...text.matchAll(/\{([^}]*)\}/g)].map(([, each]) => each).join('\n');
  assert.doesNotMatch(labels, /[0-9a-f]{8}-[0-9a-f]{4}-|\d+\.\d+\.\d+\.\d+|2001:db8|nowhere/);
});

test('while the database is away the page says so, to whoever read it before', async () => {
  assert.equal((await metrics()).status, 200);
  const stranger = { 'x-api-key': world.holders.user.key };
  databaseIsAway = true;
  try {
    // A key that was good is trusted for a moment in any case.
    const deadline = Date.now() + 5_000;
    while ((await metrics(stranger)).status === 403) assert.ok(Date.now() < deadline);
    assert.equal((await metrics(stranger)).status, 503);
    const { status, text } = await metrics();
    assert.equal(status, 200);
    assert.equal(sampleOf(text, 'levee_database_up'), 0);
  } finally {
    databaseIsAway = false;
  }
});

test('every metric that an alert goes by is one that is shown', async () => {
  const { text } = await metrics();
  const shown = new Set([...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name));
  const used = new Set(readFileSync(rules, 'utf8').match(/\blevee_\w+/g));
  assert.ok(used.size > 10);
  for (const name of used) assert.ok(shown.has(name), `${name} is not shown`);
});

test('the alerts fire for drops, silent exporters and a speaker that is away, and not before', {
  skip: !hasPromtool,
}, () => {
  const checked = spawnSync('promtool', ['check', 'rules', rules], { encoding: 'utf8' });
  assert.equal(checked.status, 0, checked.stderr);
  const series = (name: string, values: string) => `      - series: '${name}'\n        values: '${values}'\n`;
  const expects = (at: string, alert: string, labels?: string) =>
    `      - eval_time: ${at}\n        alertname: ${alert}\n        exp_alerts: ${labels === undefined ? '[]' : `[{exp_labels: ${labels}}]`}\n`;
  const file = join(folder, 'alerts.test.yml');
  // Labels alone: what is told in words may change.
  const unworded = join(folder, 'rules.yml');
  writeFileSync(unworded, readFileSync(rules, 'utf8').replaceAll(/^ {8}annotations:\n(?: {10}.*\n)+/gm, ''));
  const critical = (more: string) => `{severity: critical${more}}`;
  const warning = (more: string) => `{severity: warning${more}}`;
  writeFileSync(
    file,
    `rule_files: [${unworded}]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n` +
      series('levee_detector_kernel_drops_total{detector="d"}', '0x5 0+600x15') +
      series('levee_detector_kernel_drops_total{detector="calm"}', '7x20') +
      series('levee_exporter_last_seen_timestamp_seconds{exporter="e"}', '0x20') +
      series('levee_exporter_last_seen_timestamp_seconds{exporter="local"}', '0x20') +
      series('levee_bgp_speaker_away', '0x3 1x17') +
      '    alert_rule_test:\n' +
      expects('5m', 'LeveeDetectorDropsDatagrams') +
      expects('18m', 'LeveeDetectorDropsDatagrams', warning(', detector: d')) +
      expects('5m', 'LeveeExporterSilent') +
      expects('12m', 'LeveeExporterSilent', warning(', exporter: e')) +
      expects('4m', 'LeveeBgpSpeakerAway') +
      expects('6m', 'LeveeBgpSpeakerAway', critical('')),
  );
  const tested = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  assert.equal(tested.status, 0, `${tested.stdout}${tested.stderr}`);
});

test('without a speaker no flowrule counts as announced, nor as waiting for it', async () => {
  const provider = await api.provider(['198.18.0.0/24']);
  await api.database.pool.query(
    `insert into flowrule (uuid, sequence, owner_uuid, provider_uuid, dst, prefix, fields, nlri, change_position,
        created_at, updated_at)
      select $1, nextval('change_position'), $2, $2, '198.18.0.7/32', '198.18.0.0/24',
        '{"dst":"198.18.0.7","components":{"protocol":"17"},"action":"discard"}', 'unannounced', nextval('change_position'), now(), now()`,
    [newUuid(), provider.uuid],
  );
  const { text } = await metrics();
  const states = ['unannounced', 'waiting', 'applied'].map((state) =>
    sampleOf(text, `levee_flowrules{state="${state}"}`),
  );
  assert.deepEqual(states, [1, 0, 0]);
});
