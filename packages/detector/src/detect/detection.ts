/**
 * Detection: slots of collectors in, attacks out. Owns the order of things in a slot and the timers; what is too much, for whom,
 * and until when is decided by what it calls. Never reads flows, sends nothing to the control plane itself.
 */
import type { BaselineEntry, DetectedAttack, DetectorSettings } from '@levee/contract/detector.ts';
import { bounded, MOST_COUNTED } from '@levee/core/detection/bounds.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import {
  AGGREGATE_ONLY,
  type FromCollector,
  SLOT_MILLISECONDS,
  type SlotProfile,
  type SlotReport,
} from '../bus/port.ts';
import { ClockSteps } from '../clock-steps.ts';
import { Attacks } from './attacks.ts';
import { Baselines } from './baselines.ts';
import { examine } from './examine.ts';
import { HotDestinations } from './hot-destinations.ts';
import { Places, prefixAt } from './places.ts';
import type { Detection, DetectionOptions } from './port.ts';
import { SampleRequests } from './sample-requests.ts';
import { type QueuedSlot, SlotQueue } from './slot-queue.ts';
import { defaultLimits, Traffic, type TrafficLimits, tagOf } from './traffic.ts';

/** Without any collector nothing is known: attacks neither end nor begin, for so long. */
const BLIND_MILLISECONDS = 15 * 60_000;
/** Slots come four times a second, an empty one too: what was after so long may have been anything. */
const gapMilliseconds = 2_000;
const minuteMilliseconds = 60_000;
const baselinesMilliseconds = 5 * 60_000;
const mostBaselines = 5_000;
/** A collector that was not heard of for so long, or never, does not know what is hot. */
const rememberedMilliseconds = 10_000;
const mostCollectors = 1_024;

export function startDetection(options: DetectionOptions, limits: TrafficLimits = defaultLimits): Detection {
  const running = new RunningDetection(options, limits);
  options.bus.onMessage((message) => running.hear(message));
  return running;
}

class RunningDetection implements Detection {
  readonly #options: DetectionOptions;
  readonly #limits: TrafficLimits;
  readonly #places = new Places();
  readonly #baselines = new Baselines(this.#places);
  readonly #attacks: Attacks;
  readonly #hot: HotDestinations;
  readonly #samples: SampleRequests;
  readonly #queue: SlotQueue;
  readonly #collectors = new Map<string, number>();
  #traffic: Traffic;
  /** Absolute number of slot 0 of the traffic table, whose columns are of 32 bits. */
  #origin: number;
  readonly #steps: ClockSteps;
  #news: DetectedAttack[] = [];
  /** Of this slot, of destinations that are not attacked yet. */
  readonly #profiles = new Map<string, SlotProfile[]>();
  #settings: DetectorSettings | undefined;
  #learnt: readonly BaselineEntry[] = [];
  #heardMs: number;
  /** Since when all collectors are heard without a gap. */
  #sightedMs = Number.NEGATIVE_INFINITY;
  #baselinesToldMs: number;
  #forgotten = { untracked: 0, late: 0 };
  #wake: (() => void) | undefined;
  #look: (() => void) | undefined;
  #unfit = { untracked: 0, attacks: 0, baselines: 0 };
  #isStopped = false;

