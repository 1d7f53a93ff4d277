/**
 * A network's ordinary week, sampled, through the real detection: destinations of many sizes with days, nights and a weekend, flash
 * crowds, bulk transfers, scans; and attacks in it of which everything is known. Counts what was found, what was not, and what
 * was found where nothing was. Compressed: of each hour only its first minutes happen.
 */
import type { DetectedAttack } from '@levee/contract/detector.ts';
import { wordsOf } from '@levee/core/detection/outermost.ts';
import { defaultThresholds } from '@levee/core/detection/policy.ts';
import { type Vector, vectorNumber, vectors } from '@levee/core/detection/vector.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import { prefixContains } from '@levee/core/net/prefix.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { SLOT_MILLISECONDS, type SlotReport } from '../../bus/port.ts';
import { MONDAY, Rig } from './rig.ts';

export interface WeekOptions {
  readonly hours: number;
  /** Of each hour; at least five, or no baseline is learnt. */
  readonly minutes: number;
  readonly destinations: number;
  readonly sampling: number;
  readonly attacks: number;
  readonly seed: number;
}

export interface Label {
  readonly kind: 'attack' | 'carpet' | 'flash crowd' | 'bulk transfer' | 'scan';
  /** An address or a subnet. */
  readonly dst: string;
  readonly vector: Vector;
  /** At its highest; of a carpet, of all addresses together. */
  readonly pps: number;
  readonly octets: number;
  readonly startMs: number;
  readonly endMs: number;
}

export interface WeekResult {
  /** Of labelled attacks and carpets. */
  readonly found: number;
  readonly missed: readonly Label[];
  /** Found more than once. */
  readonly repeated: number;
  readonly underOtherVector: number;
  /** Milliseconds from the first packet to the report, ascending. */
  readonly delays: readonly number[];
  /** Where nothing was above a threshold, with the ordinary event that there was, and its part of the threshold. */
  readonly falseAlarms: readonly { readonly attack: DetectedAttack; readonly kind: string; readonly part: number }[];
  /** Ordinary traffic that really was above its threshold, and was found to be. */
  readonly aboveThreshold: readonly DetectedAttack[];
  readonly ordinaryEvents: number;
  readonly samples: number;
}

interface Flow {
  readonly address: number;
  readonly vector: number;
  readonly octets: number;
  readonly pps: number;
  /** Hour of the day at which it has the most. */
  readonly busiest: number;
  /** How much of it goes at night and at the weekend. */
  readonly quiet: number;
  noise: number;
}

const hourMs = 3_600_000;
const base = 0x64400000;
const slotsOfSecond = 1000 / SLOT_MILLISECONDS;
const stepSlots = 10 * slotsOfSecond;

export function simulateWeek(options: WeekOptions): WeekResult {
  const rig = new Rig({ prefixes: ['100.64.0.0/16'], seed: options.seed });
  const week = new Week(options, rig);
  for (let hour = 0; hour < options.hours; hour++) {
    week.hour(hour);
    rig.skip(hourMs - options.minutes * 60_000);
  }
  rig.run(60);
  return week.result();
}

class Week {
  readonly #options: WeekOptions;
  readonly #rig: Rig;
  readonly #flows: Flow[] = [];
  readonly #labels: Label[] = [];
  #sequence = 0;
  #samples = 0;
  #slotMs = MONDAY;

  constructor(options: WeekOptions, rig: Rig) {
    this.#options = options;
    this.#rig = rig;
    for (let host = 0; host < options.destinations; host++) this.#addHost(host);
  }

  hour(hour: number): void {
    const { minutes } = this.#options;
    const startMs = MONDAY + hour * hourMs;
    this.#slotMs = startMs;
    this.#labels.push(...this.#eventsOf(hour, startMs));
    const active = this.#labels.filter(({ endMs }) => endMs >= startMs);
    for (let slot = 0; slot < minutes * 60 * slotsOfSecond; slot += stepSlots) this.#step(active, stepSlots, hour);
  }

