/**
 * Owns how much passes of what may belong to sessions that ran before a filter. They must not break, and an attack that runs
 * looks the same: what it gains is bounded here.
 */
import { type KindMeter, settlingSeconds } from './filter-kind.ts';

/**
 * Of kinds that go by flows. A packet makes nothing known, the server's answer does (a reset does not). An unanswered one has
 * a place in conntrack for half a minute (UDP) or five: 55 000 of one address, so that attacks on several can fill a table of
 * 262 144.
 */
export const settlingMeter: KindMeter = { name: 'settling', of: 'destination', packetsPerSecond: 5000, burst: 5000 };

/**
 * Of kinds that remember sources: one packet makes its source known. All players of a usual server at once, of a big one within
 * seconds; a larger burst would be a running attack's at once, and leave less for those who are to be heard (decision 0100).
 */
export const learningMeter: KindMeter = { name: 'learned', of: 'destination', packetsPerSecond: 250, burst: 500 };

/** Sources of one destination that become known while a filter settles. */
export const mostLearned = learningMeter.packetsPerSecond * settlingSeconds + learningMeter.burst;
