/**
 * The messages between the control plane and a detector (`/detector/v1/…`), as types. Owns their shape only: how they
 * are sent, checked or stored belongs to the two ends. Not part of the public interface. Authenticated by a detector's
 * key in `authorization: Bearer`.
 *
 * `GET stream` never ends; one JSON value a line (`DetectorStreamMessage`): `hello`, then `settings` whole at once and again whenever
 * something in it is another, `samples_wanted` when somebody asks, and a heartbeat. `POST report` takes a `DetectorReport`,
 * `POST samples` a `SamplesAnswer`. Times are milliseconds since 1970.
 */

/** What one packet can stand for at most: as told by an exporter, set for one, and reported. */
export const MOST_SAMPLING_RATE = 16_777_216;

export interface DetectorHello {
  type: 'hello';
  detector: { uuid: string; name: string };
  heartbeat_s: number;
}

export interface RateLimits {
  pps?: number;
  bps?: number;
}

/** What a policy says that a detector needs; a vector that is absent takes it from the next wider policy. */
export interface DetectionPolicySettings {
  uuid: string;
  /** Canonical subnets that it is for: of one prefix or address, all of an account's, or none for the installation's. */
  subnets: string[];
  /** 0 installation, 1 provider, 2 user, 3 subnet: of policies for equally long subnets the higher wins. */
  rank: number;
  /** By vector's name. */
  thresholds: Record<string, RateLimits>;
  /** For all addresses of a /24 (IPv6: /64) together, where only together they are attacked. Absent: see core's policy.ts. */
  aggregate_thresholds?: Record<string, RateLimits>;
  /** Below half the threshold for so long: it has ended. */
  hold_s: number;
  /** How many times its baseline a rate must exceed besides the threshold. */
  baseline_factor: number;
}

export interface ExporterSettings {
  uuid: string;
  name: string;
  source: string;
  sampling: 'auto' | 'prescaled' | number;
  /** Ingress interfaces that are counted; absent: all. */
  interfaces?: number[];
}

/** An attack of this installation's detectors that goes on: whoever detects now takes it over. */
export interface OngoingAttack {
  id: string;
  dst: string;
  vectors: string[];
  started_ms: number;
  detected_ms: number;
  /** As last told: whoever takes it over counts on from there. Absent: it counts from nothing. */
  told?: Pick<DetectedAttack, 'packets' | 'bytes' | 'sampled' | 'threshold'>;
}

export interface BaselineEntry {
  dst: string;
  vector: string;
  /** 0 … 167, from Monday 00:00 UTC. */
  hour: number;
  pps: number;
  bps: number;
  /** Hours that have gone into it. */
  weight: number;
}

export interface DetectorSettings {
  type: 'settings';
  /** Rises with each change. */
  revision: number;
  /** Canonical; only traffic to these is looked at. */
  prefixes: string[];
  policies: DetectionPolicySettings[];
  exporters: ExporterSettings[];
  ongoing: OngoingAttack[];
}

/** Sent before the first `settings` only. */
export interface DetectorBaselines {
  type: 'baselines';
  entries: BaselineEntry[];
}

export interface SamplesWanted {
  type: 'samples_wanted';
  request: string;
  /** An address or a subnet. */
  dst: string;
  seconds: number;
  most: number;
}

export interface DetectorHeartbeat {
  type: 'heartbeat';
}

export type DetectorStreamMessage =
  | DetectorHello
  | DetectorBaselines
  | DetectorSettings
  | SamplesWanted
  | DetectorHeartbeat;

/** A value and its part of the packets, 0 … 1. */
export interface Share<T> {
  value: T;
  share: number;
}

/** What the packets of one vector of an attack look like, from samples; shares are of this vector's packets, highest first. */
export interface VectorProfile {
  vector: string;
  /** Last measured, and the highest so far. */
  pps: number;
  bps: number;
  peak_pps: number;
  peak_bps: number;
  /** What is usual of this vector at this hour, by what was learned of the destination. Absent: it is not known; 0: none is. */
  baseline_pps?: number;
  baseline_bps?: number;
  /** Samples that the profile was made of. */
  samples: number;
  protocols: Share<number>[];
  source_ports: Share<number>[];
  destination_ports: Share<number>[];
  /** `[type, code]` as type × 256 + code. */
  icmp: Share<number>[];
  tcp_flags: Share<number>[];
  /** IP total length. `p5`: at most 5 % are shorter. */
  length: { min: number; p5: number; max: number };
  /** Of packets that are fragments but not the first. */
  later_fragments: number;
  /** At most 64. */
  sources: Share<string>[];
  /** About how many sources there were among the samples: near `samples`, they are forged or very many. */
  distinct_sources: number;
  /** Destinations, where the attack is on a subnet; at most 64. */
  destinations: Share<string>[];
}

