/** Owns the clocks of a detector that runs: the wall's, and the one that never steps. */
import type { DetectionClock } from './port.ts';

export const systemClock: DetectionClock = {
  now: Date.now,
  steady: () => performance.now(),
  after(milliseconds, run) {
    const timer = setTimeout(run, milliseconds);
    return () => clearTimeout(timer);
  },
};
