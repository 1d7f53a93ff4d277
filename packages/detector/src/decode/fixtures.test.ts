/** The captures of real exporters, read by the decoder and by Debian's collectors in the same test, flow by flow. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { createDecoder } from './decoder.ts';
import { readDatagrams } from './testing/datagram-files.ts';
import { copyRecord, decodeAll, emptyCounts, type ReadRecord } from './testing/decode-all.ts';
import { collectWith, type NfdumpFlow } from './testing/nfdump.ts';

const names: Readonly<Record<number, string>> = { 1: 'ICMP', 6: 'TCP', 17: 'UDP', 47: 'GRE', 50: 'ESP', 58: 'ICMP6' };

function flagText(flags: number): string {
  return [...'CEUAPRSF'].map((letter, index) => ((flags & (128 >> index)) === 0 ? '.' : letter)).join('');
}

/** As nfdump writes a record: ICMP's type and code in place of the port. */
function ourLine(record: ReadRecord, wrong?: Capture['wrong']): string {
  const { source, destination, protocol, sourcePort, packets, bytes } = record;
  const port = record.icmp < 0 ? record.destinationPort : record.icmp;
  const flags = wrong === 'flags' ? '' : flagText(record.tcpFlags);
  const interfaces = `${record.inputInterface} ${record.outputInterface}`;
  const seconds = wrong === 'seconds' ? '' : (record.durationMilliseconds / 1000).toFixed(3);
  return `${source} ${sourcePort} ${destination} ${port} ${names[protocol] ?? protocol} ${flags} ${packets} ${bytes} ${interfaces} ${seconds}`;
}

