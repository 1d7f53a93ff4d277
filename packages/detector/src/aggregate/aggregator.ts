/**
 * Owns what becomes of a record: whether it counts, how much it stands for, and in which sums, profiles and samples it is. One for each
 * worker. Nothing is allocated for a record. Never reads a clock, never knows a socket: slots begin and end when it is told to.
 */
import type { PacketSample } from '@levee/contract/detector.ts';
import { classify } from '@levee/core/detection/vector.ts';
import { parsePrefix } from '@levee/core/net/prefix-text.ts';
import type { SlotReport } from '../bus/port.ts';
import type { FlowRecord } from '../flow-record.ts';
import { addressText } from './address-words.ts';
import { HotSet } from './hot-set.ts';
import { Profiles } from './profiles.ts';
import { ProtectedSpace } from './protected-space.ts';
import { SampleStore } from './sample-store.ts';
import { IPV6_TAG, SlotTable } from './slot-table.ts';
import { SpreadFlows } from './spread.ts';

/** Of the exporter whose datagram is being decoded. */
export interface RecordOrigin {
  readonly number: number;
  /** The exporter's uuid, or `local`. */
  readonly name: string;
  /** What one exported packet stands for; 0: what the records tell. */
  readonly fixedScale: number;
  /** Whether its flow records are multiplied by the sampling rate already. */
  readonly isPrescaled: boolean;
  /** Ingress interfaces that count; undefined: all. */
  readonly interfaces: ReadonlySet<number> | undefined;
  /** The sampling rate that a record told last; 0: none did. */
  toldRate: number;
  otherInterface: number;
  notProtected: number;
  /** Records that told more than any line carries. */
  absurd: number;
  /** Flow records of which only a part counts, as they lasted longer than flows are spread. */
  tooLong: number;
  /** Of its flow records lately. */
  longestFlowMilliseconds: number;
}

export interface AggregatorOptions {
  /** For recent samples. */
  readonly sampleOctets: number;
  /** 0 … 1, 1 excluded; absent: JavaScript's. */
  readonly random?: () => number;
}

const noOrigin: RecordOrigin = {
  number: -1,
  name: '',
  fixedScale: 1,
  isPrescaled: false,
  interfaces: undefined,
  toldRate: 0,
  otherInterface: 0,
  notProtected: 0,
  absurd: 0,
  tooLong: 0,
  longestFlowMilliseconds: 0,
};
/**
 * What no line carries: 8.8 Tbit/s of one flow, and its packets at 64 octets each. In less than a second there may be a second's worth,
 * as exporters have times of whole seconds.
 */
const mostOctetsInSecond = 2 ** 40;
const mostPacketsInSecond = 2 ** 34;
const mostUnprofiled = 2 ** 30;
/** Of a destination and vector so many samples a slot are offered to be kept; of more, ever fewer. */
const offeredInSlot = 8;
const nowhere = (): void => undefined;

export class Aggregator {
  /** Set before datagrams are decoded. */
  origin: RecordOrigin = noOrigin;
  /** When they arrived. */
  nowMs = 0;
  readonly #slots: SlotTable;
  readonly #spread = new SpreadFlows();
  readonly #hot = new HotSet();
  readonly #profiles: Profiles;
  readonly #samples: SampleStore;
  readonly #random: () => number;
  #space = new ProtectedSpace([]);

  constructor({ sampleOctets, random = Math.random }: AggregatorOptions) {
    this.#random = random;
    this.#profiles = new Profiles(random);
    this.#samples = new SampleStore(sampleOctets, random);
    this.#slots = new SlotTable((row) => this.#findProfiles(row));
  }

  /** Only traffic to these is looked at from now on. What has a rate in others still ends by itself. */
  protect(prefixes: readonly string[]): void {
    this.#space = new ProtectedSpace(prefixes);
  }

