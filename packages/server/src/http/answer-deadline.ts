/**
 * Bounds how long a client waits for the database: one that is frozen, or cut off without a word, keeps its connections
 * open and answers nothing. What was begun goes on without the client; it is never cut short here.
 */
import { DatabaseSilent } from '../store/failure.ts';

/** For all statements of a request; waiting for routers (`Prefer: wait`) does not count. */
export const ANSWER_MILLISECONDS = 10_000;

/** Rejects with DatabaseSilent when the time is over. `late`: what came after that; a failure then is nobody's. */
export function answerInTime<T>(
  work: Promise<T>,
  late?: (value: T) => void,
  milliseconds = ANSWER_MILLISECONDS,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      reject(new DatabaseSilent());
    }, milliseconds);
    work.then(
      (value) => {
        clearTimeout(timer);
        if (isLate) late?.(value);
        else resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
