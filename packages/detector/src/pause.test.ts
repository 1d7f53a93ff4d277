/** Guarantees of collector and detection when their process stands still: real sFlow over UDP, real SIGSTOP. */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { DetectedAttack, DetectorSettings } from '@levee/contract/detector.ts';
import { flowSample, headerRecord, ipv4, sflow, u8, udp } from './decode/testing/build.ts';

const settings: DetectorSettings = {
  type: 'settings',
  revision: 1,
  prefixes: ['203.0.113.0/24'],
  policies: [
    {
      uuid: '01890000-0000-7000-8000-000000000001',
      subnets: [],
      rank: 0,
      thresholds: { 'udp-other': { pps: 50_000 }, total: { pps: 1_000_000 } },
      hold_s: 5,
      baseline_factor: 1,
    },
  ],
  exporters: [],
  ongoing: [],
};

const samplingRate = 200;
const deadlineMilliseconds = 20_000;

/** An exporter that tells of so many packets a second to an address, as long as it runs. */
function exportFlows(port: number, last: number, pps: number): () => void {
  const socket = createSocket('udp4');
  const packet = ipv4(17, udp(4000, 5000));
  u8(203, 0, 113, last).copy(packet, 16);
  const datagram = sflow([flowSample([headerRecord(11, packet)], { rate: samplingRate })]);
  let atMs = performance.now();
  let owed = 0;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    owed += ((nowMs - atMs) / 1000) * (pps / samplingRate);
    atMs = nowMs;
    for (; owed >= 1; owed--) socket.send(datagram, port, '127.0.0.1');
  }, 10);
  return () => {
    clearInterval(timer);
    socket.close();
  };
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + deadlineMilliseconds;
  while (!holds()) {
    if (performance.now() > deadline) assert.fail(`not within ${deadlineMilliseconds} ms: ${what}`);
    await delay(10);
  }
}

for (const receive of ['recvmmsg', 'dgram'] as const) {
  test(`a process that stood still finds no attack in what waited, and the one that began meanwhile (${receive})`, async () => {
    const program = join(import.meta.dirname, 'testing', 'detecting-process.ts');
    const child: ChildProcess = fork(program, [JSON.stringify(settings), receive]);
    const stops: (() => void)[] = [];
    try {
      const attacks: DetectedAttack[] = [];
      let listening: string | undefined;
      child.on('message', (message: { listening?: string[]; attacks?: DetectedAttack[] }) => {
        listening ??= message.listening?.[0];
        attacks.push(...(message.attacks ?? []));
      });
      await until('it listens', () => listening !== undefined);
      const port = Number(listening?.split(':')[1]);
      stops.push(exportFlows(port, 1, 20_000));
      await delay(1_500);
      child.kill('SIGSTOP');
      await delay(2_000);
      const beganMs = Date.now();
      stops.push(exportFlows(port, 2, 200_000));
      await delay(1_000);
      child.kill('SIGCONT');
      const wentOnMs = Date.now();
      await until('the flood is found', () => attacks.some(({ dst }) => dst === '203.0.113.2'));
      await delay(1_500);
      const started = attacks.filter(({ phase }) => phase === 'started');
      assert.deepEqual(
        started.map(({ dst }) => dst),
        ['203.0.113.2'],
      );
      const startedMs = started[0]?.started_ms ?? 0;
      const latestMs = receive === 'recvmmsg' ? beganMs + 750 : wentOnMs + 2_000;
      assert.ok(startedMs > beganMs - 500 && startedMs < latestMs, `${startedMs - beganMs} ms after it began`);
      const peak = Math.max(...attacks.flatMap(({ profile }) => profile.map(({ peak_pps }) => peak_pps)));
      assert.ok(peak < 280_000, `a peak of ${peak}`);
    } finally {
      for (const stop of stops) stop();
      child.kill('SIGKILL');
    }
  });
}
