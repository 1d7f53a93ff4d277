/**
 * One attack while it goes on: what is measured of it slot by slot, what it looks like, and what of it was told. Owns its
 * figures and what is worth telling; when it begins is decided before it is made, when it ends by core's `hold.ts`.
 */
import type { DetectedAttack, PacketSample, VectorProfile } from '@levee/contract/detector.ts';
import { bounded, LONGEST_PACKET, MOST_COUNTED, MOST_RATE } from '@levee/core/detection/bounds.ts';
import { endOf } from '@levee/core/detection/hold.ts';
import { type Rates, samplingNoise } from '@levee/core/detection/judge.ts';
import { keysOfEach, type ProfilePart, ProfileWindow, top } from '@levee/core/detection/profile.ts';
import { Timeline } from '@levee/core/detection/timeline.ts';
import { TOTAL, vectors as vectorNames } from '@levee/core/detection/vector.ts';
import { SLOT_MILLISECONDS } from '../bus/port.ts';
import type { Baselines } from './baselines.ts';
import { type Traffic, WINDOW_SLOTS, WindowSums } from './traffic.ts';

export type Threshold = DetectedAttack['threshold'];

export interface AttackBeginning {
  readonly id: string;
  readonly dst: string;
  readonly startedMs: number;
  readonly detectedMs: number;
  readonly holdMilliseconds: number;
  readonly threshold: Threshold;
}

/** What a vector of it exceeded; of half of it an attack lives. */
export interface Exceeded {
  readonly metric: 'pps' | 'bps';
  readonly value: number;
}

interface AttackVector {
  readonly vector: number;
  exceeded: Exceeded;
  pps: number;
  bps: number;
  samples: number;
  peakPps: number;
  peakBps: number;
  /** At this hour, by what was learnt of days before; undefined: not known. */
  usual: Rates | undefined;
  readonly profile: ProfileWindow;
  /** Samples by address, where the attack is on a subnet. */
  readonly destinations: Map<string, number>;
}

const changeMilliseconds = 1_000;
/** What is not worth a word of its own is told as often. */
const leisureMilliseconds = 10_000;
/** A change of a rate that is worth telling, where sampling is finer than that. */
const significant = 0.1;
/** Fewer samples a second do not keep an attack alive: one may be anybody's. */
const aliveSamples = 4;
const mostPacketSamples = 100;
const mostDestinations = 256;
const mostEntries = 16;
/** `exporter/interface`, or an exporter alone. */
const isEntry = /^[\w.:-]{1,128}(?:\/\d{1,10})?$/;
const mostInterface = 0xffff_ffff;
/** Packets that one sampled packet may stand for. */
const mostScale = 2 ** 32;

const sums = new WindowSums();

export class Attack {
  readonly id: string;
  readonly dst: string;
  readonly startedMs: number;
  readonly detectedMs: number;
  /** Set once: one that was taken over gets it with its place. */
  holdMilliseconds: number;
  threshold: Threshold;
  /** Its row in the traffic table. */
  destination: number;
  aboveHalfMs: number;
  aboveMs: number;
  packets = 0;
  bytes = 0;
  sampled = 0;
  peakPps = 0;
  peakBps = 0;
  readonly vectors = new Map<number, AttackVector>();
  #keys = keysOfEach(0);
  #pps = 0;
  #bps = 0;
  #samples = 0;
  #atMs: number;
  readonly #timeline: Timeline;
  #packetSamples: PacketSample[] = [];
  /** Of the last report: when, and what it said. */
  #toldMs = Number.NEGATIVE_INFINITY;
  #told = { pps: 0, bps: 0, peakPps: 0, peakBps: 0, vectors: 0, profiled: 0 };

  constructor(beginning: AttackBeginning, destination: number, nowMs: number) {
    this.id = beginning.id;
    this.dst = beginning.dst;
    this.startedMs = beginning.startedMs;
    this.detectedMs = beginning.detectedMs;
    this.holdMilliseconds = beginning.holdMilliseconds;
    this.threshold = beginning.threshold;
    this.destination = destination;
    this.aboveHalfMs = nowMs;
    this.aboveMs = nowMs;
    this.#atMs = nowMs;
    this.#timeline = new Timeline(beginning.startedMs);
  }

  /** Its profiles keep so many keys of a kind from now on. */
  fit(keys: number): void {
    this.#keys = keys;
    for (const { profile } of this.vectors.values()) profile.fit(keys);
  }

