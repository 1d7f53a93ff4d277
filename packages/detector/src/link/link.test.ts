/** Guarantees of a detector's link, against a control plane that fails as the test says. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { DetectedAttack, DetectorSettings } from '@levee/contract/detector.ts';
import { parseEndpoints } from '@levee/follow/endpoint.ts';
import { pino } from 'pino';
import { type Link, openLink } from './link.ts';
import { type FakeControlPlane, settingsOf, startControlPlane } from './testing/control-plane.ts';

const folder = mkdtempSync(join(tmpdir(), `levee-link-${process.pid}-`));
const open: { stop(): Promise<void> }[] = [];
let made = 0;
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.stop();
});
after(() => rmSync(folder, { recursive: true, force: true }));

async function controlPlane(port?: number): Promise<FakeControlPlane> {
  const control = await startControlPlane('the-key', port);
  open.push({ stop: () => control.close() });
  return control;
}

function link(addresses: readonly string[], stateDirectory = join(folder, `state${made++}`)) {
  const told: DetectorSettings[] = [];
  const wanted: string[] = [];
  const opened: Link = openLink({
    endpoints: parseEndpoints(addresses),
    key: 'the-key',
    stateDirectory,
    intervals: { silenceMilliseconds: 2_000, reconnectMilliseconds: 200, answerMilliseconds: 500 },
    logger: pino({ level: 'silent' }),
    status: () => ({ listen: [], receive_buffers: [], kernel_drops: 0, tracked_destinations: 0, memory_bytes: 0 }),
    settings: (settings) => told.push(settings),
    baselines: () => {},
    samplesWanted: ({ request }) => wanted.push(request),
  });
  open.push(opened);
  return { link: opened, told, wanted, stateDirectory };
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 5_000;
  while (!holds()) {
    assert.ok(Date.now() < deadline, `${what}: not within 5 s`);
    await delay(5);
  }
}

function attack(id: string, phase: DetectedAttack['phase'] = 'started'): DetectedAttack {
  return {
    id,
    dst: '203.0.113.7',
    phase,
    vectors: [],
    started_ms: 1,
    detected_ms: 2,
    measured: { at_ms: 2, pps: 1, bps: 1 },
    packets: 1,
    bytes: 1,
    sampled: 1,
    threshold: { policy: 'default', vector: 'total', metric: 'pps', value: 1, observed: 1 },
    profile: [],
    timeline: [],
    packet_samples: [],
    entries: [],
  };
}

const told = (control: FakeControlPlane) =>
  control.reports.flatMap(({ attacks }) => attacks.map(({ id, phase }) => `${id} ${phase}`));

test('settings are handed on as they are told, kept for the owner alone, and known at the next start without anybody', async () => {
  const control = await controlPlane();
  const first = link([control.address]);
  assert.equal(first.link.remembered, undefined);
  await until('connected', () => first.link.connected);
  control.tell(settingsOf(1, ['203.0.113.0/24']));
  control.tell(settingsOf(2, ['203.0.113.0/24', '2001:db8::/32']));
  await until('settings', () => first.told.length === 2);
  await first.link.stop();
  assert.equal(statSync(join(first.stateDirectory, 'settings.json')).mode & 0o777, 0o600);
  const again = link(['http://127.0.0.1:9'], first.stateDirectory);
  assert.deepEqual(again.link.remembered, settingsOf(2, ['203.0.113.0/24', '2001:db8::/32']));
});

test('a kept file that is torn is as none', () => {
  const stateDirectory = join(folder, `state${made++}`);
  link(['http://127.0.0.1:9'], stateDirectory);
  for (const torn of ['{"type":"settings","revision":1', '{}', 'null']) {
    writeFileSync(join(stateDirectory, 'settings.json'), torn);
    assert.equal(link(['http://127.0.0.1:9'], stateDirectory).link.remembered, undefined);
  }
});

test('a report that is cut off, refused for now or lost is told until it is answered, in order', async () => {
  const control = await controlPlane();
  const { link: linked } = link([control.address]);
  const answers = [undefined, 503, 429, 500];
  control.answer = () => (answers.length > 0 ? answers.shift() : 200);
  linked.attacks([attack('a'), attack('b')]);
  linked.attacks([attack('a', 'ended')]);
  await linked.idle();
  assert.deepEqual(told(control), ['a started', 'b started', 'a ended']);
  const { reports } = control;
  assert.equal(new Set(reports.map(({ run }) => run)).size, 1);
});

test('one attack that is not understood does not keep the others back', async () => {
  const control = await controlPlane();
  control.answer = ({ attacks }) => (attacks.some(({ id }) => id === 'bad') ? 400 : 200);
  const { link: linked } = link([control.address]);
  linked.attacks([attack('a'), attack('bad'), attack('b')]);
  await linked.idle();
  assert.deepEqual(told(control), ['a started', 'b started']);
});

test('an end whose profile is not understood is told without it', async () => {
  const control = await controlPlane();
  control.answer = ({ attacks }) => (attacks.some(({ entries }) => entries.length > 0) ? 400 : 200);
  const { link: linked } = link([control.address]);
  const ended = { ...attack('a', 'ended'), entries: [{ exporter: 'e1', share: 1 }] };
  linked.attacks([attack('a'), ended, attack('b')]);
  await linked.idle();
  assert.deepEqual(told(control).toSorted(), ['a ended', 'a started', 'b started']);
});

test('figures that are not understood cost no attack', async () => {
  const control = await controlPlane();
  control.answer = ({ exporters }) => (exporters === undefined ? 200 : 400);
  const { link: linked } = link([control.address]);
  linked.account([]);
  linked.attacks([attack('a')]);
  await linked.idle();
  assert.deepEqual(told(control), ['a started']);
});

test('of figures only the piece that is not understood is given up, and no attack waits for it', async () => {
  const control = await controlPlane();
  const baseline = (hour: number) => ({ dst: '203.0.113.7', vector: 'gre', hour, pps: 1, bps: 1, weight: 1 });
  const exporter = {
    source: '192.0.2.1',
    last_seen_ms: 1,
    protocols: [],
    datagrams: 1,
    records: 1,
    datagrams_per_second: 1,
    records_per_second: 1,
    templates: 0,
    dropped: {},
    lost: 0,
  };
  let isAway = true;
  control.answer = ({ baselines = [] }) => {
    if (isAway) return 503;
    return baselines.some(({ hour }) => hour === 33) ? 400 : 200;
  };
  const { link: linked } = link([control.address]);
  linked.baselines(Array.from({ length: 100 }, (_, hour) => baseline(hour)));
  linked.account([exporter]);
  linked.attacks([attack('a'), attack('b', 'ended')]);
  isAway = false;
  await linked.idle();
  assert.deepEqual(told(control), ['a started', 'b ended']);
  assert.deepEqual(
    control.reports.filter(({ exporters }) => exporters !== undefined).map(({ exporters }) => exporters),
    [[exporter]],
  );
  const hours = control.reports.flatMap(({ baselines = [] }) => baselines.map(({ hour }) => hour));
  assert.deepEqual(
    hours.toSorted((a, b) => a - b),
    Array.from({ length: 100 }, (_, hour) => hour).filter((hour) => hour !== 33),
  );
  assert.deepEqual(control.reports[0]?.attacks.length, 1, 'attacks wait for figures');
});

test('what was found while the control plane was away is told as soon as it is back', async () => {
  const control = await controlPlane();
  const { link: linked } = link([control.address]);
  await until('connected', () => linked.connected);
  const port = Number(new URL(control.address).port);
  await control.close();
  await until('away', () => !linked.connected);
  linked.attacks([attack('a')]);
  linked.attacks([attack('a', 'changed')]);
  linked.attacks([attack('a', 'ended'), attack('b')]);
  const back = await controlPlane(port);
  await linked.idle();
  assert.deepEqual(told(back), ['a started', 'a ended', 'b started']);
});

test('the next address is taken when one does not answer, and reports go where the stream is', async () => {
  const control = await controlPlane();
  const { link: linked } = link(['http://127.0.0.1:9', control.address]);
  linked.attacks([attack('a')]);
  await linked.idle();
  assert.deepEqual(told(control), ['a started']);
  await until('connected', () => linked.connected);
});

test('a stream that is cut or malformed is opened again; unknown messages are passed over', async () => {
  const control = await controlPlane();
  const { link: linked, told: settings, wanted } = link([control.address]);
  await until('connected', () => linked.connected);
  control.tell({ type: 'of a later release' } as never);
  control.tell({ type: 'samples_wanted', request: 'r', dst: '203.0.113.7', seconds: 60, most: 5 });
  await until('the request', () => wanted.length === 1);
  control.tell({ type: 'settings', revision: 'one' } as never);
  await until('cut', () => !linked.connected);
  await until('connected again', () => linked.connected);
  control.tell(settingsOf(3, []));
  await until('settings', () => settings.length === 1);
  linked.samples({ request: 'r', held: 0, packets: [] });
  await until('samples', () => control.samples.length === 1);
});
