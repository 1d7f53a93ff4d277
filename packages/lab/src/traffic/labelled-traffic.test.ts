import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { attackVectors } from './attack.ts';
import { labelledTraffic, markedAttack, type TrafficOptions } from './labelled-traffic.ts';
import { readPcap, writePcap } from './pcap-file.ts';

const options: TrafficOptions = {
  seed: 'a test',
  forMs: 2000,
  background: { hosts: ['198.51.100.1', '198.51.100.2', '2001:db8:1::1'], packetsPerSecond: 1500 },
  crowd: { host: '198.51.100.80', fromMs: 200, packetsPerSecond: 1500 },
  attacks: [
    ...attackVectors.map((vector, number) => ({
      vector,
      dst: number % 3 === 2 ? `2001:db8:1::${number + 10}` : `203.0.113.${number + 10}`,
      fromMs: 100 * number,
      forMs: 500,
      packetsPerSecond: 1000,
    })),
    { vector: 'udp-other', dst: '192.0.2.0/24', fromMs: 300, forMs: 1000, packetsPerSecond: 2000 },
  ],
};

function digest(seed: string): string {
  const hash = createHash('sha256');
  for (const { atMs, frame } of labelledTraffic({ ...options, seed }).schedule.inOrder())
    hash.update(`${atMs}`).update(frame);
  return hash.digest('hex');
}

test('the same seed gives the same packets at the same moments, another one does not', () => {
  assert.equal(digest('one'), digest('one'));
  assert.notEqual(digest('one'), digest('two'));
});

test('an attack has the rate, the time and the destination of its label, behind its marker', () => {
  const traffic = labelledTraffic(options);
  const marked = new Map<number, number>();
  for (const { atMs, frame } of traffic.schedule.inOrder()) {
    const number = markedAttack(frame);
    if (number !== undefined) marked.set(number, atMs);
  }
  assert.equal(traffic.attacks.length, options.attacks.length);
  for (const [number, wanted] of options.attacks.entries()) {
    const stream = traffic.attacks[number];
    assert.ok(stream);
    assert.deepEqual([stream.name, stream.dst, stream.attack], [wanted.vector, wanted.dst, true]);
    assert.equal(stream.packets, (wanted.packetsPerSecond * wanted.forMs) / 1000);
    assert.ok(stream.startMs >= wanted.fromMs && stream.endMs < wanted.fromMs + wanted.forMs);
    assert.equal(marked.get(number), wanted.fromMs);
  }
});

test('background and crowd have about the rate that they should, up to the end', () => {
  const { innocent } = labelledTraffic({ ...options, forMs: 10_000 });
  const background = innocent.filter(({ name }) => name === 'background');
  const rate = background.reduce((sum, { packets }) => sum + packets, 0) / 10;
  assert.ok(rate > 1100 && rate < 1800, `background: ${rate} packets/s`);
  const crowd = innocent.find(({ name }) => name === 'crowd');
  assert.ok(crowd && crowd.packets / 9.8 > 1100 && crowd.packets / 9.8 < 1800, `crowd: ${crowd?.packets} packets`);
  for (const { endMs } of innocent) assert.ok(endMs > 9500 && endMs < 10_000);
});

test('tcpdump reads the capture file, and finds sums and kinds as labelled', () => {
  const folder = mkdtempSync(join(tmpdir(), `levee-traffic-${process.pid}-`));
  try {
    const traffic = labelledTraffic(options);
    const file = join(folder, 'traffic.pcap');
    assert.equal(writePcap(file, traffic.schedule.inOrder()), traffic.schedule.count);
    assert.equal([...readPcap(readFileSync(file))].length, traffic.schedule.count);
    const lines = (filter: string): number => {
      const said = execFileSync('tcpdump', ['-n', '-q', '-r', file, filter], {
        encoding: 'utf8',
        maxBuffer: 1 << 28,
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      return said === '' ? 0 : said.trimEnd().split('\n').length;
    };
    for (const { name, dst, packets } of [...traffic.attacks, ...traffic.innocent]) {
      const place = dst.includes('/') ? `dst net ${dst}` : `dst host ${dst}`;
      assert.equal(lines(place), packets, `${name} to ${dst}`);
    }
    assert.equal(lines('dst host 203.0.113.11 and tcp[tcpflags] == tcp-syn'), 500);
    assert.equal(lines('dst host 2001:db8:1::18 and ip6 proto 50'), 500);
    assert.equal(
      lines('ip and ip[6:2] & 0x1fff != 0 and not dst host 203.0.113.19'),
      0,
      'fragments are where they belong',
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
