/**
 * Owns what is usual for a destination and vector: hours of the week, how an hour goes into what was known, and where it
 * can matter at all. Pure; who keeps them is the detector's.
 */
import type { Rates } from './judge.ts';

export const HOURS = 168;
const hourMilliseconds = 3_600_000;
/** 1970 began on a Thursday. */
const mondayOffsetHours = 72;

/** Each new hour counts so much from the fourth week on; before, all count alike. */
const newestShare = 0.3;
/** A baseline above so many thresholds is learnt no further: slow growth must not hide everything. */
const mostThresholds = 4;

export interface LearntHour extends Rates {
  /** Hours that have gone into it; 0: none. */
  readonly weight: number;
}

/** 0 … 167, from Monday 00:00 UTC. */
export function hourOfWeek(atMs: number): number {
  const hour = (Math.floor(atMs / hourMilliseconds) + mondayOffsetHours) % HOURS;
  return hour;
}

export function hourStart(atMs: number): number {
  return Math.floor(atMs / hourMilliseconds) * hourMilliseconds;
}

/** `measured`: the mean of the hour, without what belonged to attacks. */
export function learn(known: LearntHour, measured: Rates, thresholds: Rates): LearntHour {
  const share = Math.max(newestShare, 1 / (known.weight + 1));
  const blend = (metric: 'pps' | 'bps') =>
    Math.min(known[metric] + share * (measured[metric] - known[metric]), mostThresholds * thresholds[metric]);
  return { pps: blend('pps'), bps: blend('bps'), weight: Math.min(known.weight + 1, 255) };
}

/** From half of the rate on at which `factor` times it is above a threshold, it is worth to be known. */
export function canMatter(rates: Rates, thresholds: Rates, factor: number): boolean {
  const least = 0.5 / Math.max(1, factor);
  return rates.pps >= least * thresholds.pps || rates.bps >= least * thresholds.bps;
}
