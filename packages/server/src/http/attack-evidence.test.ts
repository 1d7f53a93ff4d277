import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { DetectedAttack } from '@levee/contract/detector.ts';
import { transact } from '../commands/executor.ts';
import { recordDetectedAttack } from '../commands/record-detected-attack.ts';
import { detectedAttack, sampleOf } from '../commands/testing/detected.ts';
import { type ApiFixture, type Holder, startApi } from './testing/api-fixture.ts';
import { propose } from './testing/propose.ts';

let api: ApiFixture;
let user: Holder;
let stranger: Holder;
const folder = mkdtempSync(join(tmpdir(), `levee-pcap-${process.pid}-`));
const began = Date.parse('2026-01-31T12:00:00Z');

before(async () => {
  api = await startApi();
  const provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/28', '2001:db8:7::/48']);
  stranger = await api.user(provider, ['203.0.113.16/28']);
  await api.database.pool.query('update subnet set created_at = $1', [new Date(began - 86_400_000)]);
});
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await api.stop();
});

async function tell(detected: DetectedAttack): Promise<string> {
  const outcome = await transact(api.database.pool, (executor) =>
    recordDetectedAttack(executor, detected, new Date(began + 3_600_000)),
  );
  assert.ok(outcome.ok, outcome.ok ? '' : JSON.stringify(outcome.failure));
  return outcome.value.uuid;
}
const read = async (uuid: string) => (await api.call('readAttack', { uuid }, { key: user.key })).body[0];

test('the read of an attack shows how it went, what its packets look like, where it entered, and how long each step took', async () => {
  await api.database.pool.query(
    `insert into exporter (uuid, name, source, sampling) values (gen_random_uuid(), 'edge router 1', '192.0.2.1', 'auto')`,
  );
  const dst = '203.0.113.7';
  const rate = (pps: number) => ({ pps, bps: pps * 11_200 });
  const second = (index: number, pps: number) =>
    ({ at_ms: began + index * 1000, seconds: 1, ...rate(pps), vectors: { 'udp-amplification': rate(pps) } }) as const;
  const uuid = await tell(
    detectedAttack(dst, began, {
      measured: { at_ms: began + 4_000, ...rate(48_000) },
      timeline: [second(0, 20_000), second(1, 48_000)],
      packet_samples: [
        sampleOf(dst, began + 10, 9),
        sampleOf(dst, began + 20, 10, { exporter: '192.0.2.2', header: Buffer.of(0x45, 0, 0).toString('base64') }),
      ],
    }),
  );
  const attack = await read(uuid);
  assert.deepEqual(attack.timeline, [
    { at: '2026-01-31T12:00:00.000Z', seconds: 1, ...rate(20_000), vectors: { 'udp-amplification': rate(20_000) } },
    { at: '2026-01-31T12:00:01.000Z', seconds: 1, ...rate(48_000), vectors: { 'udp-amplification': rate(48_000) } },
  ]);
  assert.deepEqual(
    [attack.packets, attack.bytes, attack.sampled, attack.average],
    [12_000, 16_800_000, 750, { pps: 3_000, bps: 33_600_000 }],
  );
  assert.deepEqual(attack.entries, [
    { exporter: 'edge router 1', interface: 7, share: 0.8 },
    { exporter: '192.0.2.2', share: 0.2 },
  ]);
  assert.deepEqual(attack.packet_samples, [
    {
      at: '2026-01-31T12:00:00.010Z',
      src: '198.51.100.9',
      dst,
      protocol: 'udp',
      port: { src: 53, dst: 40_000 },
      length: 1400,
      scale: 16,
      exporter: 'edge router 1',
      interface: 7,
    },
    { at: '2026-01-31T12:00:00.020Z', length: 1400, scale: 16, exporter: '192.0.2.2', interface: 7 },
  ]);
  const [profile] = attack.profile;
  assert.deepEqual(
    [profile.vector, profile.protocols, profile.source_ports, profile.length, profile.distinct_sources],
    [
      'udp-amplification',
      [{ protocol: 'udp', share: 1 }],
      [{ port: 53, share: 1 }],
      { min: 1200, p5: 1300, max: 1500 },
      40,
    ],
  );
  assert.deepEqual(attack.top_sources, [
    { source: '198.51.100.9', share: 0.5 },
    { source: '198.51.100.10', share: 0.25 },
  ]);
  assert.equal(attack.timings.detect_ms, 250);
  assert.ok(attack.timings.decide_ms > 0);
});

