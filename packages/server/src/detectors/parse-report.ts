/**
 * From what a detector sent to a report that can be recorded. A detector is authenticated, not trusted: everything is checked
 * and bounded here, and what is not named here goes no further. A member that cannot be read costs no other, and what proves an
 * attack never the attack: it is left out and named.
 */
import {
  type BaselineEntry,
  type DetectedAttack,
  type DetectorReport,
  type DetectorReportAnswer,
  type ExporterStatus,
  MOST_SAMPLING_RATE,
  type PacketSample,
  type SamplesAnswer,
  type Share,
  type TimelineEntry,
  type VectorProfile,
} from '@levee/contract/detector.ts';
import { LONGEST_PACKET, MOST_RATE } from '@levee/core/detection/bounds.ts';
import { vectors } from '@levee/core/detection/vector.ts';
import { formatAddress, parseAddress } from '@levee/core/net/address.ts';
import { formatPrefix, parsePrefix } from '@levee/core/net/prefix-text.ts';
import {
  counted,
  type LeaveOut,
  listOf,
  members,
  moment,
  numberFrom,
  oneOf,
  optional,
  type Read,
  Refused,
  readable,
  readableOf,
  recordOf,
  share,
  textUpTo,
  uuid,
  wholeFrom,
} from './read-value.ts';

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly field: string; readonly message: string };

const MOST_ATTACKS = 1_000;
const MOST_EXPORTERS = 4_000;
const MOST_BASELINES = 5_000;
const MOST_SAMPLES = 100;
const MOST_ENTRIES = 16;
/** Faults that are named. */
const MOST_LEFT_OUT = 100;
/** Of one answer. */
const MOST_WANTED_SAMPLES = 10_000;
/** What is new since the last report: one that waited for an hour has as many seconds. */
const MOST_TIMELINE = 5_000;
const MOST_SHARES = 64;
/** Base64 of 128 octets. */
const HEADER_CHARACTERS = 172;

const vector = oneOf(vectors);
const rate = numberFrom(0, MOST_RATE);

/** Canonical address or subnet. */
const destination: Read<string> = (value, field) => {
  const parsed = typeof value === 'string' ? parsePrefix(value) : undefined;
  if (!parsed?.ok || formatPrefix(parsed.prefix) !== value) {
    throw new Refused(field, 'must be an address or a subnet in canonical form');
  }
  return value as string;
};

const address: Read<string> = (value, field) => {
  const parsed = typeof value === 'string' ? parseAddress(value) : undefined;
  if (!parsed?.ok || formatAddress(parsed.address) !== value) {
    throw new Refused(field, 'must be an address in canonical form');
  }
  return value as string;
};

/** Leaves out what is undefined, as the types have it. */
function compact<T extends object>(value: { [Name in keyof T]: T[Name] | undefined }): T {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as T;
}

function sharesOf<T>(item: Read<T>): Read<Share<T>[]> {
  return listOf(MOST_SHARES, (value, field) => {
    const each = members(value, field);
    return { value: item(each.value, `${field}/value`), share: share(each.share, `${field}/share`) };
  });
}

const octets = sharesOf(wholeFrom(0, 255));
const ports = sharesOf(wholeFrom(0, 65_535));
const addresses = sharesOf(address);
/** IPv6 does not count its own header, and may so have a little more than measures can name. */
const packetLength: Read<number> = (value, field) => Math.min(LONGEST_PACKET, counted(value, field));

