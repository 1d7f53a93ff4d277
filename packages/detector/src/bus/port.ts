/**
 * What collectors and detectors say to each other, and by what. In one process it is a message port, between machines
 * NATS (`nats.ts`); neither end can tell. Raw flows never cross it: only sums of a slot, profiles of destinations that a
 * detector asked about, and samples on request.
 */
import type { DetectorSettings, ExporterStatus, PacketSample } from '@levee/contract/detector.ts';

export const SLOT_MILLISECONDS = 250;

/** Destinations are spread over so many shares by their /24 (IPv6: /64), so that an aggregate is never divided. */
export const PARTITIONS = 64;

/**
 * Added to a row's family: its address is the /24 (IPv6: /64) itself, and what it tells counts for that aggregate alone. So a
 * collector tells of addresses of which there are too many to tell of each.
 */
export const AGGREGATE_ONLY = 64;

/**
 * The sums of one slot at one collector: columns, one row for each destination and vector that had traffic. Sent for every slot,
 * also an empty one. Where the collector's clock was set back, a moment comes twice, with another sequence.
 */
export interface SlotReport {
  readonly type: 'slot';
  /** Unique among those that run, for each worker. */
  readonly collector: string;
  readonly sequence: number;
  /** Its start by the collector's clock, a multiple of the slot's length. */
  readonly slotMs: number;
  /** The collector stood still in it: not all that came was seen. Nothing is over by it, and nothing usual. Absent: it is whole. */
  readonly isPartial?: boolean;
  readonly count: number;
  /** 4 or 6, or one of them + `AGGREGATE_ONLY`. */
  readonly families: Uint8Array;
  /** Four words a row; IPv4 has the first alone. */
  readonly addresses: Uint32Array;
  /** Core's vector numbers; never `total`. */
  readonly vectors: Uint8Array;
  /** Scaled. */
  readonly packets: Float64Array;
  readonly bytes: Float64Array;
  /** Sampled packets that it was made of, not scaled. */
  readonly samples: Float64Array;
  /** Of hot destinations that had traffic in it. */
  readonly profiles: readonly SlotProfile[];
}

/** What the packets of one destination and vector looked like in one slot; keys with the most weight, at most 64 each. */
export interface SlotProfile {
  /** An address, or the hot subnet of whose addresses it is all together. */
  readonly dst: string;
  readonly vector: number;
  readonly samples: number;
  /** `[key, samples]`; a key is a number, an address's text, or `exporter uuid/interface`. */
  readonly protocols: readonly (readonly [number, number])[];
  readonly sourcePorts: readonly (readonly [number, number])[];
  readonly destinationPorts: readonly (readonly [number, number])[];
  readonly icmp: readonly (readonly [number, number])[];
  readonly tcpFlags: readonly (readonly [number, number])[];
  /** By length / 16, rounded down. */
  readonly lengths: readonly (readonly [number, number])[];
  readonly shortest: number;
  readonly longest: number;
  readonly laterFragments: number;
  readonly sources: readonly (readonly [string, number])[];
  readonly distinctSources: number;
  readonly entries: readonly (readonly [string, number])[];
}

export interface CollectorStatus {
  readonly type: 'status';
  readonly collector: string;
  /** Of this run of a whole collector: two that speak by one name at the same time are known by it. */
  readonly run?: string;
  /** Of the settings that it goes by; 0: it has none yet. */
  readonly settingsRevision: number;
  readonly exporters: readonly ExporterStatus[];
  readonly receiveBuffer: { readonly bytes: number; readonly wanted: number };
  readonly kernelDrops: number;
  /** What a bound kept out, since the worker's start. */
  readonly overflow: {
    /** Datagrams of unknown sources beyond those that are told one by one. */
    readonly unknownDatagrams: number;
    /** Sampled packets that are in no row, not even of their aggregate. */
    readonly samples: number;
    /** Records of long flows that count for the slot in which they came. */
    readonly unspread: number;
    /** Records of hot destinations that are in no profile. */
    readonly unprofiled: number;
  };
  /** Of a whole collector, where it speaks for its workers: where it listens, and a sentence for each address where it cannot. */
  readonly listening?: readonly string[];
  readonly refused?: readonly string[];
  /** Messages that it could not send, since its start: NATS was away, or did not take as much. */
  readonly unsent?: number;
}

export interface CollectedSamples {
  readonly type: 'samples';
  readonly collector: string;
  readonly request: string;
  readonly held: number;
  readonly packets: readonly PacketSample[];
}

export type FromCollector = SlotReport | CollectorStatus | CollectedSamples;

export type ToCollector =
  | { readonly type: 'settings'; readonly settings: DetectorSettings }
  /** Destinations (addresses or subnets) that are to be profiled from now on, instead of this detector's before: at most 4 096. */
  | { readonly type: 'hot'; readonly detector: string; readonly destinations: readonly string[] }
  | {
      readonly type: 'samples_wanted';
      readonly request: string;
      readonly dst: string;
      readonly sinceMs: number;
      readonly most: number;
    };

/** The detector's end. */
export interface DetectorBus {
  send(message: ToCollector): void;
  /** Of the partitions that are ours; in one process all. */
  onMessage(heard: (message: FromCollector) => void): void;
  close(): Promise<void>;
}

/** The collector's end. */
export interface CollectorBus {
  send(message: FromCollector): void;
  onMessage(heard: (message: ToCollector) => void): void;
  close(): Promise<void>;
}
