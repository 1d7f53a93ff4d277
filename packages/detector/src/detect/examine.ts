/**
 * Owns the look at what one slot touched: which keys are too much, which come near. Goes over nothing else, and changes
 * nothing but streaks. What becomes of it is decided elsewhere.
 */
import { canMatter } from '@levee/core/detection/baseline.ts';
import { type Excess, judge, limitsOf } from '@levee/core/detection/judge.ts';
import type { Baselines } from './baselines.ts';
import type { Levels, Places } from './places.ts';
import { type Traffic, WindowSums } from './traffic.ts';

export interface Finding {
  readonly destination: number;
  readonly vector: number;
  readonly excess: Excess;
  /** Judgements in a row. */
  readonly streak: number;
}

export interface Findings {
  readonly addresses: Finding[];
  readonly subnets: Finding[];
  /** Destinations that have half of what would be too much. */
  readonly warm: number[];
}

/** Of what is too much, from so much on a destination is looked at closely. */
const warmShare = 0.5;
/** Fewer samples say nothing about what is near. */
const leastSamples = 4;
const none = -1;
const sums = new WindowSums();
const slotSums = new WindowSums();

export function examine(traffic: Traffic, places: Places, baselines: Baselines): Findings {
  const findings: Findings = { addresses: [], subnets: [], warm: [] };
  for (const destination of traffic.touched) {
    traffic.align(destination);
    traffic.dropIdleKeys(destination);
    const levels = places.levels(traffic, destination);
    const isSubnet = traffic.isAggregate(destination);
    const near = Math.min(warmShare, 0.5 / Math.max(1, levels.factor));
    let isWarm = false;
    for (let key = traffic.firstKeys[destination] as number; key !== none; key = traffic.nextKeys[key] as number) {
      const vector = traffic.vectors[key] as number;
      traffic.sum(key, sums);
      if (traffic.baselines[key] !== none) {
        traffic.at(key, traffic.slot, slotSums);
        const isAttacked = isInAttack(traffic, destination);
        baselines.count(traffic.baselines[key] as number, slotSums.packets, slotSums.bytes, isAttacked);
      }
      const pps = sums.packets;
      const bps = sums.bytes * 8;
      if (pps < near * (levels.pps[vector] as number) && bps < near * (levels.bps[vector] as number)) {
        traffic.streaks[key] = 0;
        continue;
      }
      if (sums.samples < leastSamples) {
        traffic.streaks[key] = 0;
        continue;
      }
      if (look(traffic, baselines, levels, destination, key, findings, isSubnet)) isWarm = true;
    }
    if (isWarm) findings.warm.push(destination);
  }
  return findings;
}

export function isInAttack(traffic: Traffic, destination: number): boolean {
  if (traffic.attacks[destination] !== none) return true;
  const aggregate = traffic.aggregates[destination] as number;
  return aggregate !== none && traffic.attacks[aggregate] !== none;
}

/** Whether it is near. `sums` holds the key's second. */
function look(
  traffic: Traffic,
  baselines: Baselines,
  levels: Levels,
  destination: number,
  key: number,
  findings: Findings,
  isSubnet: boolean,
): boolean {
  const vector = traffic.vectors[key] as number;
  const thresholds = { pps: levels.pps[vector] as number, bps: levels.bps[vector] as number };
  const rates = { pps: sums.packets, bps: sums.bytes * 8 };
  const { samples } = sums;
  if (
    traffic.baselines[key] === none &&
    !isInAttack(traffic, destination) &&
    canMatter(rates, thresholds, levels.factor)
  ) {
    baselines.note(traffic, destination, key);
  }
  const usual = baselines.usual(traffic.baselines[key] as number);
  const limits = limitsOf(thresholds.pps, thresholds.bps, usual, levels.factor);
  const excess = judge(rates, samples, limits);
  if (excess === undefined) {
    traffic.streaks[key] = 0;
  } else {
    const streak = Math.min(255, (traffic.streaks[key] as number) + 1);
    traffic.streaks[key] = streak;
    (isSubnet ? findings.subnets : findings.addresses).push({ destination, vector, excess, streak });
  }
  return rates.pps >= warmShare * limits.pps || rates.bps >= warmShare * limits.bps;
}
