/**
 * Owns what is true of every meter besides its rate: how many it tells apart, how long it keeps a place, and what those share
 * that it has no place for (decision 0016). Never counts anything.
 */
import { type KindMeter, mostRemembered } from './filter-kind.ts';

/** Those without a place have in sum so many times what one with a place has. */
export const sharedTimes = 10;
/** Long enough that no flood of a few packets each gets a place twice in a second or two. */
const leastSeconds = 10;

export function mostApart({ most = mostRemembered }: KindMeter): number {
  return most;
}

/** From the last packet on. Not before the burst is there again: who waits gains nothing by being forgotten. */
export function placeSeconds({ burst, packetsPerSecond }: KindMeter): number {
  return Math.max(leastSeconds, Math.ceil(burst / packetsPerSecond));
}

/** Of all together that the meter has no place for. */
export function sharedBound({ burst, packetsPerSecond }: KindMeter): Pick<KindMeter, 'burst' | 'packetsPerSecond'> {
  return { packetsPerSecond: packetsPerSecond * sharedTimes, burst: burst * sharedTimes };
}