const profile: Read<VectorProfile> = (value, field) => {
  const { length: given, ...each } = members(value, field);
  const at = (name: string) => `${field}/${name}`;
  const told = members(given, at('length'));
  const length = {
    min: packetLength(told.min, at('length/min')),
    p5: packetLength(told.p5, at('length/p5')),
    max: packetLength(told.max, at('length/max')),
  };
  if (length.min > length.p5 || length.p5 > length.max) throw new Refused(at('length'), 'must be min ≤ p5 ≤ max');
  return compact<VectorProfile>({
    vector: vector(each.vector, at('vector')),
    pps: rate(each.pps, at('pps')),
    bps: rate(each.bps, at('bps')),
    peak_pps: rate(each.peak_pps, at('peak_pps')),
    peak_bps: rate(each.peak_bps, at('peak_bps')),
    baseline_pps: optional(rate)(each.baseline_pps, at('baseline_pps')),
    baseline_bps: optional(rate)(each.baseline_bps, at('baseline_bps')),
    samples: counted(each.samples, at('samples')),
    protocols: octets(each.protocols, at('protocols')),
    source_ports: ports(each.source_ports, at('source_ports')),
    destination_ports: ports(each.destination_ports, at('destination_ports')),
    icmp: ports(each.icmp, at('icmp')),
    tcp_flags: octets(each.tcp_flags, at('tcp_flags')),
    length,
    later_fragments: share(each.later_fragments, at('later_fragments')),
    sources: addresses(each.sources, at('sources')),
    distinct_sources: counted(each.distinct_sources, at('distinct_sources')),
    destinations: addresses(each.destinations, at('destinations')),
  });
};

const packetSample: Read<PacketSample> = (value, field) => {
  const each = members(value, field);
  const at = (name: string) => `${field}/${name}`;
  const { header } = each;
  if (typeof header !== 'string' || header.length > HEADER_CHARACTERS || !/^[A-Za-z0-9+/]*={0,2}$/.test(header)) {
    throw new Refused(at('header'), `must be base64 of at most ${HEADER_CHARACTERS} characters`);
  }
  return compact<PacketSample>({
    at_ms: moment(each.at_ms, at('at_ms')),
    scale: numberFrom(0, 1e12)(each.scale, at('scale')),
    exporter: textUpTo(128)(each.exporter, at('exporter')),
    input_interface: optional(wholeFrom(0, 0xffff_ffff))(each.input_interface, at('input_interface')),
    length: packetLength(each.length, at('length')),
    header,
  });
};

const rates: Read<{ pps: number; bps: number }> = (value, field) => {
  const each = members(value, field);
  return { pps: rate(each.pps, `${field}/pps`), bps: rate(each.bps, `${field}/bps`) };
};

const timelineEntry: Read<TimelineEntry> = (value, field) => {
  const each = members(value, field);
  const { seconds } = each;
  if (seconds !== 1 && seconds !== 60) throw new Refused(`${field}/seconds`, 'must be 1 or 60');
  const byVector = members(each.vectors, `${field}/vectors`);
  return {
    at_ms: moment(each.at_ms, `${field}/at_ms`),
    seconds,
    ...rates(value, field),
    vectors: Object.fromEntries(
      Object.entries(byVector).map(([name, told]) => [
        vector(name, `${field}/vectors`),
        rates(told, `${field}/vectors/${name}`),
      ]),
    ),
  };
};

const threshold: Read<DetectedAttack['threshold']> = (value, field) => {
  const each = members(value, field);
  const at = (name: string) => `${field}/${name}`;
  return compact<DetectedAttack['threshold']>({
    policy: each.policy === 'default' ? 'default' : uuid(each.policy, at('policy')),
    vector: vector(each.vector, at('vector')),
    metric: oneOf(['pps', 'bps'])(each.metric, at('metric')),
    value: rate(each.value, at('value')),
    observed: rate(each.observed, at('observed')),
    baseline: optional(rate)(each.baseline, at('baseline')),
  });
};

const entry: Read<DetectedAttack['entries'][number]> = (value, field) => {
  const each = members(value, field);
  return compact<DetectedAttack['entries'][number]>({
    exporter: textUpTo(128)(each.exporter, `${field}/exporter`),
    interface: optional(wholeFrom(0, 0xffff_ffff))(each.interface, `${field}/interface`),
    share: share(each.share, `${field}/share`),
  });
};

