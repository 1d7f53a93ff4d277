/**
 * Detection with a clock that is wound by hand, collectors that are told what traffic there was, and everything that it says
 * written down. Sampling is done as an exporter does it: of so many packets a number that is Poisson distributed. Reproducible.
 */
import type {
  BaselineEntry,
  DetectedAttack,
  DetectionPolicySettings,
  DetectorSettings,
  OngoingAttack,
  RateLimits,
} from '@levee/contract/detector.ts';
import { wordsOf } from '@levee/core/detection/outermost.ts';
import { type Vector, vectorNumber } from '@levee/core/detection/vector.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import {
  type DetectorBus,
  type FromCollector,
  SLOT_MILLISECONDS,
  type SlotProfile,
  type SlotReport,
  type ToCollector,
} from '../../bus/port.ts';
import { startDetection } from '../detection.ts';
import type { Detection, DetectionOptions } from '../port.ts';
import { defaultLimits, type TrafficLimits } from '../traffic.ts';
import { Dice } from './dice.ts';

/** Traffic of a destination over a slot, in packets that were really sent. */
export interface Flow {
  readonly dst: string;
  readonly vector: Vector;
  readonly pps: number;
  readonly octets?: number;
}

export interface RigOptions {
  readonly prefixes?: readonly string[];
  readonly policies?: readonly DetectionPolicySettings[];
  readonly ongoing?: readonly OngoingAttack[];
  /** One in so many packets is a sample. */
  readonly sampling?: number;
  readonly collectors?: readonly string[];
  readonly limits?: TrafficLimits;
  readonly isOurs?: DetectionOptions['isOurs'];
  readonly isCollectorAway?: DetectionOptions['isCollectorAway'];
  readonly baselines?: readonly BaselineEntry[];
  readonly startMs?: number;
  readonly seed?: number;
}

/** A Monday, 00:00 UTC. */
export const MONDAY = Date.UTC(2026, 0, 5);
/** After the end of a slot its collector tells of it. */
const collectorDelay = 20;

export class Rig {
  readonly detection: Detection;
  readonly attacks: DetectedAttack[] = [];
  readonly learnt: BaselineEntry[] = [];
  readonly sent: ToCollector[] = [];
  readonly warnings: string[] = [];
  readonly dice: Dice;
  nowMs: number;
  sampling: number;
  settings: DetectorSettings;
  collectors: readonly string[];
  #hear: (message: FromCollector) => void = () => undefined;
  #timers: { readonly at: number; readonly run: () => void }[] = [];
  #slotMs: number;
  /** By how much the wall clock has been set. */
  #setMs = 0;
  #sequence = 0;
  #ids = 0;

  constructor(options: RigOptions = {}) {
    this.nowMs = options.startMs ?? MONDAY;
    this.#slotMs = this.nowMs;
    this.sampling = options.sampling ?? 1;
    this.collectors = options.collectors ?? ['a'];
    this.dice = new Dice(options.seed ?? 1);
    this.settings = {
      type: 'settings',
      revision: 1,
      prefixes: [...(options.prefixes ?? ['203.0.113.0/24', '2001:db8::/32'])],
      policies: [...(options.policies ?? [])],
      exporters: [],
      ongoing: [...(options.ongoing ?? [])],
    };
    const bus: DetectorBus = {
      send: (message) => this.sent.push(message),
      onMessage: (heard) => {
        this.#hear = heard;
      },
      close: async () => undefined,
    };
    this.detection = startDetection(
      {
        bus,
        name: 'rig',
        clock: {
          now: () => this.nowMs,
          steady: () => this.nowMs - this.#setMs,
          after: (milliseconds, run) => this.#after(milliseconds, run),
        },
        newId: () => `00000000-0000-4000-8000-${String(++this.#ids).padStart(12, '0')}`,
        report: ({ attacks, baselines }) => {
          this.attacks.push(...attacks);
          this.learnt.push(...baselines);
        },
        log: { info: () => undefined, warn: (_fields, message) => this.warnings.push(message) },
        ...(options.isOurs !== undefined && { isOurs: options.isOurs }),
        ...(options.isCollectorAway !== undefined && { isCollectorAway: options.isCollectorAway }),
      },
      options.limits ?? defaultLimits,
    );
    if (options.baselines !== undefined)
      this.detection.baselines({ type: 'baselines', entries: [...options.baselines] });
    this.detection.settings(this.settings);
  }

  get slotMs(): number {
    return this.#slotMs;
  }

  /** Traffic of so many seconds, the same in each slot but for sampling. */
  run(seconds: number, flows: readonly Flow[] = []): void {
    for (let slot = 0; slot < (seconds * 1000) / SLOT_MILLISECONDS; slot++) this.slot(flows);
  }

