/**
 * Owns when a second of sampled traffic is too much: threshold, baseline and sampling error together. Pure. Never knows
 * of what the traffic is.
 */

/** With fewer samples nothing is said: 1.96/√12 is 57 % of the rate. */
export const LEAST_SAMPLES = 12;
/** Two sides of 95 % of a normal distribution, which a Poisson one is near to from a dozen on. */
const deviations = 1.96;
/** A window that is so many deviations above what it would have at the limit is too much at first sight. */
const clearDeviations = 4;
/** Otherwise it must be too much so many times in a row: four windows a second find everything that is rare. */
export const CONFIRMING_JUDGEMENTS = 3;

export interface Rates {
  readonly pps: number;
  readonly bps: number;
}

/** What is usual in an hour, with what the same hour had on each day of the week of which it is known. */
export interface Usual extends Rates {
  readonly days: readonly Rates[];
}

/** A limit is raised by what so many days of the week had in this hour, and by each more of them so many times. */
const raisingDays = 3;
const raiseOfDay = 1.25;

/** What a rate must exceed; Infinity: nothing is too much. */
export interface Limits {
  readonly pps: number;
  readonly bps: number;
  readonly baseline: Rates | undefined;
}

export interface Excess {
  readonly metric: 'pps' | 'bps';
  /** What was exceeded: the threshold, or so many times the baseline. */
  readonly value: number;
  readonly observed: number;
  readonly baseline: number | undefined;
  /** Chance would not do it in a lifetime of windows; else it is to be confirmed. */
  readonly isClear: boolean;
}

/**
 * What the rate is at least, as far as its samples tell: the lower bound of the sampling error (sFlow's √(1/n) rule,
 * sflow.org/packetSamplingBasics); 0 where they are too few.
 */
export function certainRate(rate: number, samples: number): number {
  return samples < LEAST_SAMPLES ? 0 : rate * (1 - deviations / Math.sqrt(samples));
}

/** By how much, 0 … 1, two measurements of the same rate may differ by sampling alone. */
export function samplingNoise(samples: number): number {
  return samples < LEAST_SAMPLES ? 1 : Math.min(1, (deviations * Math.SQRT2) / Math.sqrt(samples));
}

/**
 * The limits of a vector: its thresholds, or so many times what is usual where days say so. Three days of the week that had
 * more than a threshold divided by `factor` in this hour raise it by a quarter, each more by as much again: seven days to 3.05 times
 * the threshold, further nothing. Whoever makes his traffic usual before he attacks has a week to be seen in. A factor of 1 raises nothing.
 */
export function limitsOf(pps: number, bps: number, usual: Usual | undefined, factor: number): Limits {
  if (usual === undefined) return { pps, bps, baseline: undefined };
  return { pps: raised('pps', pps, usual, factor), bps: raised('bps', bps, usual, factor), baseline: usual };
}

function raised(metric: 'pps' | 'bps', threshold: number, usual: Usual, factor: number): number {
  const wanted = factor * usual[metric];
  if (!(wanted > threshold) || factor <= 1) return threshold;
  const days = usual.days.filter((day) => factor * day[metric] > threshold).length;
  if (days < raisingDays) return threshold;
  return Math.min(wanted, threshold * raiseOfDay ** (days - raisingDays + 1));
}

/** `rates`: what one second had, never scaled up from less. Of both metrics the one that is exceeded more. */
export function judge(rates: Rates, samples: number, limits: Limits): Excess | undefined {
  const pps = certainRate(rates.pps, samples) / limits.pps;
  const bps = certainRate(rates.bps, samples) / limits.bps;
  if (!(pps > 1 || bps > 1)) return undefined;
  const metric = pps >= bps ? 'pps' : 'bps';
  const value = limits[metric];
  const observed = rates[metric];
  const atLimit = (value / observed) * samples;
  const isClear = samples - atLimit >= clearDeviations * Math.sqrt(atLimit);
  return { metric, value, observed, baseline: limits.baseline?.[metric], isClear };
}