/** One packet as an exporter sampled it, from its IP header on. */
export interface PacketSample {
  at_ms: number;
  /** How many packets it stands for. */
  scale: number;
  exporter: string;
  input_interface?: number;
  /** IP total length of the packet as it was. */
  length: number;
  /** Base64, at most 128 octets. */
  header: string;
}

export interface TimelineEntry {
  at_ms: number;
  seconds: 1 | 60;
  pps: number;
  bps: number;
  vectors: Record<string, { pps: number; bps: number }>;
}

export interface DetectedAttack {
  /** The detector's own name for it: a uuid, given at the start and kept to the end. */
  id: string;
  /** Canonical address; a subnet where its addresses are attacked together. */
  dst: string;
  phase: 'started' | 'changed' | 'ended';
  /** All that were found so far. */
  vectors: string[];
  /** When the first packets of it arrived, as far as the slots tell. */
  started_ms: number;
  detected_ms: number;
  /** With `ended`: the last moment above half the threshold. */
  ended_ms?: number;
  measured: { at_ms: number; pps: number; bps: number };
  /** So far, scaled; `sampled`: records that this was made of. */
  packets: number;
  bytes: number;
  sampled: number;
  threshold: {
    /** The policy's uuid, or `default`. */
    policy: string;
    vector: string;
    metric: 'pps' | 'bps';
    value: number;
    observed: number;
    baseline?: number;
  };
  profile: VectorProfile[];
  /** What is new since the last report of it; a repeated entry of a moment stands instead. */
  timeline: TimelineEntry[];
  /** New ones, at most 100 a report; the control plane keeps at most 1 000 an attack. */
  packet_samples: PacketSample[];
  /** Exporters and interfaces it came in by, the most first, at most 16. */
  entries: { exporter: string; interface?: number; share: number }[];
}

export interface ExporterStatus {
  /** Name of the collector that tells of it, where it is another process than the detector: its last word counts, whoever passes it on. */
  collector?: string;
  /** Absent: of an address that no exporter is configured for. */
  uuid?: string;
  source: string;
  last_seen_ms: number;
  /** `sflow5`, `netflow5`, `netflow9`, `ipfix`. */
  protocols: string[];
  /** Since the detector's start. */
  datagrams: number;
  records: number;
  /** Of the last ten seconds. */
  datagrams_per_second: number;
  records_per_second: number;
  templates: number;
  /** The rate that was last told or set; absent: none was. */
  sampling_rate?: number;
  /** Seconds of the longest flow that it told of in the last hour or two; absent: none was longer than its timeout of a minute. */
  longest_flow_s?: number;
  /** Datagrams and records that were thrown away, by reason (decode/reasons.ts, and those of the collector). */
  dropped: Record<string, number>;
  /** Datagrams that are missing in the exporter's sequence numbers. */
  lost: number;
}

export interface DetectorReport {
  /** Of this run of the detector; a new one counts from nothing. */
  run: string;
  sequence: number;
  attacks: DetectedAttack[];
  /** All of them, every ten seconds or when asked; absent: as before. At most 1 000, those of unknown sources last. */
  exporters?: ExporterStatus[];
  /** At most 5 000. */
  baselines?: BaselineEntry[];
  status: {
    listen: string[];
    /** Of each worker's socket. */
    receive_buffers: { bytes: number; wanted: number }[];
    /** Datagrams that the kernel dropped because a buffer was full, since the start. */
    kernel_drops: number;
    tracked_destinations: number;
    memory_bytes: number;
    /** A sentence for each address that is not listened on; of other collectors with their names. */
    refused?: string[];
    /** What a bound of the collectors kept out, since their start. */
    overflow?: {
      /** Datagrams of unknown sources beyond those that are told one by one. */
      unknown_datagrams: number;
      /** Sampled packets that are in no sum. */
      samples: number;
      /** Records of long flows that count for the slot in which they came. */
      unspread: number;
      /** Records of watched destinations that are in no profile. */
      unprofiled: number;
    };
    /** Absent: it has collectors in its own process alone. */
    bus?: {
      connected: boolean;
      collectors: number;
      /** Itself included. */
      detectors: number;
      /** Of 64, those that are its share. */
      partitions: number;
      /** Messages that it or a collector could not send, and such as were none, since their start. */
      unsent: number;
      malformed: number;
    };
  };
}

/** What became of the report; what is named in neither list was taken. */
export interface DetectorReportAnswer {
  /** Attacks that cannot be recorded, by the detector's id. */
  refused: { id: string; message: string }[];
  /**
   * Members that were left out, and nothing with them: an exporter's entry, a baseline, a profile or another piece of what proves
   * an attack that was taken. The first hundred; absent: none.
   */
  left_out?: { field: string; message: string }[];
}

export interface SamplesAnswer {
  request: string;
  /** How many samples of it were held, and over how many seconds; `packets` may be fewer. */
  held: number;
  packets: PacketSample[];
}