  constructor(options: DetectionOptions, limits: TrafficLimits) {
    this.#options = options;
    this.#limits = limits;
    const { clock } = options;
    const nowMs = clock.now();
    this.#steps = new ClockSteps({ now: clock.now, steady: clock.steady ?? clock.now });
    this.#origin = Math.floor(nowMs / SLOT_MILLISECONDS) - 1_000;
    this.#heardMs = nowMs;
    this.#baselinesToldMs = nowMs;
    this.#traffic = this.#newTraffic();
    const self = this;
    this.#attacks = new Attacks({
      get traffic() {
        return self.#traffic;
      },
      places: this.#places,
      baselines: this.#baselines,
      slotMs: (slot) => (slot + this.#origin) * SLOT_MILLISECONDS,
      newId: options.newId,
      profilesOf: (dst) => this.#profiles.get(dst) ?? [],
      tell: (attack) => this.#news.push(attack),
      ended: (attack) => this.#samples.forget(attack),
    });
    this.#hot = new HotDestinations((destinations) =>
      options.bus.send({ type: 'hot', detector: options.name, destinations }),
    );
    this.#samples = new SampleRequests((message) => options.bus.send(message));
    this.#queue = new SlotQueue(
      (slot, reports) => this.#judge(slot - this.#origin, reports),
      (collector, milliseconds) =>
        options.log.warn({ collector, milliseconds }, "a collector's clock is not ours: its slots are moved"),
    );
    this.#lookAround();
  }

  settings(settings: DetectorSettings): void {
    const isFirst = this.#settings === undefined;
    this.#settings = settings;
    const { prefixesChanged, policiesChanged } = this.#places.take(settings);
    const nowMs = this.#options.clock.now();
    if (prefixesChanged) this.#holdAnew(nowMs);
    else if (policiesChanged) this.#traffic.policies.fill(-1);
    if (isFirst) this.#loadBaselines();
    if (policiesChanged && !isFirst) this.#attacks.relimit();
    this.#attacks.takeOver(settings.ongoing, this.#isOurs, nowMs);
    this.#tell(nowMs);
  }

  baselines({ entries }: { readonly entries: readonly BaselineEntry[] }): void {
    this.#learnt = [...this.#learnt, ...entries];
    if (this.#settings !== undefined) this.#loadBaselines();
  }

  shareChanged(): void {
    const learnt = this.#baselines.take(mostBaselines);
    if (learnt.length > 0) this.#options.report({ attacks: [], baselines: learnt });
    this.#attacks.release(this.#isOurs);
    this.#baselines.release(this.#isOurs, this.#traffic);
    const nowMs = this.#options.clock.now();
    if (this.#settings !== undefined) this.#attacks.takeOver(this.#settings.ongoing, this.#isOurs, nowMs);
    this.#tell(nowMs);
  }

  status() {
    return {
      trackedDestinations: this.#traffic.table.size,
      attacks: this.#attacks.size,
      untracked: this.#traffic.untracked + this.#forgotten.untracked,
      late: this.#traffic.late + this.#forgotten.late,
    };
  }

  stop(): void {
    this.#isStopped = true;
    this.#wake?.();
    this.#look?.();
  }

  hear(message: FromCollector): void {
    if (this.#isStopped) return;
    if (message.type === 'samples' && this.#samples.take(message)) return;
    if (message.type !== 'slot') {
      this.#options.passOn?.(message);
      return;
    }
    const nowMs = this.#options.clock.now();
    this.#followClock();
    if (nowMs - this.#heardMs > gapMilliseconds) this.#sightedMs = nowMs;
    this.#heardMs = nowMs;
    this.#greet(message.collector, nowMs);
    if (this.#settings === undefined) return;
    this.#queue.take(message, nowMs);
    this.#run();
  }

  /** Where the wall clock was set, no time has passed by it: all that is known is as old as before. */
  #followClock(): void {
    const step = this.#steps.look();
    if (step === 0) return;
    const slots = Math.round(step / SLOT_MILLISECONDS);
    const milliseconds = slots * SLOT_MILLISECONDS;
    this.#origin += slots;
    this.#queue.stepped(slots);
    this.#attacks.stepped(milliseconds);
    this.#heardMs += milliseconds;
    this.#baselinesToldMs += milliseconds;
    for (const [collector, heardMs] of this.#collectors) this.#collectors.set(collector, heardMs + milliseconds);
    // Of other machines' collectors it is not known at once how far their clocks are from ours now.
    this.#sightedMs = this.#steps.nowMs;
    this.#options.log.warn({ milliseconds: Math.round(step) }, 'the clock of this machine was set');
  }

  readonly #isOurs: NonNullable<DetectionOptions['isOurs']> = (destination) =>
    this.#options.isOurs?.(destination) ?? true;

  #run(): void {
    this.#wake?.();
    this.#wake = undefined;
    this.#followClock();
    const nowMs = this.#options.clock.now();
    const again = this.#queue.run(nowMs);
    if (again !== undefined) this.#wake = this.#options.clock.after(again, () => this.#run());
  }

  #judge(slot: number, reports: readonly QueuedSlot[]): void {
    const nowMs = this.#options.clock.now();
    const traffic = this.#traffic;
    traffic.begin(slot);
    for (const { slot: reported, report } of reports) {
      this.#count(report, reported - this.#origin);
      for (const profile of report.profiles) this.#takeProfile(profile, nowMs);
    }
    const slotMs = (slot + this.#origin) * SLOT_MILLISECONDS;
    const isWhole = !reports.some(({ report }) => report.isPartial);
    if (!isWhole) this.#sightedMs = Math.max(this.#sightedMs, slotMs + SLOT_MILLISECONDS);
    this.#baselines.judged(traffic, slotMs, isWhole);
    const findings = examine(traffic, this.#places, this.#baselines);
    if (this.#options.isCollectorAway?.() === true) this.#sightedMs = nowMs;
    this.#attacks.judge(findings, nowMs, this.#sightedMs);
    this.#profiles.clear();
    this.#samples.ask(this.#attacks.all(), nowMs);
    const attacked = [...this.#attacks.all()].map(({ dst }) => dst);
    const warm = findings.warm.map((row) => formatPrefix(prefixAt(traffic, row)));
    this.#hot.judge(slot, attacked, warm);
    this.#tell(nowMs);
  }

  #takeProfile(profile: SlotProfile, nowMs: number): void {
    const attack = this.#attacks.of(profile.dst);
    if (attack !== undefined) {
      attack.profile(profile.vector, profile, nowMs);
      return;
    }
    const kept = this.#profiles.get(profile.dst);
    if (kept === undefined) this.#profiles.set(profile.dst, [profile]);
    else kept.push(profile);
  }

  #count(report: SlotReport, slot: number): void {
    const { families, addresses, vectors, packets, bytes, samples } = report;
    const traffic = this.#traffic;
    for (let row = 0; row < report.count; row++) {
      const told = families[row] as number;
      const family = (told & ~AGGREGATE_ONLY) === 4 ? 4 : 6;
      const at = row * 4;
      const [a, b, c, d] = [addresses[at], addresses[at + 1], addresses[at + 2], addresses[at + 3]] as number[] as [
        number,
        number,
        number,
        number,
      ];
      const length = (told & AGGREGATE_ONLY) !== 0 ? (family === 4 ? 24 : 64) : family === 4 ? 32 : 128;
      const tag = tagOf(family, length);
      traffic.add(
        a,
        b,
        c,
        d,
        tag,
        vectors[row] as number,
        bounded(packets[row] as number, MOST_COUNTED),
        bounded(bytes[row] as number, MOST_COUNTED),
        bounded(samples[row] as number, MOST_COUNTED),
        slot,
      );
    }
  }

  #tell(nowMs: number): void {
    const isDue = nowMs - this.#baselinesToldMs >= baselinesMilliseconds;
    if (isDue) this.#baselinesToldMs = nowMs;
    const baselines = isDue ? this.#baselines.take(mostBaselines) : [];
    if (this.#news.length === 0 && baselines.length === 0) return;
    const attacks = this.#news;
    this.#news = [];
    this.#options.report({ attacks, baselines });
  }

  /** Other prefixes are protected: aggregates may be others. The last second is counted anew, all else goes on. */
  #holdAnew(nowMs: number): void {
    const { untracked, late } = this.status();
    this.#forgotten = { untracked, late };
    const { slot } = this.#traffic;
    this.#traffic = this.#newTraffic();
    this.#traffic.begin(slot);
    this.#attacks.attach(nowMs);
    this.#baselines.attach(this.#traffic);
  }

  #newTraffic(): Traffic {
    return new Traffic(this.#limits, (row): boolean => this.#places.place(this.#traffic, row));
  }

  #loadBaselines(): void {
    this.#baselines.load(this.#learnt, this.#traffic, this.#options.clock.now(), this.#isOurs);
    this.#learnt = [];
  }

  #greet(collector: string, nowMs: number): void {
    const heard = this.#collectors.get(collector) ?? Number.NEGATIVE_INFINITY;
    if (nowMs - heard > rememberedMilliseconds) this.#hot.repeat();
    this.#collectors.delete(collector);
    this.#collectors.set(collector, nowMs);
    if (this.#collectors.size > mostCollectors) {
      this.#collectors.delete(this.#collectors.keys().next().value as string);
    }
  }

  /** Once a minute: whether anything is heard, and whether anything did not fit. */
  #lookAround(): void {
    this.#look = this.#options.clock.after(minuteMilliseconds, () => {
      this.#followClock();
      const nowMs = this.#options.clock.now();
      const { log } = this.#options;
      if (nowMs - this.#heardMs >= BLIND_MILLISECONDS && this.#attacks.size > 0) {
        log.warn({ attacks: this.#attacks.size }, 'no collector was heard for long: all attacks are ended');
        this.#attacks.endAll(nowMs);
        this.#tell(nowMs);
      }
      const { untracked } = this.status();
      const unfit = { untracked, attacks: this.#attacks.refused, baselines: this.#baselines.refused };
      const { untracked: rows, attacks, baselines } = this.#unfit;
      if (untracked > rows || unfit.attacks > attacks || unfit.baselines > baselines) {
        log.warn(unfit, 'there is more traffic than is kept apart: these were left out since the start');
      }
      this.#unfit = unfit;
      this.#lookAround();
    });
  }
}
