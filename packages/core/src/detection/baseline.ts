/**
 * Owns what is usual for a destination and vector: hours of the week, how an hour goes into what was known, what is known of
 * an hour by days, and where it can matter at all. Pure; who keeps them is the detector's.
 */
import type { Rates, Usual } from './judge.ts';

export const HOURS = 168;
const hoursOfDay = 24;
const hourMilliseconds = 3_600_000;
/** 1970 began on a Thursday. */
const mondayOffsetHours = 72;

/** Each new hour counts so much from the fourth week on; before, all count alike. */
const newestShare = 0.3;
/** Of fewer days the same hour is not known: what one day had, or the hour before, may be the beginning of an attack. */
const leastDays = 3;
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

/** Learnt hours of a week, by their number; a weight of 0: that hour is not known. */
export interface LearntWeek {
  readonly pps: ArrayLike<number>;
  readonly bps: ArrayLike<number>;
  readonly weights: ArrayLike<number>;
}

/**
 * What is usual in this hour of the week: its own rates, or where it is not known the lower median of the same hour of other days.
 * Undefined: that hour is known of fewer than three days.
 */
export function usualAt({ pps, bps, weights }: LearntWeek, hour: number): Usual | undefined {
  const at = Array.from({ length: HOURS / hoursOfDay }, (_, day) => (hour + day * hoursOfDay) % HOURS);
  const days = at.filter((each) => (weights[each] ?? 0) > 0).map((each) => ratesAt(pps, bps, each));
  if (days.length < leastDays) return undefined;
  if ((weights[hour] ?? 0) > 0) return { ...ratesAt(pps, bps, hour), days };
  return { pps: lowerMedian(days.map((day) => day.pps)), bps: lowerMedian(days.map((day) => day.bps)), days };
}

function ratesAt(pps: ArrayLike<number>, bps: ArrayLike<number>, hour: number): Rates {
  return { pps: pps[hour] ?? 0, bps: bps[hour] ?? 0 };
}

function lowerMedian(rates: readonly number[]): number {
  return rates.toSorted((a, b) => a - b)[Math.floor((rates.length - 1) / 2)] ?? 0;
}

/** From half of the rate on at which `factor` times it is above a threshold, it is worth to be known. */
export function canMatter(rates: Rates, thresholds: Rates, factor: number): boolean {
  const least = 0.5 / Math.max(1, factor);
  return rates.pps >= least * thresholds.pps || rates.bps >= least * thresholds.bps;
}
