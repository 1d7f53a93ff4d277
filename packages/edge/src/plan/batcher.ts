/**
 * When to work: at once after a rest, and otherwise no more often than once a period, so that what arrives together
 * shares one transaction. Runs one piece of work at a time; knows nothing of what the work is.
 */
export interface Batcher {
  /** There is something to do. */
  wake(): void;
  /** Resolves once nothing is under way and nothing is asked for. */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

/** `work` says whether it was of the kind that is to be spaced; what was not delays nothing that comes after it. */
export function createBatcher(periodMilliseconds: number, work: () => Promise<boolean>): Batcher {
  let asked = false;
  let running = false;
  let stopped = false;
  let startedAt = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let waiting: (() => void)[] = [];

  const settle = (): void => {
    if (running || ((asked || timer) && !stopped)) return;
    const waiters = waiting;
    waiting = [];
    for (const resolve of waiters) resolve();
  };
  const start = async (): Promise<void> => {
    timer = undefined;
    asked = false;
    running = true;
    const beganAt = performance.now();
    try {
      if (await work()) startedAt = beganAt;
    } finally {
      running = false;
      if (asked) schedule();
      settle();
    }
  };
  const schedule = (): void => {
    if (stopped || running || timer) return;
    const rest = startedAt + periodMilliseconds - performance.now();
    if (rest <= 0) void start();
    else timer = setTimeout(start, rest);
  };
  const idle = (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve);
      settle();
    });
  return {
    wake() {
      asked = true;
      schedule();
    },
    idle,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      timer = undefined;
      await idle();
    },
  };
}
