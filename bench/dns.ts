/**
 * Queries a second of the embedded DNS server against Knot with the same zone, in turns in one run. dnsperf (Debian
 * package dnsperf) asks over UDP and shares the machine's cores with whatever it measures. Levee answers in one thread,
 * Knot in one a core.
 *
 * npm run bench -- dns [seconds a turn = 4]
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DnsAddress, startDnsServer } from '../packages/server/src/backends/dns/dns-server.ts';
import { memoryZones, zoneSettings } from '../packages/server/src/backends/dns/testing/memory-zones.ts';
import { digShort, freePort, startKnot } from '../packages/server/src/backends/dns/testing/programs.ts';
import type { ZoneRecord } from '../packages/server/src/backends/dns/zone-source.ts';
import { waitUntil } from '../packages/server/src/store/testing/wait-until.ts';

const rounds = 3;
const seconds = Number(process.argv[2] ?? 4);
const zone = '113.10.in-addr.arpa';
const folder = mkdtempSync(join(tmpdir(), `levee-bench-dns-${process.pid}-`));
const ownerOf = (index: number) => `${index & 255}.${index >> 8}.${zone}`;
const records = Array.from({ length: 65_536 }, (_, index): ZoneRecord => [ownerOf(index), `h${index}.example.net`]);

const knotPort = await freePort();
const zones = memoryZones();
zones.put(zoneSettings(zone, { secondaries: [{ address: '127.0.0.1', port: knotPort }] }), records);
const started = await startDnsServer({
  listen: [{ host: '127.0.0.1', port: 0 }],
  source: zones,
  answersPerSecond: 0,
  warn: console.error,
  logError: console.error,
});
if (!started.ok) throw new Error(started.message);
const [ours] = started.dns.addresses;
if (ours === undefined) throw new Error('no address');
const knot = startKnot(knotPort, { zones: [zone], primary: ours });
const theirs: DnsAddress = { host: '127.0.0.1', port: knotPort };
try {
  const loaded = async () => (await digShort(theirs, '+norec', ownerOf(9), 'PTR').catch(() => [])).length === 1;
  await waitUntil(loaded, 'the zone at Knot', 30_000);
  // One in ten does not exist.
  const asked = Array.from({ length: 20_000 }, (_, index) => `${ownerOf((index * 7919) % 72_000)} PTR`);
  const file = join(folder, 'queries');
  writeFileSync(file, `${asked.join('\n')}\n`);
  const figures = { levee: [] as number[], knot: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    figures.levee.push(await perSecond(ours, file));
    figures.knot.push(await perSecond(theirs, file));
  }
  const best = (of: readonly number[]) => Math.max(...of);
  console.table({ levee: { 'queries/s': best(figures.levee) }, knot: { 'queries/s': best(figures.knot) } });
  console.log(`ratio ${(best(figures.levee) / best(figures.knot)).toFixed(2)} (rounds: ${JSON.stringify(figures)})`);
} finally {
  await knot.stop();
  await started.dns.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** dnsperf runs beside this process, which may be the server. */
async function perSecond({ host, port }: DnsAddress, file: string): Promise<number> {
  const args = ['-s', host, '-p', String(port), '-d', file, '-l', String(seconds), '-c', '8', '-q', '200'];
  const text = await new Promise<string>((resolve, reject) => {
    execFile('dnsperf', args, (error, stdout) => (error === null ? resolve(stdout) : reject(error)));
  });
  const lost = /Queries lost:\s+(\d+)/.exec(text)?.[1];
  if (lost !== '0') console.log(`${lost} queries lost at port ${port}`);
  return Math.round(Number(/Queries per second:\s+([\d.]+)/.exec(text)?.[1]));
}
