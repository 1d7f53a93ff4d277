/**
 * From the first packet of an attack on the wire to the attack in `GET /attacks`, beside the call of FastNetMon's notify script:
 * one replay, one exporter (pmacctd, sFlow, one packet of 16), the same datagrams to both, the same threshold, FastNetMon at its
 * fastest setting. Its 8 000 packets a second are eight times the threshold. Needs root, and the tests' Debian packages with fastnetmon.
 *
 * npm run bench -- detection-latency [attacks = 16]
 */
import { createSocket } from 'node:dgram';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vectors } from '@levee/core/detection/vector.ts';
import { Exporter } from '@levee/lab/exporters/exporter.ts';
import { replayStepMs, startReplay } from '@levee/lab/exporters/replay.ts';
import { enterNamespace } from '@levee/lab/namespace.ts';
import { Random } from '@levee/lab/random.ts';
import { device, RouterPath } from '@levee/lab/router-path.ts';
import { labelledTraffic } from '@levee/lab/traffic/labelled-traffic.ts';
import { writePcap } from '@levee/lab/traffic/pcap-file.ts';
import { RunningLevee } from '../e2e/running-levee.ts';
import { startFastnetmon } from './detection/fastnetmon.ts';

const count = Number(process.argv[2] ?? 16);
const prefixes = ['203.0.113.0/24', '198.51.100.0/24'];
const threshold = 1000;
const packetsPerSecond = 8000;
const attackMs = 2600;
const flowPort = 6343;

const random = new Random('latency');
let at = 3000;
const attacks = Array.from({ length: count }, (_, number) => {
  const fromMs = at;
  // At any part of a second: both look at a clock.
  at += 3000 + random.integer(0, 999);
  const vector = (['udp-amplification', 'tcp-syn', 'udp-other', 'icmp'] as const)[number % 4] ?? 'icmp';
  return { vector, dst: `203.0.113.${number + 1}`, fromMs, forMs: attackMs, packetsPerSecond };
});
const traffic = labelledTraffic({
  seed: 'latency',
  forMs: at + 1000,
  background: { hosts: ['198.51.100.1', '198.51.100.2'], packetsPerSecond: 1000 },
  attacks,
});

const folder = mkdtempSync(join(tmpdir(), `levee-bench-latency-${process.pid}-`));
const file = join(folder, 'traffic.pcap');
writePcap(file, traffic.schedule.inOrder(), replayStepMs);
using path = new RouterPath({ protectedPrefixes: prefixes, label: 'latency' });
enterNamespace(path.router.name);
const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
try {
  const levee = await RunningLevee.start({ environment: { LEVEE_FLOW_LISTEN: `127.0.0.1:${flowPort}` } });
  ends.push(() => levee.stop());
  const provider = await levee.createProvider('Example Hosting', prefixes);
  const thresholds = Object.fromEntries(vectors.map((vector) => [vector, { pps: threshold }]));
  await levee.good('POST', '/operator/detection-policy', levee.operatorKey, {
    scope: 'installation',
    thresholds,
    hold_s: 5,
  });
  await levee.good('POST', '/operator/exporter', levee.operatorKey, { name: 'uplink', source: '127.0.0.1' });
  const fastnetmon = await startFastnetmon({ networks: prefixes, threshold });
  ends.push(() => fastnetmon.stop());

  const tee = createSocket('udp4');
  ends.push(() => tee.close());
  const told = new Map<string, number>();
  const untold = new Map(attacks.map(({ dst }) => [dst, Buffer.from(dst.split('.').map(Number))]));
  tee.on('message', (datagram) => {
    for (const [dst, octets] of untold) {
      if (!datagram.includes(octets)) continue;
      told.set(dst, Date.now());
      untold.delete(dst);
    }
    tee.send(datagram, flowPort, '127.0.0.1');
    tee.send(datagram, fastnetmon.port, '127.0.0.1');
  });
  await new Promise<void>((resolve) => tee.bind(0, '127.0.0.1', resolve));
  const exporter = await Exporter.sflow({
    namespace: path.router,
    device: device.routerOutside,
    collector: `127.0.0.1:${tee.address().port}`,
    sampling: 16,
  });
  ends.push(() => exporter.stop());

  const sender = { namespace: path.attacker, device: device.attacker };
  const replay = await startReplay({
    file,
    sender,
    receiver: { namespace: path.router, device: device.routerOutside },
  });
  ends.push(() => replay.stop());
  const listed = new Map<string, { at: number; recorded: number }>();
  let sending = true;
  void replay.finished.finally(() => {
    sending = false;
  });
  while (sending) {
    for (const { dst, created_at } of await levee.good('GET', '/attacks', provider.key)) {
      if (!listed.has(dst)) listed.set(dst, { at: Date.now(), recorded: Date.parse(created_at) });
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await replay.finished;

  const theirs = fastnetmon.found();
  const rows = attacks.map(({ dst, vector }, number) => {
    const begun = replay.begun(number) ?? Number.NaN;
    const since = (moment: number | undefined): number => Math.round((moment ?? Number.NaN) - begun);
    return {
      vector,
      // Part of both: how long the exporter itself takes until it tells of the attack's first sampled packet.
      exporter: since(told.get(dst)),
      'Levee: recorded': since(listed.get(dst)?.recorded),
      'Levee: listed': since(listed.get(dst)?.at),
      FastNetMon: since(theirs.get(dst)),
    };
  });
  console.table(rows);
  const figures = (name: keyof (typeof rows)[number]) => {
    const all = rows.map((row) => Number(row[name])).filter((figure) => !Number.isNaN(figure));
    all.sort((a, b) => a - b);
    return { missed: rows.length - all.length, best: all[0], median: all[all.length >> 1], worst: all.at(-1) };
  };
  console.table({
    exporter: figures('exporter'),
    'Levee: recorded': figures('Levee: recorded'),
    'Levee: listed': figures('Levee: listed'),
    FastNetMon: figures('FastNetMon'),
  });
  const took = (replay.begun(count - 1) ?? Number.NaN) - (replay.begun(0) ?? Number.NaN);
  const meant = (attacks.at(-1)?.fromMs ?? 0) - (attacks[0]?.fromMs ?? 0);
  console.log(`the replay ran at ${((100 * meant) / took).toFixed(0)} % of its speed`);
  const ratio = Number(figures('FastNetMon').median) / Number(figures('Levee: listed').median);
  console.log(`FastNetMon takes ${ratio.toFixed(1)} times as long (medians, to what can be read of each)`);
} finally {
  for (const end of ends.reverse()) await end();
}
