/** Waits for a condition, with a deadline: what tests do instead of sleeping. */
import { setTimeout as delay } from 'node:timers/promises';

export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  what: string,
  deadlineMilliseconds = 10_000,
): Promise<void> {
  const deadline = Date.now() + deadlineMilliseconds;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within ${deadlineMilliseconds} ms: ${what}`);
    await delay(5);
  }
}