const attackWith =
  (leaveOut: LeaveOut): Read<DetectedAttack> =>
  (value, field) => {
    const each = members(value, field);
    const at = (name: string) => `${field}/${name}`;
    const measured = members(each.measured, at('measured'));
    return compact<DetectedAttack>({
      id: uuid(each.id, at('id')),
      dst: destination(each.dst, at('dst')),
      phase: oneOf(['started', 'changed', 'ended'])(each.phase, at('phase')),
      vectors: listOf(vectors.length, vector)(each.vectors, at('vectors')),
      started_ms: moment(each.started_ms, at('started_ms')),
      detected_ms: moment(each.detected_ms, at('detected_ms')),
      ended_ms: optional(moment)(each.ended_ms, at('ended_ms')),
      measured: { at_ms: moment(measured.at_ms, at('measured/at_ms')), ...rates(each.measured, at('measured')) },
      packets: counted(each.packets, at('packets')),
      bytes: counted(each.bytes, at('bytes')),
      sampled: counted(each.sampled, at('sampled')),
      threshold: threshold(each.threshold, at('threshold')),
      profile: readableOf(vectors.length, profile, leaveOut)(each.profile, at('profile')),
      timeline: readableOf(MOST_TIMELINE, timelineEntry, leaveOut)(each.timeline, at('timeline')),
      packet_samples: readableOf(MOST_SAMPLES, packetSample, leaveOut)(each.packet_samples, at('packet_samples')),
      entries: readableOf(MOST_ENTRIES, entry, leaveOut)(each.entries, at('entries')),
    });
  };

const exporter: Read<ExporterStatus> = (value, field) => {
  const each = members(value, field);
  const at = (name: string) => `${field}/${name}`;
  return compact<ExporterStatus>({
    collector: optional(uuid)(each.collector, at('collector')),
    uuid: optional(uuid)(each.uuid, at('uuid')),
    source: address(each.source, at('source')),
    last_seen_ms: moment(each.last_seen_ms, at('last_seen_ms')),
    protocols: listOf(8, textUpTo(32))(each.protocols, at('protocols')),
    datagrams: counted(each.datagrams, at('datagrams')),
    records: counted(each.records, at('records')),
    datagrams_per_second: rate(each.datagrams_per_second, at('datagrams_per_second')),
    records_per_second: rate(each.records_per_second, at('records_per_second')),
    templates: counted(each.templates, at('templates')),
    sampling_rate: optional(numberFrom(0, MOST_SAMPLING_RATE))(each.sampling_rate, at('sampling_rate')),
    longest_flow_s: optional(counted)(each.longest_flow_s, at('longest_flow_s')),
    dropped: recordOf(64, counted)(each.dropped, at('dropped')),
    lost: counted(each.lost, at('lost')),
  });
};

const baseline: Read<BaselineEntry> = (value, field) => {
  const each = members(value, field);
  return {
    dst: destination(each.dst, `${field}/dst`),
    vector: vector(each.vector, `${field}/vector`),
    hour: wholeFrom(0, 167)(each.hour, `${field}/hour`),
    ...rates(value, field),
    weight: numberFrom(0, 1e9)(each.weight, `${field}/weight`),
  };
};

type Status = DetectorReport['status'];

const overflow: Read<NonNullable<Status['overflow']>> = (value, field) => {
  const each = members(value, field);
  return {
    unknown_datagrams: counted(each.unknown_datagrams, `${field}/unknown_datagrams`),
    samples: counted(each.samples, `${field}/samples`),
    unspread: counted(each.unspread, `${field}/unspread`),
    unprofiled: counted(each.unprofiled, `${field}/unprofiled`),
  };
};

