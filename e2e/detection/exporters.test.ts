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
import type { DecodeCounts, FlowRecord } from '@levee/detector/flow-record.ts';
import { Exporter, type ExporterOptions } from '@levee/lab/exporters/exporter.ts';
import { replayStepMs, startReplay } from '@levee/lab/exporters/replay.ts';
import { enterNamespace, labObstacle } from '@levee/lab/namespace.ts';
import { device, RouterPath } from '@levee/lab/router-path.ts';
import { attackVectors, partsOfTotal } from '@levee/lab/traffic/attack.ts';
import { type LabelledTraffic, labelledTraffic } from '@levee/lab/traffic/labelled-traffic.ts';
import { writePcap } from '@levee/lab/traffic/pcap-file.ts';
import { placeOf } from '@levee/lab/traffic/place.ts';

const skip = labObstacle() ?? false;
const sampling = 16;

interface Told {
  packets: number;
  bytes: number;
  readonly vectors: Set<string>;
}

/** Takes what one exporter sends, decodes it, sums it up. */
class Listener {
  readonly told = new Map<bigint, Told>();
  readonly counts: DecodeCounts = { datagrams: 0, records: 0, dropped: {}, lost: 0 };
  readonly rates = new Set<number>();
  heardAt = 0;
  readonly #socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 });
  readonly #decoder = createDecoder();

  /** Its `address:port`. */
  async listen(): Promise<string> {
    this.#socket.on('message', (datagram) => {
      this.heardAt = performance.now();
      this.#decoder.decode(datagram, datagram.length, 0, this.heardAt, this.counts, (record) => this.#take(record));
    });
    await new Promise<void>((resolve) => this.#socket.bind(0, '127.0.0.1', resolve));
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  #take(record: FlowRecord): void {
    const { destination0, destination1, destination2, destination3, protocol, sourcePort, tcpFlags } = record;
    const words = record.family === 4 ? [destination0] : [destination0, destination1, destination2, destination3];
    const dst = words.reduce((sum, word) => (sum << 32n) | BigInt(word), 0n);
    const sums = this.told.get(dst) ?? { packets: 0, bytes: 0, vectors: new Set<string>() };
    this.told.set(dst, sums);
    this.rates.add(record.samplingRate);
    sums.packets += record.packets * sampling;
    sums.bytes += record.bytes * sampling;
    const vector = classify(protocol, sourcePort, tcpFlags, record.fragment !== 0, record.isFlow);
    sums.vectors.add(vectors[vector] as string);
  }

  close(): void {
    this.#socket.close();
  }
}

const exporters = {
  sflow: (options: ExporterOptions) => Exporter.sflow(options),
  ipfix: (options: ExporterOptions) => Exporter.softflowd({ ...options, version: 10 }),
  netflow9: (options: ExporterOptions) => Exporter.netflow9(options),
};
type Name = keyof typeof exporters;

let path: RouterPath;
let traffic: LabelledTraffic;
const heard = new Map<Name, Listener>();

before(async () => {
  if (skip) return;
  path = new RouterPath({
    protectedPrefixes: ['203.0.113.0/24', '198.51.100.0/24', '2001:db8:1::/48'],
    label: 'export',
  });
  // Collectors' sockets are to be where the exporters are.
  enterNamespace(path.router.name);
  const folder = mkdtempSync(join(tmpdir(), `levee-exporters-${process.pid}-`));
  const running: Exporter[] = [];
  try {
    const file = join(folder, 'traffic.pcap');
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
    writePcap(file, traffic.schedule.inOrder(), replayStepMs);
    const place = { namespace: path.router, device: device.routerOutside };
    for (const [name, start] of Object.entries(exporters)) {
      const listener = new Listener();
      heard.set(name as Name, listener);
      running.push(await start({ ...place, collector: await listener.listen(), sampling }));
    }
    const sender = { namespace: path.attacker, device: device.attacker };
    const replay = await startReplay({ file, sender, receiver: place });
    try {
      assert.equal(await replay.finished, traffic.schedule.count);
      for (const number of traffic.attacks.keys()) assert.ok((replay.begun(number) ?? 0) > 0, `marker ${number}`);
    } finally {
      await replay.stop();
    }
    const finishedAt = performance.now();
    const quietMs = (): number =>
      performance.now() - Math.max(finishedAt, ...[...heard.values()].map(({ heardAt }) => heardAt));
    // Flows are looked at once a second, and told when they have been silent for one.
    while (quietMs() < 2500) {
      assert.ok(performance.now() < finishedAt + 15_000, 'the exporters do not come to an end');
      await delay(50);
    }
  } finally {
    for (const exporter of running) await exporter.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
after(() => {
  for (const listener of heard.values()) listener.close();
  path?.remove();
});

/** Both sums of each destination within five standard deviations of what a sample of one in `sampling` says. */
function hold(name: Name, untold: readonly string[] = []): Listener {
  const listener = heard.get(name);
  assert.ok(listener);
  for (const { name, dst, packets, bytes, squares } of [...traffic.attacks, ...traffic.innocent]) {
    if (untold.includes(name)) continue;
    const sums = listener.told.get(placeOf(dst).value) ?? { packets: 0, bytes: 0 };
    const error = (squared: number): number => 5 * Math.sqrt((sampling - 1) * squared);
    const what = `${name} to ${dst}: ${sums.packets} packets, ${sums.bytes} octets told; ${packets}, ${bytes} sent`;
    assert.ok(Math.abs(sums.packets - packets) <= error(packets), what);
    assert.ok(Math.abs(sums.bytes - bytes) <= error(squares), what);
  }
  assert.deepEqual([...listener.rates], [sampling]);
  assert.equal(listener.counts.lost, 0);
  return listener;
}

/** Of each attack those that its packets are counted to. */
function holdVectors(listener: Listener, otherwise: Readonly<Record<string, string>> = {}): void {
  for (const { name, dst } of traffic.attacks) {
    const found = [...(listener.told.get(placeOf(dst).value)?.vectors ?? [])].sort();
    const wanted = name === 'total' ? partsOfTotal : [otherwise[name] ?? name];
    assert.deepEqual(found, wanted, dst);
  }
}

test('pmacctd tells by sFlow what was there, and of which vector each packet is', { skip }, () => {
  const listener = hold('sflow');
  const { counter_sample: _, header_not_ip: markers = 0, ...dropped } = listener.counts.dropped;
  assert.deepEqual(dropped, {});
  assert.ok(markers <= traffic.attacks.length);
  holdVectors(listener);
});

test('softflowd tells by IPFIX what was there, but not that fragments are such', { skip }, () => {
  const listener = hold('ipfix');
  assert.deepEqual(listener.counts.dropped, {});
  holdVectors(listener, { 'ip-fragment': 'udp-other' });
});

test('pmacctd tells by NetFlow v9 what was there, but not of fragments whose first it did not see', { skip }, () => {
  const listener = hold('netflow9', ['ip-fragment']);
  assert.deepEqual(listener.counts.dropped, {});
  holdVectors(listener, { 'ip-fragment': 'udp-other' });
});
