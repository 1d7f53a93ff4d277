/**
 * Owns how a slot is on the bus: its rows of one partition as a message of columns, and one message that says which partitions had any.
 * Judges what it reads: rows that are of no partition, family or vector that there is are refused with the whole message.
 */
import { TOTAL } from '@levee/core/detection/vector.ts';
import { parsePrefix } from '@levee/core/net/prefix-text.ts';
import { Malformed, Reader, Writer } from './octets.ts';
import { partitionOf, partitionOfPrefix } from './partition.ts';
import { AGGREGATE_ONLY, PARTITIONS, type SlotProfile, type SlotReport } from './port.ts';

/** What a collector had for one partition in one slot. */
export interface SlotPart {
  readonly partition: number;
  readonly report: SlotReport;
}

/** Sent behind the parts, for every slot. */
export interface SlotEnd {
  readonly collector: string;
  readonly sequence: number;
  readonly slotMs: number;
  readonly isPartial?: boolean;
  /** Whose parts were sent. */
  readonly partitions: readonly number[];
}

const mostKeys = 64;
const longestName = 128;

/** By partition, those that had rows or profiles alone; their octets are the caller's. */
export function writeSlot(report: SlotReport): Map<number, Uint8Array> {
  const { count, families, addresses } = report;
  const partitions = new Uint8Array(count);
  const counts = new Uint32Array(PARTITIONS);
  for (let row = 0; row < count; row++) {
    const family = (families[row] as number) & ~AGGREGATE_ONLY;
    const partition = partitionOf(family, addresses[row * 4] as number, addresses[row * 4 + 1] as number);
    partitions[row] = partition;
    counts[partition] = (counts[partition] as number) + 1;
  }
  const starts = new Uint32Array(PARTITIONS);
  for (let i = 1; i < PARTITIONS; i++) starts[i] = (starts[i - 1] as number) + (counts[i - 1] as number);
  const rows = new Uint32Array(count);
  const next = starts.slice();
  for (let row = 0; row < count; row++) {
    const partition = partitions[row] as number;
    const at = next[partition] as number;
    rows[at] = row;
    next[partition] = at + 1;
  }
  const profiles = profilesByPartition(report.profiles);
  const parts = new Map<number, Uint8Array>();
  const writer = new Writer();
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const own = profiles.get(partition) ?? [];
    const rowCount = counts[partition] as number;
    if (rowCount === 0 && own.length === 0) continue;
    const start = starts[partition] as number;
    writer.u8(partition);
    writeHead(writer, report);
    writeRows(writer, report, rows.subarray(start, start + rowCount));
    writer.u16(own.length);
    for (const profile of own) writeProfile(writer, profile);
    parts.set(partition, writer.take());
  }
  return parts;
}

/** Throws `Malformed`. */
export function readSlotPart(octets: Uint8Array): SlotPart {
  const reader = new Reader(octets);
  const partition = reader.u8();
  if (partition >= PARTITIONS) throw new Malformed('a partition that there is not');
  const head = readHead(reader);
  const columns = readRows(reader, partition);
  const profiles: SlotProfile[] = [];
  for (let left = reader.u16(); left > 0; left--) profiles.push(readProfile(reader, partition));
  reader.end();
  return { partition, report: { type: 'slot', ...head, ...columns, profiles } };
}

export function writeSlotEnd(end: SlotEnd): Uint8Array {
  const writer = new Writer();
  writeHead(writer, end);
  writer.u8(end.partitions.length);
  for (const partition of end.partitions) writer.u8(partition);
  return writer.take();
}

/** Throws `Malformed`. */
export function readSlotEnd(octets: Uint8Array): SlotEnd {
  const reader = new Reader(octets);
  const head = readHead(reader);
  const partitions = new Set<number>();
  for (let left = reader.u8(); left > 0; left--) partitions.add(reader.u8());
  reader.end();
  if ([...partitions].some((each) => each >= PARTITIONS)) throw new Malformed('a partition that there is not');
  return { ...head, partitions: [...partitions] };
}

type Head = Pick<SlotReport, 'collector' | 'sequence' | 'slotMs' | 'isPartial'>;

function writeHead(writer: Writer, { collector, sequence, slotMs, isPartial }: Head): void {
  writer.text(collector);
  writer.f64(sequence);
  writer.f64(slotMs);
  writer.u8(isPartial === true ? 1 : 0);
}

function readHead(reader: Reader): Head {
  const collector = reader.text();
  if (collector === '' || collector.length > longestName) throw new Malformed("a collector's name that is none");
  const head = { collector, sequence: reader.whole(), slotMs: reader.whole() };
  const partial = reader.u8();
  if (partial > 1) throw new Malformed('neither a whole slot nor a partial one');
  return partial === 1 ? { ...head, isPartial: true } : head;
}

