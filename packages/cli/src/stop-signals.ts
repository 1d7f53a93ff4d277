/**
 * Owns what a signal to stop means. A terminal's Ctrl-C reaches every process of its group, and npm and the bootstrap
 * hand it on as well: one press arrives several times within milliseconds and must count once.
 */

const SAME_PRESS_MILLISECONDS = 1_000;

/** The first signal calls `stop`; one that comes clearly later calls `force`: somebody has lost patience. */
export function onStopSignals(stop: (signal: NodeJS.Signals) => void, force: (signal: NodeJS.Signals) => void): void {
  let firstAt: number | undefined;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) {
    process.on(signal, () => {
      if (firstAt === undefined) {
        firstAt = performance.now();
        stop(signal);
      } else if (performance.now() - firstAt > SAME_PRESS_MILLISECONDS) force(signal);
    });
  }
}
