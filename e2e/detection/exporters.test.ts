/**
 * Guarantees to the other tests here that what they stand on is sound: real exporters, put before traffic of which everything
 * is known, tell what was there, within the error of sampling; and our decoder reads it so.
 */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { classify, vectors } from '@levee/core/detection/vector.ts';
import { createDecoder } from '@levee/detector/decode/decoder.ts';
import type { DecodeCounts } from '@levee/detector/flow-record.ts';
import { Exporter, type ExporterOptions } from '@levee/lab/exporters/exporter.ts';
import { startReplay } from '@levee/lab/exporters/replay.ts';
import { enterNamespace, labObstacle } from '@levee/lab/namespace.ts';
import { device, RouterPath } from '@levee/lab/router-path.ts';
import { attackVectors } from '@levee/lab/traffic/attack.ts';
import { type LabelledTraffic, labelledTraffic } from '@levee/lab/traffic/labelled-traffic.ts';
import { writePcap } from '@levee/lab/traffic/pcap-file.ts';
import { placeOf } from '@levee/lab/traffic/place.ts';

const skip = labObstacle() ?? false;
const sampling = 16;

let path: RouterPath;
let folder: string;
let file: string;
let traffic: LabelledTraffic;

before(() => {
  if (skip) return;
  path = new RouterPath({
    protectedPrefixes: ['203.0.113.0/24', '198.51.100.0/24', '2001:db8:1::/48'],
    label: 'export',
  });
  // The collector's socket is to be where the exporter is.
  enterNamespace(path.router.name);
  folder = mkdtempSync(join(tmpdir(), `levee-exporters-${process.pid}-`));
  file = join(folder, 'traffic.pcap');
  traffic = labelledTraffic({
    seed: 'exporters',
    forMs: 2500,
    background: { hosts: ['198.51.100.1', '2001:db8:1::1'], packetsPerSecond: 2000 },
    crowd: { host: '198.51.100.80', fromMs: 100, packetsPerSecond: 2000 },
    attacks: attackVectors.map((vector, number) => ({
      vector,
      dst: number % 3 === 2 ? `2001:db8:1::${number + 10}` : `203.0.113.${number + 10}`,
      fromMs: 130 * number,
      forMs: 800,
      packetsPerSecond: 3000,
    })),
  });
  writePcap(file, traffic.schedule.inOrder());
});
after(() => {
  path?.remove();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

interface Told {
  packets: number;
  bytes: number;
  /** Scaled packets by vector. */
  readonly vectors: Map<string, number>;
}

/** Replays, and sums up what arrives at a socket until nothing has come for so long. */
async function replayed(
  startExporter: (options: ExporterOptions) => Promise<Exporter>,
  quietMs: number,
): Promise<{ told: Map<bigint, Told>; counts: DecodeCounts; rates: Set<number> }> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 });
  const decoder = createDecoder();
  const counts: DecodeCounts = { datagrams: 0, records: 0, dropped: {}, lost: 0 };
  const told = new Map<bigint, Told>();
  const rates = new Set<number>();
  let lastAt = 0;
  socket.on('message', (datagram) => {
    lastAt = performance.now();
    decoder.decode(datagram, datagram.length, 0, lastAt, counts, (record) => {
      const { destination0, destination1, destination2, destination3 } = record;
      const dst =
        record.family === 4
          ? BigInt(destination0)
          : [destination0, destination1, destination2, destination3].reduce(
              (sum, word) => (sum << 32n) | BigInt(word),
              0n,
            );
      const sums = told.get(dst) ?? { packets: 0, bytes: 0, vectors: new Map<string, number>() };
      told.set(dst, sums);
      rates.add(record.samplingRate);
      const packets = record.packets * sampling;
      sums.packets += packets;
      sums.bytes += record.bytes * sampling;
      const { protocol, sourcePort, tcpFlags, fragment, isFlow } = record;
      const vector = vectors[classify(protocol, sourcePort, tcpFlags, fragment !== 0, isFlow)] as string;
      sums.vectors.set(vector, (sums.vectors.get(vector) ?? 0) + packets);
    });
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  const collector = `127.0.0.1:${socket.address().port}`;
  const place = { namespace: path.router, device: device.routerOutside };
  const exporter = await startExporter({ ...place, collector, sampling });
  try {
    const replay = await startReplay({
      file,
      sender: { namespace: path.attacker, device: device.attacker },
      receiver: place,
    });
    try {
      assert.equal(await replay.finished, traffic.schedule.count);
      for (const number of traffic.attacks.keys()) assert.ok((replay.begun(number) ?? 0) > 0, `marker ${number}`);
    } finally {
      await replay.stop();
    }
    const finishedAt = performance.now();
    const deadline = finishedAt + 10_000;
    while (performance.now() - Math.max(lastAt, finishedAt) < quietMs) {
      assert.ok(performance.now() < deadline, 'the exporter does not come to an end');
      await delay(50);
    }
  } finally {
    await exporter.stop();
    socket.close();
  }
  return { told, counts, rates };
}

/** Both sums of each destination within five standard deviations of what a sample of one in `sampling` says. */
function hold(told: ReadonlyMap<bigint, Told>): void {
  for (const { name, dst, packets, bytes, squares } of [...traffic.attacks, ...traffic.innocent]) {
    const sums = told.get(placeOf(dst).value) ?? { packets: 0, bytes: 0 };
    const error = (squared: number): number => 5 * Math.sqrt((sampling - 1) * squared);
    const what = `${name} to ${dst}: ${sums.packets} packets, ${sums.bytes} octets told; ${packets}, ${bytes} sent`;
    assert.ok(Math.abs(sums.packets - packets) <= error(packets), what);
    assert.ok(Math.abs(sums.bytes - bytes) <= error(squares), what);
  }
}

test('pmacctd tells by sFlow what was there, and of which vector each packet is', { skip }, async () => {
  const { told, counts, rates } = await replayed((options) => Exporter.sflow(options), 1200);
  hold(told);
  assert.deepEqual([...rates], [sampling]);
  assert.equal(counts.lost, 0);
  const { counter_sample: _, header_not_ip: markers = 0, ...dropped } = counts.dropped;
  assert.deepEqual(dropped, {});
  assert.ok(markers <= traffic.attacks.length);
  for (const { name, dst } of traffic.attacks) {
    const found = [...(told.get(placeOf(dst).value)?.vectors.keys() ?? [])].sort();
    assert.deepEqual(found, name === 'total' ? ['gre', 'icmp', 'tcp-ack', 'udp-other'] : [name], dst);
  }
});
