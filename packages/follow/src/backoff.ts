/**
 * How long to wait before the next attempt: doubling from a fifth of a second up to a ceiling, each time a random part
 * of it, so that a thousand routers do not come back in step.
 */
export interface Backoff {
  /** Milliseconds. */
  next(): number;
  reset(): void;
}

const firstMilliseconds = 200;

export function createBackoff(ceilingMilliseconds: number, random: () => number = Math.random): Backoff {
  let step = 0;
  return {
    next() {
      const whole = Math.min(ceilingMilliseconds, firstMilliseconds * 2 ** step);
      step = Math.min(step + 1, 20);
      return Math.round(whole * (0.5 + random() / 2));
    },
    reset() {
      step = 0;
    },
  };
}