  /** From now on, also in the slot that is going on. */
  setHot(detector: string, destinations: readonly string[]): void {
    this.#hot.tell(detector, destinations);
    for (let row = 0; row < this.#slots.keys.used; row++) this.#findProfiles(row);
  }

  get overflow(): { readonly samples: number; readonly unspread: number; readonly unprofiled: number } {
    return {
      samples: this.#slots.lostSamples,
      unspread: this.#spread.unspread,
      unprofiled: this.#profiles.unprofiled,
    };
  }

  /** The decoder's sink: a bound function, so that it can be handed over once. */
  readonly record = (record: FlowRecord): void => {
    const { origin } = this;
    if (record.samplingRate > 0) origin.toldRate = record.samplingRate;
    if (origin.interfaces !== undefined && !origin.interfaces.has(record.inputInterface)) {
      origin.otherInterface++;
      return;
    }
    const { destination0, destination1, destination2, destination3 } = record;
    const isIpv4 = record.family === 4;
    const isProtected = isIpv4
      ? this.#space.hasIpv4(destination0)
      : this.#space.hasIpv6(destination0, destination1, destination2, destination3);
    if (!isProtected) {
      origin.notProtected++;
      return;
    }
    const scale = origin.fixedScale > 0 ? origin.fixedScale : record.samplingRate > 0 ? record.samplingRate : 1;
    const vector = classify(record.protocol, record.sourcePort, record.tcpFlags, record.fragment !== 0, record.isFlow);
    const tag = isIpv4 ? vector : vector + IPV6_TAG;
    const packets = record.packets * scale;
    const bytes = record.bytes * scale;
    const { durationMilliseconds } = record;
    const seconds = durationMilliseconds > 1000 ? durationMilliseconds / 1000 : 1;
    if (!(bytes <= mostOctetsInSecond * seconds && packets <= mostPacketsInSecond * seconds)) {
      origin.absurd++;
      return;
    }
    const samples = origin.isPrescaled && record.isFlow ? prescaledSamples(record, origin.toldRate) : record.packets;
    if (record.isFlow && durationMilliseconds > 0) {
      if (durationMilliseconds > origin.longestFlowMilliseconds) origin.longestFlowMilliseconds = durationMilliseconds;
      const spreading = this.#spread.add(
        destination0,
        destination1,
        destination2,
        destination3,
        tag,
        packets,
        bytes,
        samples,
        durationMilliseconds,
        this.#addToSlot,
      );
      if (spreading === 'refused') {
        origin.absurd++;
        return;
      }
      if (spreading === 'cut') origin.tooLong++;
      if (this.#hot.size > 0) this.#profileFlow(record, tag, samples);
      return;
    }
    const row = this.#slots.add(destination0, destination1, destination2, destination3, tag, packets, bytes, samples);
    if (row < 0) return;
    this.#profile(row, record, samples);
    if (record.header === undefined) return;
    const count = ((this.#slots.records[row] as number) + 1) | 0;
    this.#slots.records[row] = count;
    if (count > offeredInSlot && this.#random() * count >= offeredInSlot) return;
    const { family } = record;
    this.#samples.offer(
      destination0,
      destination1,
      destination2,
      destination3,
      family,
      record,
      scale,
      origin.number,
      this.nowMs,
      this.#slots.profiles[row] !== 0 || this.#slots.subnetProfiles[row] !== 0,
    );
  };

  /** So many slots pass of which nobody is told. */
  skip(slots: number): void {
    for (let i = 0; i < slots; i++) this.#spread.nextSlot(nowhere);
  }

  /** What the slot came to; the next one begins. `exporterName`: by number, for profiles. */
  endSlot(slotMs: number, collector: string, sequence: number, exporterName: (number: number) => string): SlotReport {
    const profiles = this.#profiles.take(exporterName);
    const report: SlotReport = { type: 'slot', collector, sequence, slotMs, ...this.#slots.take(), profiles };
    this.#spread.nextSlot(this.#addToSlot);
    this.#samples.endSlot(this.nowMs);
    return report;
  }

  /** `dst`: an address or a subnet; what is neither has no samples. */
  collectSamples(
    dst: string,
    sinceMs: number,
    most: number,
    exporterName: (number: number) => string,
  ): { held: number; packets: PacketSample[] } {
    const parsed = parsePrefix(dst);
    if (!parsed.ok) return { held: 0, packets: [] };
    const { held, samples } = this.#samples.collect(parsed.prefix, sinceMs, this.nowMs, most);
    const packets = samples.map(({ atMs, scale, exporter, inputInterface, length, header }): PacketSample => {
      const encoded = Buffer.from(header.buffer, header.byteOffset, header.length).toString('base64');
      const sample: PacketSample = { at_ms: atMs, scale, exporter: exporterName(exporter), length, header: encoded };
      if (inputInterface >= 0) sample.input_interface = inputInterface;
      return sample;
    });
    return { held, packets };
  }

  readonly #addToSlot = (
    a: number,
    b: number,
    c: number,
    d: number,
    tag: number,
    packets: number,
    bytes: number,
    samples: number,
  ): number => this.#slots.add(a, b, c, d, tag, packets, bytes, samples);

  /** The flow is in its slot's row by now, unless that is full. */
  #profileFlow(record: FlowRecord, tag: number, samples: number): void {
    const { destination0, destination1, destination2, destination3 } = record;
    const row = this.#slots.keys.find(destination0, destination1, destination2, destination3, tag);
    if (row >= 0) this.#profile(row, record, samples);
  }

  #profile(row: number, record: FlowRecord, samples: number): void {
    const { profiles, subnetProfiles } = this.#slots;
    let own = profiles[row] as number;
    let subnet = subnetProfiles[row] as number;
    if (own === 0 && subnet === 0) return;
    if (own !== 0 && !this.#profiles.has(own)) own = profiles[row] = this.#claim(row, own, samples, false);
    if (subnet !== 0 && !this.#profiles.has(subnet)) {
      subnet = subnetProfiles[row] = this.#claim(row, subnet, samples, true);
    }
    if (own < 0 || subnet < 0) this.#profiles.unprofiled++;
    if (own > 0) this.#profiles.add(own, record, samples, this.origin.number);
    if (subnet > 0) this.#profiles.add(subnet, record, samples, this.origin.number);
  }

  /**
   * A hot row without a profile keeps how many samples it had so far, below zero, and asks for one whenever they have doubled: the
   * lightest gives way. So no number of destinations with a sample each keeps a flood from having one.
   */
  #claim(row: number, reference: number, samples: number, isSubnet: boolean): number {
    const before = reference < 0 ? -reference - 1 : 0;
    const now = Math.min(before + samples, mostUnprofiled);
    if (Math.clz32(before) !== Math.clz32(now) && this.#profiles.isLighterThan(now)) {
      const { words, tags } = this.#slots.keys;
      const tag = tags[row] as number;
      const family = tag < IPV6_TAG ? 4 : 6;
      const [a = 0, b = 0, c = 0, d = 0] = words.subarray(row * 4, row * 4 + 4);
      const dst = isSubnet ? this.#hot.text(this.#hot.subnet(family, a, b, c, d)) : addressText(family, a, b, c, d);
      return this.#profiles.replaceLightest(dst, tag & (IPV6_TAG - 1), before);
    }
    return -now - 1;
  }

  /** Sets a row's profiles: their reference, 0 where it is not hot, below 0 where there was no room. */
  #findProfiles(row: number): void {
    const { keys, profiles, subnetProfiles } = this.#slots;
    profiles[row] = 0;
    subnetProfiles[row] = 0;
    if (this.#hot.size === 0) return;
    const { words, tags } = keys;
    const tag = tags[row] as number;
    const family = tag < IPV6_TAG ? 4 : 6;
    const a = words[row * 4] as number;
    const b = words[row * 4 + 1] as number;
    const c = words[row * 4 + 2] as number;
    const d = words[row * 4 + 3] as number;
    const vector = tag & (IPV6_TAG - 1);
    const own = this.#hot.address(family, a, b, c, d);
    if (own >= 0) profiles[row] = this.#profiles.open(addressText(family, a, b, c, d), vector);
    const subnet = this.#hot.subnet(family, a, b, c, d);
    if (subnet >= 0) subnetProfiles[row] = this.#profiles.open(this.#hot.text(subnet), vector);
  }
}

/**
 * Packets that such a record was made of: by the rate that was told, and where none was, one, as nothing says that there were more. Nor does
 * a rate of 1: exporters tell it of counts that are multiplied.
 */
function prescaledSamples({ packets, samplingRate }: FlowRecord, toldRate: number): number {
  const rate = samplingRate > 1 ? samplingRate : toldRate;
  return Math.min(packets, rate > 1 ? Math.max(1, Math.round(packets / rate)) : 1);
}
