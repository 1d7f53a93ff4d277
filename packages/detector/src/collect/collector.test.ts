import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import test, { type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { DetectorSettings } from '@levee/contract/detector.ts';
import { createLocalBus } from '../bus/local.ts';
import type { DetectorBus, FromCollector } from '../bus/port.ts';
import { ipfix, set, template, u8, u32 } from '../decode/testing/build.ts';
import { readDatagrams } from '../decode/testing/datagram-files.ts';
import { type CollectorOptions, type RunningCollector, startCollector } from './collector.ts';
import { addReport, expectedRows, type Rows, totalOf } from './testing/expected-rows.ts';

const everything: DetectorSettings = {
  type: 'settings',
  revision: 1,
  prefixes: ['0.0.0.0/0', '::/0'],
  policies: [],
  exporters: [],
  ongoing: [],
};
const deadlineMilliseconds = 20_000;

interface Rig {
  readonly collector: RunningCollector;
  readonly detector: DetectorBus;
  readonly heard: FromCollector[];
  readonly logged: string[];
  /** Of all slots so far. */
  rows(): Rows;
}

async function start(t: TestContext, options: Partial<CollectorOptions>): Promise<Rig> {
  const { detector, collector: bus } = createLocalBus();
  const heard: FromCollector[] = [];
  const logged: string[] = [];
  detector.onMessage((message) => heard.push(message));
  const log = {
    info: (_: object, text: string) => logged.push(text),
    warn: (_: object, text: string) => logged.push(text),
  };
  const listen = [
    { host: '127.0.0.1', port: 0 },
    { host: '::1', port: 0 },
  ];
  const collector = await startCollector({ listen, bus, log, workers: 1, sampleOctets: 4 << 20, ...options });
  t.after(() => collector.stop());
  const rows = (): Rows => {
    const sums: Rows = new Map();
    for (const message of heard) if (message.type === 'slot') addReport(sums, message);
    return sums;
  };
  return { collector, detector, heard, logged, rows };
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + deadlineMilliseconds;
  while (!holds()) {
    if (performance.now() > deadline) assert.fail(`not within ${deadlineMilliseconds} ms: ${what}`);
    await pause(10);
  }
}

/** Until every worker goes by them: what came before would not count. */
async function settle({ collector, detector, heard }: Rig, settings: DetectorSettings): Promise<void> {
  detector.send({ type: 'settings', settings });
  const workers = collector.status().workers.length;
  await until('all workers have the settings', () => {
    const told = heard.filter((message) => message.type === 'status' && message.settingsRevision === settings.revision);
    return new Set(told.map((message) => message.collector)).size === workers;
  });
}

/** `listening`: an address as the collector tells it; `from`: the source's. */
async function send(datagrams: readonly Uint8Array[], listening: string | undefined, from?: string): Promise<void> {
  const { hostname, port } = new URL(`udp://${listening}`);
  const host = hostname.replace(/[[\]]/g, '');
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  if (from !== undefined) await new Promise<void>((resolve) => socket.bind(0, from, resolve));
  for (const datagram of datagrams) {
    await new Promise((resolve) => socket.send(datagram, Number(port), host, resolve));
  }
  socket.close();
}

const sflow = readDatagrams('pmacct_sflow5_s16.first200.dgs');
const tripled = new Map([...expectedRows(sflow).rows].map(([key, row]) => [key, row.map((value) => value * 3)]));

for (const receive of ['recvmmsg', 'dgram'] as const) {
  test(`what is sent to any address and worker is in the slots, to the last octet (${receive})`, async (t) => {
    const rig = await start(t, { receive, workers: 2 });
    const { collector, heard, rows } = rig;
    await settle(rig, everything);
    const [ipv4, ipv6] = collector.listening;
    await Promise.all([send(sflow, ipv4), send(sflow, ipv6), send(sflow, ipv4, '127.0.0.9')]);
    const total = totalOf(expectedRows(sflow).rows).map((value) => value * 3);
    await until('all packets are in slots', () => totalOf(rows())[0] === total[0]);
    assert.deepEqual(new Map([...rows()].sort()), new Map([...tripled].sort()));
    await until('the status tells of all sources', () => collector.status().exporters.length === 3);
    await until('the status tells of all datagrams', () =>
      collector.status().exporters.every(({ datagrams }) => datagrams === sflow.length),
    );
    assert.equal(collector.status().receive, receive);
    assert.equal(collector.status().kernelDrops, 0);
    const slots = heard.filter((message) => message.type === 'slot');
    for (const name of new Set(slots.map((slot) => slot.collector))) {
      const own = slots.filter((slot) => slot.collector === name);
      assert.deepEqual(
        own.map(({ sequence }) => sequence),
        [...own.keys()],
      );
      assert.ok(own.every(({ slotMs }) => slotMs % 250 === 0));
    }
    assert.equal(new Set(slots.map((slot) => slot.collector)).size, receive === 'recvmmsg' ? 2 : 1);
  });
}

for (const [receive, index] of [
  ['recvmmsg', 0],
  ['recvmmsg', 1],
  ['dgram', 0],
] as const) {
  test(`templates of an exporter serve data from any of its ports, whichever workers there are (${receive}, ${index})`, async (t) => {
    const rig = await start(t, { receive, workers: 2 });
    await settle(rig, everything);
    const fields = [
      [12, 4],
      [4, 1],
      [2, 4],
      [1, 4],
    ];
    const data = ipfix([set(256, u8(203, 0, 113, 9), u8(17), u32(1, 100))]);
    const ports = 24;
    await send([ipfix([set(2, template(256, fields))])], rig.collector.listening[index]);
    await until('the template', () => rig.collector.status().exporters.some(({ templates }) => templates > 0));
    for (let i = 0; i < ports; i++) await send([data], rig.collector.listening[index]);
    await until('all data', () => totalOf(rig.rows())[0] === ports);
  });
}

test('exporters are divided among the workers by their addresses', async (t) => {
  const rig = await start(t, { workers: 2 });
  await settle(rig, everything);
  const exporters = 16;
  for (let i = 1; i <= exporters; i++) await send(sflow.slice(0, 1), rig.collector.listening[0], `127.0.0.${i}`);
  await until('all are seen', () => rig.collector.status().exporters.length === exporters);
  const seen = new Map<string, number>();
  for (const message of rig.heard)
    if (message.type === 'status') seen.set(message.collector, message.exporters.filter((e) => e.datagrams > 0).length);
  assert.deepEqual([seen.size, Math.min(...seen.values()) >= 4], [2, true]);
});

test('an exporter whose settings change at run time counts by the new ones', async (t) => {
  const rig = await start(t, {});
  const expected = totalOf(expectedRows(sflow, 1).rows)[0];
  let wanted = 0;
  for (const [sampling, scale] of [
    ['prescaled', 1],
    [100, 100],
  ] as const) {
    const exporters = [{ uuid: 'a', name: 'a', source: '127.0.0.2', sampling }];
    await settle(rig, { ...everything, revision: scale, exporters });
    wanted += expected * scale;
    await send(sflow, rig.collector.listening[0], '127.0.0.2');
    await until(`all packets count ${scale} times`, () => totalOf(rig.rows())[0] === wanted);
  }
});

test('answers with samples of an address, and says how many are held', async (t) => {
  const rig = await start(t, {});
  const { collector, detector, heard, rows } = rig;
  await settle(rig, everything);
  await send(sflow, collector.listening[0]);
  await until('they are counted', () => totalOf(rows())[0] === totalOf(expectedRows(sflow).rows)[0]);
  detector.send({ type: 'samples_wanted', request: 'r', dst: '203.0.113.0/24', sinceMs: 0, most: 5 });
  await until('an answer', () => heard.some((message) => message.type === 'samples'));
  const answer = heard.find((message) => message.type === 'samples');
  assert.ok((answer?.held ?? 0) > 5);
  assert.equal(answer?.packets.length, 5);
  for (const { header, exporter, scale } of answer?.packets ?? []) {
    const octets = Buffer.from(header, 'base64');
    assert.equal((octets[0] ?? 0) >> 4, 4);
    assert.equal(octets.subarray(16, 19).join('.'), '203.0.113');
    assert.deepEqual([exporter, scale], ['local', 16]);
  }
});

test('a worker that dies is started anew with its settings and addresses, and nothing counted is forgotten', async (t) => {
  const rig = await start(t, {});
  const { collector, detector, heard, logged, rows } = rig;
  await settle(rig, everything);
  const once = totalOf(expectedRows(sflow).rows)[0];
  await send(sflow, collector.listening[0]);
  await until('the first are counted', () => totalOf(rows())[0] === once);
  await until('and in the status', () => collector.status().exporters[0]?.datagrams === sflow.length);
  // Nothing that a control plane sends: it ends the worker by an exception, as a bug would.
  detector.send({ type: 'hot', detector: 'd', destinations: [undefined as unknown as string] });
  await until('it has died', () => logged.some((text) => text.includes('started anew')));
  detector.send({ type: 'hot', detector: 'd', destinations: [] });
  await until('another runs', () => collector.status().workers[0]?.alive === true && heard.some(isOfAnother));
  await send(sflow, collector.listening[0]);
  await until('the second are counted', () => totalOf(rows())[0] === 2 * once);
  await until('the status has both', () => collector.status().exporters[0]?.datagrams === 2 * sflow.length);
  assert.ok((collector.status().workers[0]?.restarts ?? 0) >= 1);
  assert.deepEqual(collector.status().listening, collector.listening);

  function isOfAnother(message: FromCollector): boolean {
    return message.type === 'status' && message.collector !== heard[0]?.collector;
  }
});

for (const receive of ['recvmmsg', 'dgram'] as const) {
  test(`an address that cannot be listened on is told, the others work, and it is tried again (${receive})`, async (t) => {
    const other = createSocket('udp4');
    await new Promise<void>((resolve) => other.bind(0, '127.0.0.1', resolve));
    const { port } = other.address();
    const listen = [
      { host: '127.0.0.1', port },
      { host: '127.0.0.1', port: 0 },
      { host: 'router.example', port: 6343 },
    ];
    const { collector } = await start(t, { listen, receive });
    const { refused } = collector.status();
    assert.equal(collector.listening.length, 1);
    assert.match(refused[0] ?? '', new RegExp(`127.0.0.1:${port} .* another program listens on it`));
    assert.match(refused[1] ?? '', /router.example:6343 .* no IPv4 or IPv6 address/);
    other.close();
    await until('it listens on the address', () => collector.status().listening.includes(`127.0.0.1:${port}`));
    assert.equal(collector.status().refused.length, 1);
  });
}