  result(): WeekResult {
    const attacks = this.#labels.filter(({ kind }) => kind === 'attack' || kind === 'carpet');
    const ordinary = this.#labels.filter(({ kind }) => kind !== 'attack' && kind !== 'carpet');
    const started = this.#rig.phases('started');
    const last = new Map(this.#rig.attacks.map((attack) => [attack.id, attack]));
    const taken = new Set<string>();
    const missed: Label[] = [];
    const delays: number[] = [];
    let repeated = 0;
    let underOtherVector = 0;
    for (const label of attacks) {
      const of = started.filter((each) => isOf(each, label));
      for (const { id } of of) taken.add(id);
      const [first] = of;
      if (first === undefined) {
        missed.push(label);
        continue;
      }
      repeated += of.length - 1;
      delays.push(first.detected_ms - label.startMs);
      if (!last.get(first.id)?.vectors.includes(label.vector)) underOtherVector++;
    }
    const others = started.filter(({ id }) => !taken.has(id));
    const aboveThreshold = others.filter((each) => ordinary.some((label) => isOf(each, label) && isAbove(label)));
    return {
      found: attacks.length - missed.length,
      missed,
      repeated,
      underOtherVector,
      delays: delays.sort((a, b) => a - b),
      falseAlarms: others
        .filter((each) => !aboveThreshold.includes(each))
        .map((attack) => {
          const event = ordinary.find((label) => label.dst === attack.dst && isOf(attack, label));
          return { attack, kind: event?.kind ?? 'background', part: event === undefined ? 0 : partOfThreshold(event) };
        }),
      aboveThreshold,
      ordinaryEvents: ordinary.length,
      samples: this.#samples,
    };
  }

  #addHost(host: number): void {
    const { dice } = this.#rig;
    const address = base + host * 3 + 1;
    const size = Math.min(12_000, 60 * Math.exp(1.6 * dice.normal()));
    const busiest = 12 + 9 * dice.next();
    const quiet = 0.15 + 0.5 * dice.next();
    const add = (vector: Vector, share: number, octets: number) =>
      this.#flows.push({ address, vector: vectorNumber(vector), octets, pps: size * share, busiest, quiet, noise: 0 });
    const kind = dice.next();
    if (kind < 0.6) {
      add('tcp-ack', 0.9, 700);
      add('tcp-syn', 0.04, 60);
      add('tcp-rst', 0.01, 52);
      add('tcp-other', 0.003, 52);
    } else if (kind < 0.85) {
      add('udp-other', 0.9, 220);
      add('icmp', 0.01, 84);
    } else if (kind < 0.95) {
      add('udp-amplification', 0.3, 180);
      add('tcp-syn-ack', 0.1, 60);
      add('tcp-ack', 0.5, 1100);
    } else {
      add('esp', 0.6, 900);
      add('gre', 0.2, 900);
      add('ip-fragment', 0.02, 1400);
    }
  }

