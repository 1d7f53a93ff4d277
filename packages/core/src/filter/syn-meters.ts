/** Owns how many SYNs reach a destination through kinds that pass them. */
import type { KindMeter } from './filter-kind.ts';

/**
 * Of all sources together. A forged SYN that the server answers has a place in conntrack for one minute, another for two.
 * Servers of games: 500 a second, whose 64 000 places are below the size of the smallest usual table (65 536).
 */
export function synSum(packetsPerSecond: number): KindMeter {
  return { name: 'sum', of: 'destination', packetsPerSecond, burst: 4000 };
}

export const gameSyns = 500;
