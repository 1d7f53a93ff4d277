import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { DetectedAttack, DetectorSettings } from '@levee/contract/detector.ts';
import { createLocalBus } from '../bus/local.ts';
import { startCollector } from '../collect/collector.ts';
import { ethernet, flowSample, headerRecord, ipv4, sflow, udp } from '../decode/testing/build.ts';
import { startDetection } from './detection.ts';

const settings: DetectorSettings = {
  type: 'settings',
  revision: 1,
  prefixes: ['203.0.113.0/24'],
  policies: [
    {
      uuid: '10000000-0000-4000-8000-000000000001',
      subnets: [],
      rank: 0,
      thresholds: { 'udp-amplification': { pps: 1_000 } },
      hold_s: 1,
      baseline_factor: 3,
    },
  ],
  exporters: [{ uuid: '30000000-0000-4000-8000-000000000001', name: 'r1', source: '127.0.0.1', sampling: 'auto' }],
  ongoing: [],
};

test('sFlow over a real socket becomes an attack with what it looks like and packets of it, which ends with the traffic', async (t) => {
  const bus = createLocalBus();
  const told: DetectedAttack[] = [];
  const log = { info: () => undefined, warn: () => undefined };
  const detection = startDetection({
    bus: bus.detector,
    name: 'test',
    clock: {
      now: Date.now,
      after(milliseconds, run) {
        const timer = setTimeout(run, milliseconds);
        return () => clearTimeout(timer);
      },
    },
    newId: randomUUID,
    report: ({ attacks }) => told.push(...attacks),
    log,
  });
  t.after(() => detection.stop());
  let isReady = false;
  bus.detector.onMessage((message) => {
    if (message.type === 'status' && message.settingsRevision === settings.revision) isReady = true;
  });
  const collector = await startCollector({
    listen: [{ host: '127.0.0.1', port: 0 }],
    bus: bus.collector,
    log,
    workers: 1,
    sampleOctets: 4 << 20,
  });
  t.after(() => collector.stop());
  bus.detector.send({ type: 'settings', settings });
  detection.settings(settings);
  const until = async (what: string, holds: () => boolean) => {
    for (const deadline = performance.now() + 20_000; !holds(); await pause(5)) {
      if (performance.now() > deadline) assert.fail(`not within 20 s: ${what}`);
    }
  };
  await until('the collector goes by the settings', () => isReady);

  const port = Number(new URL(`udp://${collector.status().listening[0]}`).port);
  const socket = createSocket('udp4');
  t.after(() => socket.close());
  // Answers of an NTP server, one in 100.
  const sample = flowSample([headerRecord(1, ethernet(0x0800, ipv4(17, udp(123, 40_000, 440))))], { rate: 100 });
  const datagram = sflow([sample, sample, sample, sample, sample]);
  let isFlooding = true;
  const startMs = Date.now();
  const flood = (async () => {
    while (isFlooding) {
      socket.send(datagram, port, '127.0.0.1');
      await pause(5);
    }
  })();
  t.after(() => {
    isFlooding = false;
    return flood;
  });
  await until('an attack is found', () => told.length > 0);
  const foundMs = Date.now() - startMs;
  await until('its packets are known', () => told.some(({ packet_samples }) => packet_samples.length > 0));
  isFlooding = false;
  await until('it has ended', () => told.some(({ phase }) => phase === 'ended'));

  const [started] = told;
  assert.deepEqual([started?.phase, started?.dst, started?.vectors], ['started', '203.0.113.9', ['udp-amplification']]);
  assert.ok((started?.threshold.observed ?? 0) > 1_000);
  assert.ok(foundMs < 2_000, `${foundMs} ms`);
  assert.equal(new Set(told.map(({ id }) => id)).size, 1);
  const last = told.findLast(({ profile }) => (profile[0]?.samples ?? 0) > 0)?.profile[0];
  assert.deepEqual(last?.source_ports, [{ value: 123, share: 1 }]);
  assert.deepEqual(last?.sources, [{ value: '198.51.100.7', share: 1 }]);
  assert.deepEqual(last?.length, { min: 468, p5: 468, max: 468 });
  assert.equal(told.find(({ entries }) => entries.length > 0)?.entries[0]?.exporter, settings.exporters[0]?.uuid);
});
