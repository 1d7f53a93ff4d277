/** Guarantees of the detector as a whole: real datagrams in, reports out, against a control plane that is there or is not. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { settingsOf, startControlPlane } from './link/testing/control-plane.ts';
import { type DetectorConfig, startDetector } from './main.ts';

const folder = mkdtempSync(join(tmpdir(), `levee-detector-${process.pid}-`));
after(() => rmSync(folder, { recursive: true, force: true }));

function configOf(control: string, name: string): DetectorConfig {
  return {
    controlPlanes: [control],
    key: 'the-key',
    stateDirectory: join(folder, name),
    listen: [{ host: '127.0.0.1', port: 0 }],
    workers: 1,
    intervals: { reconnectMilliseconds: 200, reportMilliseconds: 300 },
    logger: pino({ level: 'silent' }),
  };
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 15_000;
  while (!holds()) {
    assert.ok(Date.now() < deadline, `${what}: not within 15 s`);
    await delay(10);
  }
}

/** NetFlow v5: a UDP flow of 1000 packets to 203.0.113.7 that ended just now. */
function flow(sequence: number): Buffer {
  const datagram = Buffer.alloc(72);
  datagram.writeUInt16BE(5, 0);
  datagram.writeUInt16BE(1, 2);
  datagram.writeUInt32BE(1_000_000, 4);
  datagram.writeUInt32BE(Math.floor(Date.now() / 1000), 8);
  datagram.writeUInt32BE(sequence, 16);
  Buffer.from([198, 51, 100, 1, 203, 0, 113, 7]).copy(datagram, 24);
  datagram.writeUInt32BE(1_000, 40);
  datagram.writeUInt32BE(100_000, 44);
  datagram.writeUInt32BE(999_990, 48);
  datagram.writeUInt32BE(1_000_000, 52);
  datagram.writeUInt16BE(4_000, 56);
  datagram.writeUInt16BE(5_000, 58);
  datagram[62] = 17;
  return datagram;
}

function sendFlows(listening: readonly string[]): () => void {
  const socket = createSocket('udp4');
  const port = Number(listening[0]?.split(':')[1]);
  let sequence = 0;
  const timer = setInterval(() => socket.send(flow(sequence++), port, '127.0.0.1'), 5);
  return () => {
    clearInterval(timer);
    socket.close();
  };
}

const settings = {
  ...settingsOf(1, ['203.0.113.0/24']),
  policies: [
    {
      uuid: '01890000-0000-7000-8000-000000000001',
      subnets: [],
      rank: 0,
      thresholds: { 'udp-other': { pps: 100 } },
      hold_s: 5,
      baseline_factor: 1,
    },
  ],
};

test('without a key it says what to do', async () => {
  const { key: _, ...config } = configOf('http://127.0.0.1:9', 'keyless');
  await assert.rejects(startDetector(config), /detector\.key.*POST \/v1\/operator\/detector/);
});

test('a state directory is one process at a time: a second is refused with what to set, and after the first it starts', async () => {
  const config: DetectorConfig = {
    ...configOf('http://127.0.0.1:9', 'shared'),
    role: 'collect',
    nats: { servers: ['nats://127.0.0.1:9'], name: 'levee' },
  };
  const former = await startDetector(config);
  try {
    for (const role of ['collect', 'all'] as const)
      await assert.rejects(
        startDetector({ ...config, role }),
        /shared is in use by .*\(process \d+\).*detect\.state_dir/,
      );
  } finally {
    await former.stop();
  }
  const next = await startDetector(config);
  await next.stop();
});

test('what it receives becomes an attack and figures, and it stops at once', async () => {
  const control = await startControlPlane('the-key');
  const detector = await startDetector(configOf(control.address, 'connected'));
  try {
    await until('connected', () => detector.connected);
    control.tell(settings);
    const stop = sendFlows(detector.listening);
    const attacks = () => control.reports.flatMap((each) => each.attacks);
    await until('an attack', () => attacks().length > 0);
    await until('figures', () => control.reports.some(({ exporters = [] }) => exporters.length > 0));
    stop();
    const [first] = attacks();
    assert.deepEqual([first?.dst, first?.phase, first?.vectors], ['203.0.113.7', 'started', ['udp-other']]);
    const [exporter] = control.reports.findLast(({ exporters = [] }) => exporters.length > 0)?.exporters ?? [];
    assert.deepEqual([exporter?.source, exporter?.uuid, exporter?.protocols], ['127.0.0.1', undefined, ['netflow5']]);
    assert.deepEqual(control.reports.at(-1)?.status.listen, detector.listening);
  } finally {
    const before = performance.now();
    await detector.stop();
    const took = performance.now() - before;
    await control.close();
    assert.ok(took < 3_000, `stopping took ${took} ms`);
  }
});

test('without a control plane it detects by what the last run knew, and tells of it when the control plane is back', async () => {
  const former = await startControlPlane('the-key');
  const { address } = former;
  await former.close();
  const config = configOf(address, 'alone');
  mkdirSync(config.stateDirectory, { recursive: true });
  writeFileSync(join(config.stateDirectory, 'settings.json'), JSON.stringify(settings));
  const detector = await startDetector(config);
  const stop = sendFlows(detector.listening);
  await until('an attack is found', () => detector.waiting > 0);
  stop();
  const back = await startControlPlane('the-key', Number(new URL(address).port));
  try {
    const at = Date.now();
    await until('the attack', () => back.reports.some(({ attacks }) => attacks.length > 0));
    const [first] = back.reports.flatMap(({ attacks }) => attacks);
    assert.equal(first?.phase, 'started');
    assert.ok((first?.detected_ms ?? at) < at, 'it was found before anybody was there to be told');
  } finally {
    await detector.stop();
    await back.close();
  }
});