  /** One slot of traffic, told by all collectors in equal parts. */
  slot(flows: readonly Flow[], part = 1): void {
    const rows = flows.map(({ dst, vector, pps, octets = 100 }) => ({
      dst,
      vector,
      octets,
      samples: this.#sampled((pps * part * SLOT_MILLISECONDS) / 1000),
    }));
    this.tell(
      rows.map(({ dst, vector, octets, samples }) => ({
        dst,
        vector,
        packets: samples * this.sampling,
        bytes: samples * this.sampling * octets,
        samples,
      })),
    );
  }

  /** One slot with exactly these sums, told by the first collector, the others with nothing. */
  tell(rows: readonly Row[], profiles: readonly SlotProfile[] = []): void {
    this.passTo(this.#slotMs + SLOT_MILLISECONDS + collectorDelay);
    for (const [index, collector] of this.collectors.entries()) {
      this.hear(
        slotReport(collector, this.#sequence, this.#slotMs, index === 0 ? rows : [], index === 0 ? profiles : []),
      );
    }
    this.#sequence++;
    this.#slotMs += SLOT_MILLISECONDS;
  }

  hear(message: FromCollector): void {
    this.#hear(message);
  }

  /** Winds the clock, timers included. */
  passTo(ms: number): void {
    for (;;) {
      const next = this.#timers.filter(({ at }) => at <= ms).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.nowMs = Math.max(this.nowMs, next.at);
      next.run();
    }
    this.nowMs = Math.max(this.nowMs, ms);
  }

  /** Another than `tell` has told of so much time. */
  advance(milliseconds: number): void {
    this.#slotMs += milliseconds;
  }

  /** The machine's clock is set, for its collectors as well: no time passes. */
  setClock(milliseconds: number): void {
    this.nowMs += milliseconds;
    this.#slotMs += milliseconds;
    this.#setMs += milliseconds;
    this.#timers = this.#timers.map(({ at, run }) => ({ at: at + milliseconds, run }));
  }

  /** Leaves out so much time, in which no collector tells anything. */
  skip(milliseconds: number): void {
    this.#slotMs += Math.floor(milliseconds / SLOT_MILLISECONDS) * SLOT_MILLISECONDS;
    this.passTo(this.#slotMs);
  }

  change(settings: Partial<DetectorSettings>): void {
    this.settings = { ...this.settings, ...settings, revision: this.settings.revision + 1 };
    this.detection.settings(this.settings);
  }

  phases(phase: DetectedAttack['phase']): DetectedAttack[] {
    return this.attacks.filter((attack) => attack.phase === phase);
  }

  /** `dst vector,vector` of all attacks that began, with the vectors that they had at last. */
  found(): string[] {
    return this.phases('started').map(({ id, dst }) => {
      const last = this.attacks.findLast((attack) => attack.id === id);
      return `${dst} ${last?.vectors.toSorted().join()}`;
    });
  }

  #after(milliseconds: number, run: () => void): () => void {
    const timer = { at: this.nowMs + milliseconds, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  #sampled(packets: number): number {
    return this.sampling === 1 ? Math.round(packets) : this.dice.poisson(packets / this.sampling);
  }
}

export interface Row {
  readonly dst: string;
  readonly vector: Vector;
  readonly packets: number;
  readonly bytes: number;
  readonly samples: number;
}

export function slotReport(
  collector: string,
  sequence: number,
  slotMs: number,
  rows: readonly Row[],
  profiles: readonly SlotProfile[] = [],
): SlotReport {
  const addresses = new Uint32Array(rows.length * 4);
  const families = new Uint8Array(rows.length);
  for (const [index, { dst }] of rows.entries()) {
    const { family, words } = addressOf(dst);
    families[index] = family;
    addresses.set(words, index * 4);
  }
  return {
    type: 'slot',
    collector,
    sequence,
    slotMs,
    count: rows.length,
    families,
    addresses,
    vectors: Uint8Array.from(rows, ({ vector }) => vectorNumber(vector)),
    packets: Float64Array.from(rows, ({ packets }) => packets),
    bytes: Float64Array.from(rows, ({ bytes }) => bytes),
    samples: Float64Array.from(rows, ({ samples }) => samples),
    profiles,
  };
}

const known = new Map<string, { readonly family: 4 | 6; readonly words: readonly number[] }>();

function addressOf(dst: string) {
  let address = known.get(dst);
  if (address === undefined) {
    const { family, value } = prefixFromTrusted(dst);
    address = { family, words: wordsOf(family, value) };
    if (known.size < 100_000) known.set(dst, address);
  }
  return address;
}

let policies = 0;

/** A policy for everything, or for subnets. */
export function policy(
  thresholds: Record<string, RateLimits>,
  more: Partial<DetectionPolicySettings> = {},
): DetectionPolicySettings {
  const subnets = more.subnets ?? [];
  return {
    uuid: `10000000-0000-4000-8000-${String(++policies).padStart(12, '0')}`,
    subnets,
    rank: subnets.length === 0 ? 0 : 3,
    thresholds,
    hold_s: 30,
    baseline_factor: 3,
    ...more,
  };
}
