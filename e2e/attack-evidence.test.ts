/**
 * Guarantees on the whole way of evidence: sampled packets that an exporter sends become an attack's timeline, its packets as a
 * capture file that tcpdump reads, and what a draft rule is held against.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { flowSample, headerRecord, ipv4, sflow, udp } from '@levee/detector/decode/testing/build.ts';
import { RunningLevee, until } from './running-levee.ts';

const patience = 20_000;
const folder = mkdtempSync(join(tmpdir(), `levee-evidence-${process.pid}-`));
let levee: RunningLevee;
let key: string;
let sender: Socket;
let flood: NodeJS.Timeout | undefined;

/** As the datagrams of the decoder's tests have it. */
const packet = ipv4(17, udp(53, 4000));
const dst = [...packet.subarray(16, 20)].join('.');
const src = [...packet.subarray(12, 16)].join('.');

before(async () => {
  levee = await RunningLevee.start({
    environment: { LEVEE_EDGE_DRIVER: 'off', LEVEE_FLOW_LISTEN: '127.0.0.1:0', LEVEE_DETECT_WORKERS: '1' },
  });
  key = (await levee.createProvider('Example Hosting', [`${dst}/32`])).key;
  await levee.good('POST', '/operator/detection-policy', levee.operatorKey, {
    scope: dst,
    thresholds: { 'udp-amplification': { pps: 1000 } },
    hold_s: 5,
  });
  const port = Number(levee.summary.flows.listen[0]?.split(':')[1]);
  sender = createSocket('udp4');
  const samples = Array.from({ length: 5 }, () => flowSample([headerRecord(11, packet)], { rate: 100 }));
  let sequence = 0;
  flood = setInterval(() => sender.send(sflow(samples, { sequence: sequence++ }), port, '127.0.0.1'), 5);
});
after(async () => {
  clearInterval(flood);
  sender?.close();
  await levee?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('an attack that an exporter samples has a timeline, timings, and packets that tcpdump reads', async (context) => {
  const attacks = () => levee.good('GET', `/attacks?dst=${dst}`, key);
  await until('an attack', patience, async () => (await attacks()).length > 0);
  const [{ uuid }] = await attacks();
  const read = async () => (await levee.good('GET', `/attacks/${uuid}`, key))[0];
  await until('packets and seconds', patience, async () => {
    const { packet_samples, timeline } = await read();
    return packet_samples.length > 0 && timeline.length > 1;
  });
  const attack = await read();
  const [sample] = attack.packet_samples;
  assert.deepEqual(
    [sample.src, sample.dst, sample.protocol, sample.port, sample.scale],
    [src, dst, 'udp', { src: 53, dst: 4000 }, 100],
  );
  assert.ok(attack.timeline.every(({ pps }: { pps: number }) => pps >= 0));
  assert.ok(attack.packets > 0 && attack.average.pps > 1000, `${attack.packets} ${attack.average.pps}`);
  assert.ok(attack.timings.detect_ms >= 0 && attack.timings.decide_ms >= 0);
  context.diagnostic(`timings of the first measures: ${JSON.stringify(attack.timings)}`);
  const response = await fetch(`${levee.summary.address}/v1/attacks/${uuid}/pcap`, { headers: { 'x-api-key': key } });
  const file = join(folder, 'attack.pcap');
  writeFileSync(file, new Uint8Array(await response.arrayBuffer()));
  const { stdout } = await promisify(execFile)('tcpdump', ['-Z', 'root', '-nn', '-r', file]);
  const lines = stdout.trim().split('\n');
  assert.ok(lines.length > 0);
  for (const line of lines) assert.ok(line.includes(`IP ${src}.53 > ${dst}.4000`), line);
});

test('a draft is held against the packets that the detector has of the last minutes', async () => {
  const draft = { dst, protocol: 'udp', action: 'drop', port: { src: { start: 53 } } };
  const preview = (more: object = {}) => levee.good('POST', '/firewall/preview', key, { ...draft, ...more });
  const all = await preview();
  assert.ok(all.samples > 0 && all.samples <= 1000 && all.held >= all.samples, `${all.samples} of ${all.held}`);
  assert.deepEqual([all.matched, all.matched_share, all.undecided], [all.samples, 1, 0]);
  assert.equal(all.matched_packets, all.samples * 100);
  assert.deepEqual(
    all.top_sources.map(({ source }: { source: string }) => source),
    [src],
  );
  assert.equal((await preview({ port: { src: { start: 123 } } })).matched, 0);
  const tracked = await preview({ statetype: 'new' });
  assert.deepEqual([tracked.matched, tracked.undecided], [0, tracked.samples]);
});