test('what came of an attack is shown with its state, and what could not be said where', async () => {
  const dst = '203.0.113.8';
  const body = { scope: dst, mitigation: 'edge' };
  const policy = await api.call('createDetectionPolicy', {}, { key: api.operatorKey, body });
  assert.equal(policy.status, 200, policy.text);
  const uuid = await tell(detectedAttack(dst, began));
  const flowrule = await propose(api.database.pool, dst, { attackUuid: uuid });
  const { flowrules, measures } = await read(uuid);
  assert.deepEqual(
    measures.flowrules.map(({ uuid }: { uuid: string }) => uuid),
    flowrules,
  );
  assert.ok(flowrules.includes(flowrule.uuid));
  for (const { state, state_reason } of measures.flowrules) assert.ok(state === 'proposed' && state_reason !== '');
  assert.ok(measures.firewall_rules.length > 0);
  for (const { state, state_reason, purpose } of measures.firewall_rules) {
    assert.deepEqual([state, state_reason], ['pending', 'No router is enrolled.']);
    assert.match(purpose, /^udp-amplification:/);
  }
  for (const { vector, where, text } of measures.notes) {
    assert.ok(vector !== '' && text !== '' && ['edge', 'flowspec'].includes(where));
  }
});

test('of a thousand packets that are kept a hundred are shown, from the first to the last moment', async () => {
  const detected = detectedAttack('203.0.113.9', began);
  let uuid = '';
  for (let report = 0; report < 11; report++) {
    const packet_samples = Array.from({ length: 100 }, (_, index) =>
      sampleOf('203.0.113.9', began + report * 1_000 + index * 10, index),
    );
    uuid = await tell({ ...detected, packet_samples });
  }
  const { packet_samples } = await read(uuid);
  assert.equal(packet_samples.length, 100);
  const times: number[] = packet_samples.map(({ at }: { at: string }) => Date.parse(at) - began);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  );
  assert.ok((times[0] ?? 1) === 0 && (times.at(-1) ?? 0) > 10_500, `${times.at(-1)}`);
});

async function tcpdump(file: string): Promise<readonly string[]> {
  // As nobody else: it gives up root, and the folder is this user's own.
  const { stdout } = await promisify(execFile)('tcpdump', ['-Z', 'root', '-nn', '-tt', '-v', '-r', file]);
  return stdout.split(/\n(?=\d)/).filter((line) => line !== '');
}

async function pcapOf(uuid: string): Promise<{ readonly file: string; readonly headers: Headers }> {
  const response = await fetch(`${api.url}/v1/attacks/${uuid}/pcap`, { headers: { 'x-api-key': user.key } });
  assert.equal(response.status, 200);
  const file = join(folder, `${uuid}.pcap`);
  writeFileSync(file, new Uint8Array(await response.arrayBuffer()));
  return { file, headers: response.headers };
}

test('tcpdump reads the sampled packets with their times, their true lengths and their contents', async () => {
  const dst = '203.0.113.10';
  const ipv6 = Buffer.from(
    `6000000005001140${'20010db8000000000000000000000009'}${'20010db8000700000000000000000001'}00359c4005000000`,
    'hex',
  );
  const uuid = await tell(
    detectedAttack(dst, began, {
      packet_samples: [
        sampleOf(dst, began + 1_234, 10),
        sampleOf(dst, began + 7, 9),
        sampleOf(dst, began + 2_000, 9, { header: ipv6.toString('base64'), length: 1320 }),
      ],
    }),
  );
  const { file, headers } = await pcapOf(uuid);
  assert.equal(headers.get('content-type'), 'application/vnd.tcpdump.pcap');
  assert.match(headers.get('content-disposition') ?? '', new RegExp(`^attachment; filename="attack-${uuid}\\.pcap"$`));
  const lines = await tcpdump(file);
  assert.equal(lines.length, 3, lines.join('\n'));
  const seconds = began / 1000;
  assert.match(
    lines[0] ?? '',
    new RegExp(`^${seconds}\\.007000 IP .*length 1400[^]*198\\.51\\.100\\.9\\.53 > 203\\.0\\.113\\.10\\.40000`),
  );
  assert.match(lines[1] ?? '', new RegExp(`^${seconds + 1}\\.234000 IP .*length 1400[^]*198\\.51\\.100\\.10\\.53`));
  assert.match(lines[2] ?? '', new RegExp(`^${seconds + 2}\\.000000 IP6 .*2001:db8::9\\.53 > 2001:db8:7::1\\.40000`));
});

test('of an attack without packets the capture file is valid and empty, and another account has none', async () => {
  const uuid = await tell(detectedAttack('203.0.113.11', began));
  const { file } = await pcapOf(uuid);
  assert.deepEqual(await tcpdump(file), []);
  assert.equal((await api.call('readAttackPcap', { uuid }, { key: stranger.key })).status, 404);
});