function writeRows(writer: Writer, report: SlotReport, rows: Uint32Array): void {
  const { families, addresses, vectors, packets, bytes, samples } = report;
  writer.u32(rows.length);
  for (const row of rows) writer.u8(families[row] as number);
  for (const row of rows) {
    writer.u32(addresses[row * 4] as number);
    if (((families[row] as number) & ~AGGREGATE_ONLY) === 4) continue;
    for (let word = 1; word < 4; word++) writer.u32(addresses[row * 4 + word] as number);
  }
  for (const row of rows) writer.u8(vectors[row] as number);
  for (const column of [packets, bytes, samples]) for (const row of rows) writer.f64(column[row] as number);
}

/** One behind the other: family, address, vector, three numbers. */
const leastOctetsOfRow = 1 + 4 + 1 + 24;

function readRows(reader: Reader, partition: number): Omit<SlotReport, 'type' | keyof Head | 'profiles'> {
  const count = reader.u32();
  if (count > reader.left / leastOctetsOfRow) throw new Malformed('more rows than octets');
  const families = reader.octets(count).slice();
  const addresses = new Uint32Array(count * 4);
  for (let row = 0; row < count; row++) {
    const family = (families[row] as number) & ~AGGREGATE_ONLY;
    if (family !== 4 && family !== 6) throw new Malformed('a family that there is not');
    for (let word = 0; word < (family === 4 ? 1 : 4); word++) addresses[row * 4 + word] = reader.u32();
    const at = partitionOf(family, addresses[row * 4] as number, addresses[row * 4 + 1] as number);
    if (at !== partition) throw new Malformed('a row of another partition');
  }
  const vectors = reader.octets(count).slice();
  if (vectors.some((vector) => vector >= TOTAL)) throw new Malformed('a vector that there is not');
  const column = (): Float64Array => {
    const values = new Float64Array(count);
    for (let row = 0; row < count; row++) values[row] = reader.amount();
    return values;
  };
  return { count, families, addresses, vectors, packets: column(), bytes: column(), samples: column() };
}

function profilesByPartition(profiles: readonly SlotProfile[]): Map<number, SlotProfile[]> {
  const parts = new Map<number, SlotProfile[]>();
  for (const profile of profiles) {
    const read = parsePrefix(profile.dst);
    if (!read.ok) continue;
    const partition = partitionOfPrefix(read.prefix);
    const part = parts.get(partition);
    if (part === undefined) parts.set(partition, [profile]);
    else part.push(profile);
  }
  return parts;
}

const numberLists = ['protocols', 'sourcePorts', 'destinationPorts', 'icmp', 'tcpFlags', 'lengths'] as const;
const amounts = ['samples', 'shortest', 'longest', 'laterFragments', 'distinctSources'] as const;

function writeProfile(writer: Writer, profile: SlotProfile): void {
  writer.text(profile.dst);
  writer.u8(profile.vector);
  for (const name of amounts) writer.f64(profile[name]);
  for (const name of numberLists) {
    const list = profile[name].slice(0, mostKeys);
    writer.u8(list.length);
    for (const [key, samples] of list) {
      writer.u32(key);
      writer.f64(samples);
    }
  }
  for (const list of [profile.sources, profile.entries]) {
    writer.u8(Math.min(list.length, mostKeys));
    for (const [key, samples] of list.slice(0, mostKeys)) {
      writer.text(key);
      writer.f64(samples);
    }
  }
}

function readProfile(reader: Reader, partition: number): SlotProfile {
  const dst = reader.text();
  const read = parsePrefix(dst);
  if (!read.ok || partitionOfPrefix(read.prefix) !== partition) throw new Malformed('a profile of another partition');
  const vector = reader.u8();
  if (vector >= TOTAL) throw new Malformed('a vector that there is not');
  const [samples = 0, shortest = 0, longest = 0, laterFragments = 0, distinctSources = 0] = amounts.map(() =>
    reader.amount(),
  );
  const listOf = <K>(key: () => K): (readonly [K, number])[] => {
    const count = reader.u8();
    if (count > mostKeys) throw new Malformed('a longer list than any');
    const list: (readonly [K, number])[] = [];
    for (let left = count; left > 0; left--) list.push([key(), reader.amount()]);
    return list;
  };
  const numbers = () => listOf(() => reader.u32());
  const texts = () => listOf(() => reader.text());
  return {
    dst,
    vector,
    samples,
    shortest,
    longest,
    laterFragments,
    distinctSources,
    protocols: numbers(),
    sourcePorts: numbers(),
    destinationPorts: numbers(),
    icmp: numbers(),
    tcpFlags: numbers(),
    lengths: numbers(),
    sources: texts(),
    entries: texts(),
  };
}