  join(vector: number, exceeded: Exceeded, nowMs: number): void {
    if (this.vectors.has(vector)) return;
    const profile = new ProfileWindow(nowMs);
    profile.fit(this.#keys);
    this.vectors.set(vector, {
      vector,
      exceeded,
      pps: 0,
      bps: 0,
      samples: 0,
      peakPps: 0,
      peakBps: 0,
      usual: undefined,
      profile,
      destinations: new Map(),
    });
  }

  /** What the window holds of it from before it was found. Once, when its first vectors have joined. */
  countBack(traffic: Traffic, slotMsOf: (slot: number) => number): void {
    for (let slot = traffic.slot - WINDOW_SLOTS + 1; slot < traffic.slot; slot++) {
      if (slotMsOf(slot) + SLOT_MILLISECONDS > this.startedMs) this.#countSlot(traffic, slot, slotMsOf(slot));
    }
  }

  /** Once a slot. */
  measure(traffic: Traffic, baselines: Baselines, slotMs: number): void {
    const endMs = slotMs + SLOT_MILLISECONDS;
    traffic.align(this.destination);
    this.#countSlot(traffic, traffic.slot, slotMs);
    this.#pps = 0;
    this.#bps = 0;
    this.#samples = 0;
    this.#atMs = endMs;
    for (const each of this.vectors.values()) {
      const key = traffic.keyOf(this.destination, each.vector);
      if (key < 0) emptied(each);
      else {
        traffic.sum(key, sums);
        each.pps = sums.packets;
        each.bps = sums.bytes * 8;
        each.samples = sums.samples;
        each.peakPps = Math.max(each.peakPps, each.pps);
        each.peakBps = Math.max(each.peakBps, each.bps);
        each.usual = baselines.usual(traffic.baselines[key] as number);
        this.#stayAlive(traffic, key, each, endMs);
      }
      if (!this.#isInAll(each.vector)) continue;
      this.#pps += each.pps;
      this.#bps += each.bps;
      this.#samples += each.samples;
    }
    this.peakPps = Math.max(this.peakPps, this.#pps);
    this.peakBps = Math.max(this.peakBps, this.#bps);
  }

  /** The clock was set. When it began has been told, and stays. */
  stepped(milliseconds: number): void {
    this.aboveHalfMs += milliseconds;
    this.aboveMs += milliseconds;
    this.#atMs += milliseconds;
    this.#toldMs += milliseconds;
  }

  /** The attack is known to go on, by what is not in its own figures. */
  confirm(atMs: number): void {
    this.aboveHalfMs = Math.max(this.aboveHalfMs, atMs);
    this.aboveMs = Math.max(this.aboveMs, atMs);
  }

  /** Whether it goes on by this vector, rather than waits for its end. */
  isAboveHalf(vector: number): boolean {
    const of = this.vectors.get(vector);
    return of !== undefined && isAboveHalf(of);
  }

  profile(vector: number, part: ProfilePart, nowMs: number): void {
    this.vectors.get(vector)?.profile.add(part, nowMs);
    this.vectors.get(TOTAL)?.profile.add(part, nowMs);
  }

  /** An address of the attacked subnet. */
  countDestination(vector: number, dst: string, samples: number): void {
    const destinations = this.vectors.get(vector)?.destinations;
    if (destinations === undefined) return;
    destinations.set(dst, (destinations.get(dst) ?? 0) + samples);
    if (destinations.size <= 2 * mostDestinations) return;
    const kept = [...destinations].sort(([, x], [, y]) => y - x).slice(0, mostDestinations);
    destinations.clear();
    for (const [each, count] of kept) destinations.set(each, count);
  }

  keepSamples(packets: readonly PacketSample[]): void {
    const all = [...this.#packetSamples, ...packets.map(boundedSample)];
    // Spread over all of them rather than the first ones.
    const step = Math.max(1, all.length / mostPacketSamples);
    this.#packetSamples = [];
    for (let at = 0; at < all.length && this.#packetSamples.length < mostPacketSamples; at += step) {
      this.#packetSamples.push(all[Math.floor(at)] as PacketSample);
    }
  }

  /** Undefined while it goes on. `sightedMs`: since when everything is seen; what was quiet before may not have been. */
  endedMs(nowMs: number, sightedMs: number): number | undefined {
    const { aboveHalfMs, aboveMs, holdMilliseconds } = this;
    const seen = {
      aboveHalfMs: Math.max(aboveHalfMs, sightedMs),
      aboveMs: Math.max(aboveMs, sightedMs),
      holdMilliseconds,
    };
    const ended = endOf(seen, nowMs) === undefined ? undefined : endOf(this, nowMs);
    return ended === undefined ? undefined : Math.max(ended, this.startedMs);
  }

  /** Whether there is something to tell by now. */
  isDue(nowMs: number): boolean {
    const told = this.#told;
    // What measures wait for does not wait itself.
    if (this.#profiled() > told.profiled || this.vectors.size > told.vectors) return true;
    const since = nowMs - this.#toldMs;
    if (since < changeMilliseconds) return false;
    if (since >= leisureMilliseconds) return true;
    if (this.#packetSamples.length > 0) return true;
    const noise = Math.max(significant, samplingNoise(this.#samples));
    return (
      this.peakPps > told.peakPps * (1 + significant) ||
      this.peakBps > told.peakBps * (1 + significant) ||
      differs(this.#pps, told.pps, noise) ||
      differs(this.#bps, told.bps, noise)
    );
  }

  /** What there is to tell; with `ended` for the last time. */
  report(phase: DetectedAttack['phase'], nowMs: number, endedMs?: number): DetectedAttack {
    this.#toldMs = nowMs;
    this.#told = {
      pps: this.#pps,
      bps: this.#bps,
      peakPps: this.peakPps,
      peakBps: this.peakBps,
      vectors: this.vectors.size,
      profiled: this.#profiled(),
    };
    const packetSamples = this.#packetSamples;
    this.#packetSamples = [];
    return {
      id: this.id,
      dst: this.dst,
      phase,
      vectors: [...this.vectors.keys()].map((vector) => vectorNames[vector] as string),
      started_ms: this.startedMs,
      detected_ms: this.detectedMs,
      ...(endedMs !== undefined && { ended_ms: endedMs }),
      measured: { at_ms: this.#atMs, pps: told(this.#pps), bps: told(this.#bps) },
      packets: told(this.packets, MOST_COUNTED),
      bytes: told(this.bytes, MOST_COUNTED),
      sampled: told(this.sampled, MOST_COUNTED),
      threshold: boundedThreshold(this.threshold),
      profile: [...this.vectors.values()].map(profileOf),
      timeline: this.#timeline.take(phase === 'ended'),
      packet_samples: packetSamples,
      entries: this.#entries(),
    };
  }

  #isInAll(vector: number): boolean {
    return vector === TOTAL || !this.vectors.has(TOTAL);
  }

  #countSlot(traffic: Traffic, slot: number, slotMs: number): void {
    for (const { vector } of this.vectors.values()) {
      const key = traffic.keyOf(this.destination, vector);
      if (key < 0) continue;
      const { packets, bytes, samples } = traffic.at(key, slot, sums);
      const inAll = this.#isInAll(vector);
      this.#timeline.add(slotMs, vectorNames[vector] as string, packets, bytes, inAll);
      if (!inAll) continue;
      this.packets += packets;
      this.bytes += bytes;
      this.sampled += samples;
    }
  }

  #stayAlive(traffic: Traffic, key: number, of: AttackVector, endMs: number): void {
    const { exceeded } = of;
    if (!isAboveHalf(of)) return;
    if (of[exceeded.metric] >= exceeded.value) this.aboveMs = endMs;
    // The window still holds what is over: the last slot that had its part of it is the moment.
    const part = exceeded.value / 2 / WINDOW_SLOTS;
    for (let back = 0; back < WINDOW_SLOTS; back++) {
      const { packets, bytes } = traffic.at(key, traffic.slot - back, sums);
      if ((exceeded.metric === 'pps' ? packets : bytes * 8) < part) continue;
      this.aboveHalfMs = Math.max(this.aboveHalfMs, endMs - back * SLOT_MILLISECONDS);
      return;
    }
    this.aboveHalfMs = endMs;
  }

  /** Vectors that have a profile by now. */
  #profiled(): number {
    let count = 0;
    for (const { profile } of this.vectors.values()) if (profile.samples >= aliveSamples) count++;
    return count;
  }

  #entries(): DetectedAttack['entries'] {
    const counts = new Map<string, number>();
    let whole = 0;
    for (const { vector, profile } of this.vectors.values()) {
      if (!this.#isInAll(vector)) continue;
      for (const [entry, samples] of profile.entries()) {
        if (!isEntry.test(entry)) continue;
        counts.set(entry, (counts.get(entry) ?? 0) + samples);
        whole += samples;
      }
    }
    return top(counts, whole, mostEntries).map(({ value, share }) => {
      const slash = value.lastIndexOf('/');
      if (slash < 0) return { exporter: value, share };
      return {
        exporter: value.slice(0, slash),
        interface: bounded(Number(value.slice(slash + 1)), mostInterface),
        share,
      };
    });
  }
}

function isAboveHalf({ exceeded, samples, pps, bps }: AttackVector): boolean {
  return samples >= aliveSamples && (exceeded.metric === 'pps' ? pps : bps) >= exceeded.value / 2;
}

function emptied(each: AttackVector): void {
  each.pps = 0;
  each.bps = 0;
  each.samples = 0;
}

function differs(now: number, told: number, by: number): boolean {
  return Math.abs(now - told) > by * Math.max(now, told);
}

function told(figure: number, most = MOST_RATE): number {
  return Math.round(bounded(figure, most));
}

function boundedThreshold(threshold: Threshold): Threshold {
  const { value, observed, baseline } = threshold;
  return {
    ...threshold,
    value: told(value),
    observed: told(observed),
    ...(baseline !== undefined && { baseline: told(baseline) }),
  };
}

function boundedSample(packet: PacketSample): PacketSample {
  const length = Math.floor(bounded(packet.length, LONGEST_PACKET));
  return { ...packet, scale: bounded(packet.scale, mostScale), length };
}

function profileOf(each: AttackVector): VectorProfile {
  let whole = 0;
  for (const samples of each.destinations.values()) whole += samples;
  return {
    vector: vectorNames[each.vector] as string,
    pps: told(each.pps),
    bps: told(each.bps),
    peak_pps: told(each.peakPps),
    peak_bps: told(each.peakBps),
    ...(each.usual !== undefined && { baseline_pps: told(each.usual.pps), baseline_bps: told(each.usual.bps) }),
    ...each.profile.shares(),
    destinations: top(each.destinations, whole),
  };
}
