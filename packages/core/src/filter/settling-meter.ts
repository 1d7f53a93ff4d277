/** Owns how much passes of what may belong to flows that ran before a filter, for the kinds that go by flows. */
import type { KindMeter } from './filter-kind.ts';

/**
 * A flow needs one packet of it, and is known from then on. 55 000 in the ten seconds: what they leave behind (in conntrack
 * for five minutes, in a filter's memory for its time) is far from filling either.
 */
export const settlingMeter: KindMeter = { name: 'settling', of: 'destination', packetsPerSecond: 5000, burst: 5000 };
