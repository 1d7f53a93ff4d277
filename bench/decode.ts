/**
 * Flow records decoded a second on one core, by format, from captures of real exporters, in CPU time: beside each what
 * reading its octets once costs, and what Debian's nfcapd or sfcapd needs for the same datagrams, which they also receive
 * and write down. Target: at least 5 million a second for sFlow and for IPFIX.
 */
import { createDecoder } from '../packages/detector/src/decode/decoder.ts';
import { readDatagrams } from '../packages/detector/src/decode/testing/datagram-files.ts';
import { emptyCounts } from '../packages/detector/src/decode/testing/decode-all.ts';
import { collectorCost } from '../packages/detector/src/decode/testing/nfdump.ts';

const formats = [
  { name: 'sFlow v5', file: 'pmacct_sflow5_s16.first200.dgs', rival: 'sfcapd', target: 5e6 },
  { name: 'IPFIX', file: 'softflowd_ipfix_s16.first200.dgs', rival: 'nfcapd', target: 5e6 },
  { name: 'NetFlow v9', file: 'softflowd_nf9_s16.first200.dgs', rival: 'nfcapd', target: 0 },
  { name: 'NetFlow v5', file: 'softflowd_nf5.first200.dgs', rival: 'nfcapd', target: 0 },
] as const;
const wantedRecords = Number(process.argv[2] ?? 6) * 1e6;
const rounds = 5;

/** Every datagram lies at a place of its own in memory larger than the caches, as those that are received do. */
function replicated(file: string): Buffer[] {
  const once = readDatagrams(file);
  const copies = Math.ceil(32e6 / once.reduce((sum, datagram) => sum + datagram.length, 0));
  return Array.from({ length: copies }, () => once.map((datagram) => Buffer.from(datagram))).flat();
}

function cpuSeconds(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

function decodeAll(datagrams: readonly Buffer[], wanted: number): { seconds: number; records: number } {
  const decoder = createDecoder();
  const counts = emptyCounts();
  let packets = 0;
  const sink = (record: { packets: number; samplingRate: number }) => {
    packets += record.packets * record.samplingRate;
  };
  const seconds = cpuSeconds(() => {
    while (counts.records < wanted) {
      for (const datagram of datagrams) decoder.decode(datagram, datagram.length, 1, 0, counts, sink);
    }
  });
  if (Object.keys(counts.dropped).length > 0 || !Number.isFinite(packets)) throw new Error('not all was decoded');
  return { seconds, records: counts.records };
}

let kept = 0;
function readOctets(datagrams: readonly Buffer[]): number {
  return cpuSeconds(() => {
    for (const datagram of datagrams) {
      let sum = 0;
      for (let at = 0; at < datagram.length; at += 1) sum += datagram[at] as number;
      kept = (kept + sum) | 0;
    }
  });
}

const table = [];
const missed: string[] = [];
for (const { name, file, rival, target } of formats) {
  const datagrams = replicated(file);
  const perPass = decodeAll(datagrams, 1).records;
  decodeAll(datagrams, wantedRecords / 4);
  readOctets(datagrams);
  let best = Number.POSITIVE_INFINITY;
  let reading = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round += 1) {
    const { seconds, records } = decodeAll(datagrams, wantedRecords);
    best = Math.min(best, seconds / records);
    reading = Math.min(reading, readOctets(datagrams) / perPass);
  }
  const theirs = await collectorCost(rival, readDatagrams(file), 40);
  table.push({
    format: name,
    'records/s': Math.round(1 / best),
    'ns a record': Math.round(best * 1e9),
    'ns to read its octets': Math.round(reading * 1e9),
    'CPU-s a million': (best * 1e6).toFixed(2),
    'of nfcapd, sfcapd': (theirs * 1e6).toFixed(2),
    ratio: (theirs / best).toFixed(1),
  });
  if (1 / best < target) missed.push(name);
}
console.log(`best of ${rounds} rounds of ${wantedRecords / 1e6} million records each, CPU time of one core`);
console.table(table);
console.log(
  `targets (≥ 5 million records/s for sFlow v5 and IPFIX): ${missed.length === 0 ? 'met' : `MISSED by ${missed}`}`,
);