const bus: Read<NonNullable<Status['bus']>> = (value, field) => {
  const each = members(value, field);
  if (typeof each.connected !== 'boolean') throw new Refused(`${field}/connected`, 'must be true or false');
  return {
    connected: each.connected,
    collectors: counted(each.collectors, `${field}/collectors`),
    detectors: counted(each.detectors, `${field}/detectors`),
    partitions: wholeFrom(0, 64)(each.partitions, `${field}/partitions`),
    unsent: counted(each.unsent, `${field}/unsent`),
    malformed: counted(each.malformed, `${field}/malformed`),
  };
};

const status: Read<Status> = (value, field) => {
  const each = members(value, field);
  const at = (name: string) => `${field}/${name}`;
  return compact<Status>({
    listen: listOf(64, textUpTo(128))(each.listen, at('listen')),
    receive_buffers: listOf(256, (buffer, place) => {
      const { bytes, wanted } = members(buffer, place);
      return { bytes: counted(bytes, `${place}/bytes`), wanted: counted(wanted, `${place}/wanted`) };
    })(each.receive_buffers, at('receive_buffers')),
    kernel_drops: counted(each.kernel_drops, at('kernel_drops')),
    tracked_destinations: counted(each.tracked_destinations, at('tracked_destinations')),
    memory_bytes: counted(each.memory_bytes, at('memory_bytes')),
    refused: optional(listOf(64, textUpTo(256)))(each.refused, at('refused')),
    overflow: optional(overflow)(each.overflow, at('overflow')),
    bus: optional(bus)(each.bus, at('bus')),
  });
};

export interface ReadReport {
  /** `status`: undefined where it cannot be read. */
  readonly report: Omit<DetectorReport, 'status'> & { readonly status: DetectorReport['status'] | undefined };
  /** What was not taken of it. */
  readonly faults: DetectorReportAnswer;
}

export function parseDetectorReport(body: unknown): Parsed<ReadReport> {
  return parsed(() => {
    const each = members(body, '');
    const refused: DetectorReportAnswer['refused'] = [];
    const left: NonNullable<DetectorReportAnswer['left_out']> = [];
    const leaveOut: LeaveOut = (fault) => {
      if (left.length < MOST_LEFT_OUT) left.push({ field: fault.field, message: sentenceOf(fault) });
    };
    const attack = attackWith(leaveOut);
    const attacks = listOf(MOST_ATTACKS, (value, field) => {
      const id = uuid(members(value, field).id, `${field}/id`);
      return readable(attack, (fault) => refused.push({ id, message: sentenceOf(fault) }))(value, field);
    });
    const report = {
      run: uuid(each.run, '/run'),
      sequence: wholeFrom(0, Number.MAX_SAFE_INTEGER)(each.sequence, '/sequence'),
      attacks: attacks(each.attacks, '/attacks').filter((read) => read !== undefined),
      ...compact<Pick<DetectorReport, 'exporters' | 'baselines'>>({
        exporters: optional(readableOf(MOST_EXPORTERS, exporter, leaveOut))(each.exporters, '/exporters'),
        baselines: optional(readableOf(MOST_BASELINES, baseline, leaveOut))(each.baselines, '/baselines'),
      }),
      status: readable(status, leaveOut)(each.status, '/status'),
    };
    return { report, faults: { refused, ...(left.length > 0 && { left_out: left }) } };
  });
}

export function parseSamplesAnswer(body: unknown): Parsed<SamplesAnswer> {
  return parsed(() => {
    const each = members(body, '');
    return {
      request: uuid(each.request, '/request'),
      held: counted(each.held, '/held'),
      packets: listOf(MOST_WANTED_SAMPLES, packetSample)(each.packets, '/packets'),
    };
  });
}

function parsed<T>(read: () => T): Parsed<T> {
  try {
    return { ok: true, value: read() };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { ok: false, field: error.field, message: sentenceOf(error) };
  }
}

function sentenceOf({ field, message }: Refused): string {
  return `${field.slice(1) || 'the body'}: ${message}`;
}
