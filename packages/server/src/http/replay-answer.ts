/**
 * Answers a request that was carried out before under its Idempotency-Key: with the first one's final answer, headers
 * included. While the first is still waited for (`Prefer: wait`), here or at another replica, one that asks to wait
 * waits with it. Carries out nothing.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { executorOf } from '../commands/executor.ts';
import { type KeptAnswer, type RequestName, readKept } from '../commands/repeated-request.ts';
import { answerInTime } from './answer-deadline.ts';
import type { Answer } from './call.ts';
import { preferenceApplied } from './prefer.ts';
import { openAnswer } from './sealed-answer.ts';

export interface Replay {
  readonly name: RequestName;
  readonly kept: KeptAnswer;
}

/** The first replica does not say when it has the answer: asked for more and more seldom. */
const firstLookMilliseconds = 20;
const longestLookMilliseconds = 250;

/** `seconds`: of `Prefer: wait`. Throws what the driver throws. */
export async function replayAnswer(
  pool: pg.Pool,
  apiKey: string,
  { name, kept }: Replay,
  seconds: number | undefined,
): Promise<Answer> {
  const now = kept.isFinal || seconds === undefined ? kept : await finalOf(pool, name, kept, seconds * 1000);
  const { body, headers } = openAnswer(apiKey, now.answer);
  // From before the wait of the first: only what this one waited for can be said.
  const waited =
    now.isFinal || seconds === undefined ? {} : { 'preference-applied': preferenceApplied(seconds, 'timeout') };
  return { body, headers: { ...headers, ...waited, 'idempotent-replayed': 'true' } };
}

/** The final answer when it comes in time, else what is kept. */
async function finalOf(pool: pg.Pool, name: RequestName, kept: KeptAnswer, milliseconds: number): Promise<KeptAnswer> {
  const executor = executorOf(pool);
  const end = performance.now() + milliseconds;
  let present = kept;
  for (let pause = firstLookMilliseconds; !present.isFinal && performance.now() < end; pause *= 2) {
    await delay(Math.max(0, Math.min(pause, longestLookMilliseconds, end - performance.now())));
    present = (await answerInTime(readKept(executor, name))) ?? { ...present, isFinal: true };
  }
  return present;
}