function theirLine(flow: NfdumpFlow, wrong?: Capture['wrong']): string {
  const { source, destination, sourcePort, destinationPort, protocol, packets, bytes } = flow;
  const seconds = wrong === 'seconds' ? '' : flow.seconds.toFixed(3);
  const flags = wrong === 'flags' ? '' : flow.flags;
  return `${source} ${sourcePort} ${destination} ${destinationPort} ${protocol} ${flags} ${packets} ${bytes} ${flow.input} ${flow.output} ${seconds}`;
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

interface Capture {
  readonly file: string;
  readonly flows: number;
  readonly packets: number;
  readonly bytes: number;
  /** As the exporter told it; nfcapd does not apply what options told. */
  readonly samplingRate: number;
  /**
   * What nfcapd 1.7.1 reads wrongly, and is not compared. `flags`: those of the reverse direction (RFC 5103, an enterprise's element 6)
   * taken for the flow's. `seconds`: of IPFIX's uptimes the later taken for the earlier, so that time runs backwards; the same
   * traffic's times are compared by NetFlow v9.
   */
  readonly wrong?: 'flags' | 'seconds';
}

const captures: readonly Capture[] = [
  { file: 'ovs_nf5.first200.dgs', flows: 5984, packets: 5985, bytes: 5_102_558, samplingRate: 0 },
  { file: 'pmacct_nf5.first200.dgs', flows: 5787, packets: 5787, bytes: 4_755_199, samplingRate: 0 },
  { file: 'softflowd_nf5.first200.dgs', flows: 5787, packets: 5787, bytes: 4_755_199, samplingRate: 0 },
  { file: 'pmacct_nf9.first200.dgs', flows: 1479, packets: 1479, bytes: 1_270_009, samplingRate: 16 },
  { file: 'softflowd_nf9_s16.first200.dgs', flows: 5796, packets: 5845, bytes: 3_804_528, samplingRate: 16 },
  {
    file: 'softflowd_ipfix_s16.first200.dgs',
    flows: 5796,
    packets: 5845,
    bytes: 3_804_528,
    samplingRate: 16,
    wrong: 'seconds',
  },
  { file: 'pmacct_ipfix_s8.dgs', flows: 1043, packets: 1043, bytes: 490_012, samplingRate: 8 },
  { file: 'softflowd_ipfix_bi.dgs', flows: 1204, packets: 1204, bytes: 502_602, samplingRate: 1, wrong: 'flags' },
];

for (const { file, flows, packets, bytes, samplingRate, wrong } of captures) {
  const rate = samplingRate === 0 ? 'tells no sampling' : `tells 1:${samplingRate}, which nfcapd does not apply`;
  test(`${file}: every flow is what nfcapd reads; the exporter ${rate}`, async () => {
    const datagrams = readDatagrams(file);
    const theirs = await collectWith('nfcapd', datagrams);
    const { records, counts } = decodeAll(datagrams);
    assert.deepEqual([...new Set(records.map((record) => record.samplingRate))], [samplingRate]);
    assert.deepEqual([counts.dropped, counts.lost], [{}, 0]);
    for (const side of [records, theirs]) {
      assert.deepEqual(
        [side.length, sum(side.map((each) => each.packets)), sum(side.map((each) => each.bytes))],
        [flows, packets, bytes],
      );
    }
    assert.deepEqual(
      records.map((record) => ourLine(record, wrong)).sort(),
      theirs.map((flow) => theirLine(flow, wrong)).sort(),
    );
  });
}

/** The frame's length as the sample told it, found from the IP header backwards. */
function frameOctets(datagram: Uint8Array, ipStart: number): number {
  const view = new DataView(datagram.buffer, datagram.byteOffset);
  let tags = 0;
  while ([0x8100, 0x88a8].includes(view.getUint16(ipStart - 6 - 4 * tags))) tags += 1;
  return view.getUint32(ipStart - 14 - 4 * tags - 12);
}

/** sfcapd has ICMP's type and code in the two ports, and nfdump writes them as they are. */
function icmpInOne(flow: NfdumpFlow): NfdumpFlow {
  if (flow.protocol !== 'ICMP') return flow;
  return { ...flow, sourcePort: 0, destinationPort: flow.sourcePort * 256 + flow.destinationPort };
}

for (const { file, flows, packets, bytes } of [
  { file: 'pmacct_sflow5_s16.first200.dgs', flows: 1195, packets: 19_120, bytes: 17_792_736 },
  { file: 'pmacct_sflow5_vlan.dgs', flows: 389, packets: 1556, bytes: 636_888 },
]) {
  test(`${file}: every sample is what sfcapd reads, scaled as it scales, but with the packet's length where it has the frame's`, async () => {
    const datagrams = readDatagrams(file);
    const theirs = await collectWith('sfcapd', datagrams);
    const counts = emptyCounts();
    const decoder = createDecoder();
    const ours: string[] = [];
    const totals = { flows: 0, packets: 0, bytes: 0 };
    for (const datagram of datagrams) {
      decoder.decode(datagram, datagram.length, 1, 0, counts, (record) => {
        const { samplingRate, headerStart } = record;
        totals.flows += 1;
        totals.packets += record.packets * samplingRate;
        totals.bytes += record.bytes * samplingRate;
        const asTheirs = copyRecord(record);
        asTheirs.packets *= samplingRate;
        asTheirs.bytes = frameOctets(datagram, headerStart) * samplingRate;
        asTheirs.inputInterface = 0x3fffffff;
        asTheirs.outputInterface = 0x3fffffff;
        // sfcapd reads no types of ICMPv6.
        if (record.protocol === 58) asTheirs.icmp = 0;
        ours.push(ourLine(asTheirs));
      });
    }
    assert.deepEqual([counts.dropped, counts.lost], [{}, 0]);
    assert.deepEqual(totals, { flows, packets, bytes });
    assert.deepEqual(ours.sort(), theirs.map((flow) => theirLine(icmpInOne(flow))).sort());
  });
}

test('softflowd_psamp.dgs: every packet is what tcpdump reads of its header; nfcapd reads no PSAMP at all', async () => {
  const datagrams = readDatagrams('softflowd_psamp.dgs');
  assert.deepEqual(await collectWith('nfcapd', datagrams), []);
  const { records, counts } = decodeAll(datagrams);
  assert.deepEqual([counts.dropped, counts.lost], [{}, 0]);
  assert.equal(records.length, 66);
  for (const { isFlow, packets } of records) assert.deepEqual([isFlow, packets], [false, 1]);
  assert.deepEqual(records.map(tcpdumpLine), readByTcpdump(records.map(({ header }) => header as Buffer)));
});

/** What tcpdump begins its line with, and how much of the packet it misses: ports only where they follow the IP header at once. */
function tcpdumpLine(record: ReadRecord): string {
  const { family, source, destination, sourcePort, destinationPort, fragment, bytes } = record;
  const header = record.header ?? Buffer.alloc(0);
  const next = header[family === 4 ? 9 : 6];
  const hasPorts = (next === 6 || next === 17) && fragment !== 2;
  const ports = hasPorts ? [`.${sourcePort}`, `.${destinationPort}`] : ['', ''];
  return `${family === 4 ? 'IP' : 'IP6'} ${source}${ports[0]} > ${destination}${ports[1]}, ${bytes - header.length} more`;
}

function readByTcpdump(packets: readonly Buffer[]): string[] {
  const parts: Buffer[] = [Buffer.from('d4c3b2a1020004000000000000000000ffff000065000000', 'hex')];
  for (const packet of packets) {
    const head = Buffer.alloc(16);
    head.writeUInt32LE(packet.length, 8);
    head.writeUInt32LE(packet.length, 12);
    parts.push(head, packet);
  }
  const text = execFileSync('tcpdump', ['-nn', '-q', '-t', '-r', '-'], {
    input: Buffer.concat(parts),
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const match = /^(IP6?) (?:truncated-ip6? - (\d+) bytes missing! ?)?(\S+) > (\S+): /.exec(line);
      const [, ip, missing = '0', source, destination] = match ?? [];
      return match === null ? line : `${ip} ${source} > ${destination}, ${missing} more`;
    });
}
