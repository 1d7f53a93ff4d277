/**
 * Processor time to receive, decode and sum flow records against nfcapd/sfcapd, nfacctd/sfacctd and FastNetMon, fed with the same
 * datagrams at the same rate, in turns in one run; then 100 000 datagrams a second into one socket of ours. Debian packages nfdump,
 * pmacct, fastnetmon. Time is that of all threads and children, from the first datagram to a second after the last.
 *
 * npm run bench -- collect [seconds a turn = 5] [thousand records a second = 200]
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { readUdpSockets } from '@levee/detector/collect/kernel-drops.ts';
import { expectedRows } from '@levee/detector/collect/testing/expected-rows.ts';
import { readDatagrams } from '@levee/detector/decode/testing/datagram-files.ts';
import { sendDatagrams } from './collect/datagram-flood.ts';
import { type Format, type Receiver, startCapture, startOurs, startPmacct } from './collect/rivals.ts';
import { startFastnetmon } from './detection/fastnetmon.ts';

const seconds = Number(process.argv[2] ?? 5);
const recordsPerSecond = Number(process.argv[3] ?? 200) * 1000;
/** Of the kernel's accounting: CLK_TCK. */
const ticksPerSecond = 100;
const afterwardsMilliseconds = 1000;

interface Turn {
  readonly cpuPerMillion: number;
  readonly records: number;
  readonly lost: number;
}

const captures: [Format, string][] = [
  ['sflow', 'pmacct_sflow5_s16.first200.dgs'],
  ['netflow', 'softflowd_nf9_s16.first200.dgs'],
];

for (const [format, file] of captures) {
  const datagrams = readDatagrams(file);
  const { records, rows } = expectedRows(datagrams);
  const prefixes = prefixesOf([...rows.keys()].map((key) => key.split(' ')[0] ?? ''));
  const perSecond = Math.round((recordsPerSecond * datagrams.length) / records);
  const each = records / datagrams.length;
  console.log(
    `${file}: ${each.toFixed(1)} records a datagram, ${perSecond} datagrams/s, ${prefixes.length} prefixes protected`,
  );
  const receivers: [string, () => Promise<Receiver>][] = [
    ['levee', () => startOurs('recvmmsg', prefixes)],
    ['levee, node:dgram', () => startOurs('dgram', prefixes)],
    [format === 'sflow' ? 'sfcapd' : 'nfcapd', () => startCapture(format)],
    [format === 'sflow' ? 'sfacctd' : 'nfacctd', () => startPmacct(format)],
    ['fastnetmon', () => fastnetmon(format, prefixes)],
  ];
  const turns: Record<string, Turn> = {};
  for (const [name, start] of receivers) {
    const receiver = await start();
    try {
      turns[name] = await measure(receiver, datagrams, perSecond, each);
    } finally {
      await receiver.stop();
    }
  }
  const ours = turns.levee?.cpuPerMillion ?? Number.NaN;
  console.table(
    Object.fromEntries(
      Object.entries(turns).map(([name, { cpuPerMillion, records: got, lost }]) => [
        name,
        {
          'CPU s / M records': cpuPerMillion.toFixed(2),
          'times ours': (cpuPerMillion / ours).toFixed(2),
          'M records': (got / 1e6).toFixed(2),
          'datagrams lost': lost,
        },
      ]),
    ),
  );
}

const flood = readDatagrams('pmacct_sflow5_s16.first200.dgs');
const receiver = await startOurs('recvmmsg', ['203.0.113.0/24']);
try {
  const turn = await measure(receiver, flood, 100_000, expectedRows(flood).records / flood.length);
  console.log(
    `one socket, 100 000 datagrams/s wanted: ${Math.round(turn.records / 1000)} k records, ${turn.lost} datagrams lost, ` +
      `${turn.cpuPerMillion.toFixed(2)} CPU s / M records`,
  );
} finally {
  await receiver.stop();
}

/** So that all records count: the /24 of each destination, of IPv6 the /32. */
function prefixesOf(addresses: readonly string[]): string[] {
  const wide = (address: string) =>
    address.includes(':')
      ? `${address.split(':').slice(0, 2).join(':')}::/32`
      : `${address.split('.').slice(0, 3).join('.')}.0/24`;
  return [...new Set(addresses.map(wide))];
}

async function measure(
  { port, pid, daemon }: Receiver,
  datagrams: readonly Uint8Array[],
  perSecond: number,
  recordsEach: number,
): Promise<Turn> {
  // Its code is compiled, its templates are there.
  await sendDatagrams({ datagrams, port, perSecond, seconds: 1 });
  const dropsBefore = drops(port);
  const before = cpuSeconds(pid);
  const { sent, seconds: took } = await sendDatagrams({ datagrams, port, perSecond, seconds });
  await pause(afterwardsMilliseconds);
  const cpu = cpuSeconds(pid) - before;
  if (daemon?.running === false) throw new Error(`it ended:\n${daemon.output()}`);
  if (sent < perSecond * took * 0.98) console.log(`the sender managed ${Math.round(sent / took)} datagrams/s`);
  const lost = drops(port) - dropsBefore;
  const records = (sent - lost) * recordsEach;
  return { cpuPerMillion: (cpu * 1e6) / records, records, lost };
}

function drops(port: number): number {
  const sockets = [...readUdpSockets().values()].filter((socket) => socket.port === port);
  return sockets.reduce((sum, socket) => sum + socket.drops, 0);
}

/** Of a process and all below it: proc_pid_stat(5). */
function cpuSeconds(pid: number): number {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const stats = new Map(
    processes.flatMap((name) => {
      const fields = statFields(name);
      return fields === undefined ? [] : [[Number(name), fields] as const];
    }),
  );
  const below = (parent: number): number[] => {
    const children = [...stats].filter(([, { parent: of }]) => of === parent).map(([child]) => child);
    return [parent, ...children.flatMap(below)];
  };
  return below(pid).reduce((sum, each) => sum + (stats.get(each)?.ticks ?? 0), 0) / ticksPerSecond;
}

function statFields(pid: string): { parent: number; ticks: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) };
  } catch {
    return undefined; // it has just ended
  }
}

async function fastnetmon(format: Format, networks: readonly string[]): Promise<Receiver> {
  const started = await startFastnetmon({ networks, threshold: 1e9 });
  const { pid, port, netflowPort, stop } = started;
  return { port: format === 'sflow' ? port : netflowPort, pid, daemon: undefined, stop };
}