  /** Ordinary ones in every hour; attacks spread over all of them. */
  #eventsOf(hour: number, startMs: number): Label[] {
    const { dice } = this.#rig;
    const { minutes, hours, attacks, destinations } = this.#options;
    const host = () => base + dice.below(destinations) * 3 + 1;
    const lasting = (seconds: number) => {
      const most = minutes * 60 - seconds - 70;
      const from = startMs + Math.floor((20 + dice.next() * most) * 1000);
      return { startMs: from, endMs: from + seconds * 1000 };
    };
    const events: Label[] = [];
    const event = (kind: Label['kind'], dst: string, vector: Vector, pps: number, octets: number, seconds: number) =>
      events.push({ kind, dst, vector, pps, octets, ...lasting(seconds) });
    const text = (value: number) => formatAddress({ family: 4, value: BigInt(value) });
    event('flash crowd', text(host()), 'tcp-ack', 2_000 + 93_000 * dice.next() ** 2, 700, 150);
    event('flash crowd', text(host()), 'tcp-syn', 500 + 9_000 * dice.next() ** 2, 60, 150);
    event('bulk transfer', text(host()), 'tcp-ack', (200e6 + 750e6 * dice.next()) / 8 / 1450, 1450, 120);
    event('scan', '100.64.0.0/16', 'tcp-syn', 5_000 + 45_000 * dice.next(), 60, 100);
    const count = Math.floor(((hour + 1) * attacks) / hours) - Math.floor((hour * attacks) / hours);
    const used = new Set(events.map(({ dst }) => dst));
    for (let number = 0; number < count; number++) {
      const vector = attackVectors[dice.below(attackVectors.length)] as Vector;
      const isCarpet = dice.next() < 0.15;
      const address = host();
      const dst = isCarpet ? `${text((address & ~255) >>> 0)}/24` : text(address);
      if (used.has(dst) || events.some((each) => each.kind === 'carpet' || (isCarpet && each.kind === 'attack')))
        continue;
      used.add(dst);
      const threshold = (defaultThresholds[vector].pps ?? 0) * (isCarpet ? 4 : 1);
      event(isCarpet ? 'carpet' : 'attack', dst, vector, threshold * 2 * 15 ** dice.next(), 100, 90);
    }
    return events;
  }

  /** Rates stay for ten seconds; samples fall on flows by their rates. */
  #step(labels: readonly Label[], slots: number, hour: number): void {
    const { dice } = this.#rig;
    const flows = [...this.#flows];
    const rates = flows.map((flow) => {
      flow.noise = 0.9 * flow.noise + 0.1 * dice.normal();
      return flow.pps * daily(flow, hour) * Math.exp(flow.noise);
    });
    for (let slot = 0; slot < slots; slot++) {
      const at = this.#slotMs;
      const extra = labels.flatMap((label) => this.#extra(label, at));
      this.#slot(flows, rates, extra);
    }
  }

  /** What an event adds in this slot, as samples. */
  #extra(label: Label, at: number): Counted[] {
    const { dice } = this.#rig;
    const share = (Math.min(at + SLOT_MILLISECONDS, label.endMs) - Math.max(at, label.startMs)) / SLOT_MILLISECONDS;
    if (share <= 0) return [];
    const ramp = label.kind === 'flash crowd' ? Math.min(1, (at - label.startMs) / 30_000) : 1;
    const samples = dice.poisson((label.pps * ramp * share) / slotsOfSecond / this.#options.sampling);
    const { value, length } = prefixFromTrusted(label.dst);
    const many = 2 ** (32 - length);
    const vector = vectorNumber(label.vector);
    if (many === 1) return [{ address: Number(value), vector, octets: label.octets, samples }];
    return Array.from({ length: samples }, () => ({
      address: Number(value) + dice.below(many),
      vector,
      octets: label.octets,
      samples: 1,
    }));
  }

  #slot(flows: readonly Flow[], rates: readonly number[], extra: readonly Counted[]): void {
    const { dice } = this.#rig;
    const { sampling } = this.#options;
    const sums = new Float64Array(rates.length);
    let sum = 0;
    for (let index = 0; index < rates.length; index++) sums[index] = sum += rates[index] as number;
    const counts = new Map<number, number>();
    for (let left = dice.poisson(sum / slotsOfSecond / sampling); left > 0; left--) {
      const index = firstAbove(sums, dice.next() * sum);
      counts.set(index, (counts.get(index) ?? 0) + 1);
    }
    const rows: Counted[] = [...counts].map(([index, samples]) => {
      const { address, vector, octets } = flows[index] as Flow;
      return { address, vector, octets, samples };
    });
    rows.push(...extra.filter(({ samples }) => samples > 0));
    for (const { samples } of rows) this.#samples += samples;
    this.#rig.passTo(this.#slotMs + SLOT_MILLISECONDS + 20);
    this.#rig.hear(this.#report(rows));
    this.#slotMs += SLOT_MILLISECONDS;
    this.#rig.advance(SLOT_MILLISECONDS);
  }

  #report(rows: readonly Counted[]): SlotReport {
    const { sampling } = this.#options;
    const addresses = new Uint32Array(rows.length * 4);
    for (const [index, { address }] of rows.entries()) addresses.set(wordsOf(4, BigInt(address)), index * 4);
    return {
      type: 'slot',
      collector: 'a',
      sequence: this.#sequence++,
      slotMs: this.#slotMs,
      count: rows.length,
      families: new Uint8Array(rows.length).fill(4),
      addresses,
      vectors: Uint8Array.from(rows, ({ vector }) => vector),
      packets: Float64Array.from(rows, ({ samples }) => samples * sampling),
      bytes: Float64Array.from(rows, ({ samples, octets }) => samples * sampling * octets),
      samples: Float64Array.from(rows, ({ samples }) => samples),
      profiles: [],
    };
  }
}

interface Counted {
  readonly address: number;
  readonly vector: number;
  readonly octets: number;
  readonly samples: number;
}

const attackVectors: readonly Vector[] = vectors.filter((vector) => vector !== 'total');

function daily({ busiest, quiet }: Flow, hour: number): number {
  const day = Math.floor(hour / 24) % 7;
  const wave = (1 + Math.cos(((hour - busiest) / 12) * Math.PI)) / 2;
  return (quiet + (1 - quiet) * wave) * (day >= 5 ? 0.5 + 0.5 * quiet : 1);
}

function firstAbove(sums: Float64Array, value: number): number {
  let low = 0;
  let high = sums.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sums[middle] as number) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Whether the attack is on the label's destination, and began while it lasted. */
function isOf({ dst, detected_ms }: DetectedAttack, label: Label): boolean {
  if (detected_ms < label.startMs || detected_ms > label.endMs + 1_500) return false;
  return dst === label.dst || prefixContains(prefixFromTrusted(label.dst), prefixFromTrusted(dst));
}

function isAbove(label: Label): boolean {
  return partOfThreshold(label) > 1;
}

function partOfThreshold({ vector, pps, octets }: Label): number {
  const limits = defaultThresholds[vector];
  const { POSITIVE_INFINITY } = Number;
  return Math.max(pps / (limits.pps ?? POSITIVE_INFINITY), (pps * octets * 8) / (limits.bps ?? POSITIVE_INFINITY));
}
