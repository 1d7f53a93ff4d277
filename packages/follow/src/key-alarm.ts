/**
 * Says loudly that the control plane no longer takes a process' key: nothing but an operator mends that. Owns how
 * often; stream and reports share one, so that one cause is said once. Decides nothing about connecting again.
 */
import type { Logger } from 'pino';

/** RFC 9110, 15.5.2. */
const unauthorized = 401;
const pauseMilliseconds = 60_000;

/** To be called with the status of every answer. */
export type KeyAlarm = (endpoint: string, status: number) => void;

/** `message`: what an operator is to do. `now`: milliseconds of a clock that never goes back. */
export function createKeyAlarm(logger: Logger, message: string, now: () => number = () => performance.now()): KeyAlarm {
  let saidAt: number | undefined;
  return (endpoint, status) => {
    if (status !== unauthorized) return;
    if (saidAt !== undefined && now() - saidAt < pauseMilliseconds) return;
    saidAt = now();
    logger.error({ endpoint, status }, message);
  };
}
