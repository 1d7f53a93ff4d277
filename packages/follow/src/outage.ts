/**
 * Says once that something which is tried again and again keeps failing, and once that it works again. A failure that
 * ends within moments is not worth an operator's eye: an edge that starts beside its control plane always sees one.
 * Owns when it is said; never decides about trying again.
 */
import type { Logger } from 'pino';

const patienceMilliseconds = 3_000;

export interface Outage {
  /** At every failed attempt. */
  failed(details: object): void;
  /** At every success. */
  over(): void;
}

/** `now`: milliseconds of a clock that never goes back. */
export function watchOutage(logger: Logger, message: string, now: () => number = () => performance.now()): Outage {
  let since: number | undefined;
  let told = false;
  return {
    failed(details) {
      since ??= now();
      if (told || now() - since < patienceMilliseconds) {
        logger.debug(details, message);
        return;
      }
      told = true;
      logger.warn(details, message);
    },
    over() {
      if (told) logger.warn(`over after ${Math.round((now() - (since ?? 0)) / 1000)} s: ${message}`);
      since = undefined;
      told = false;
    },
  };
}
