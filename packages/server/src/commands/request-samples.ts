/**
 * Asks every detector for packets that it sampled lately to a destination, and waits for their answers within a deadline.
 * Says why when there are none. Owns the waiting; the tables are `sample-exchange.ts`'s.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { PacketSample } from '@levee/contract/detector.ts';
import { newUuid } from '../store/new-uuid.ts';
import type { Executor } from './executor.ts';
import { type AnswerRow, askForSamples, MOST_PACKETS, standingOf, takeAnswers } from './sample-exchange.ts';

export interface WantedSamples {
  /** Canonical: an address or a subnet. */
  readonly dst: string;
  /** How far back. */
  readonly seconds: number;
  /** None from before: they went to whoever had the addresses then. */
  readonly sinceMs: number;
  readonly deadlineMilliseconds?: number;
}

export type FoundSamples =
  | {
      readonly ok: true;
      /** How many the detectors hold, of which `packets` may be a choice. */
      readonly held: number;
      /** Oldest first, at most 1 000. */
      readonly packets: readonly PacketSample[];
    }
  /** `busy`: too many are asked for at this moment. */
  | { readonly ok: false; readonly reason: 'no_detector' | 'no_answer' | 'busy' };

export const DEADLINE_MILLISECONDS = 2_000;
/** After so long every replica that has a detector's stream has told it. */
const TOLD_MILLISECONDS = 150;
const SHORTEST_PAUSE_MILLISECONDS = 5;
const LONGEST_PAUSE_MILLISECONDS = 100;

/** Throws what the driver throws. */
export async function requestSamples(executor: Executor, wanted: WantedSamples): Promise<FoundSamples> {
  const { dst, sinceMs, deadlineMilliseconds = DEADLINE_MILLISECONDS } = wanted;
  const seconds = Math.max(1, Math.min(wanted.seconds, Math.ceil((Date.now() - sinceMs) / 1000)));
  const uuid = newUuid();
  if (!(await askForSamples(executor, { uuid, dst, seconds, most: MOST_PACKETS })))
    return { ok: false, reason: 'busy' };
  const isAlone = await untilAnswered(executor, uuid, deadlineMilliseconds);
  const answers = await takeAnswers(executor, uuid);
  if (answers.length > 0) return { ok: true, ...merged(answers, sinceMs) };
  return { ok: false, reason: isAlone ? 'no_detector' : 'no_answer' };
}

/** True when there is no detector to wait for. */
async function untilAnswered(executor: Executor, uuid: string, milliseconds: number): Promise<boolean> {
  const began = Date.now();
  for (let pause = SHORTEST_PAUSE_MILLISECONDS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MILLISECONDS)) {
    await delay(pause);
    const standing = await standingOf(executor, uuid);
    const passed = Date.now() - began;
    if (standing === undefined || passed >= milliseconds) return false;
    const { told, answered, seen } = standing;
    if (told === 0 && !seen && passed >= TOLD_MILLISECONDS) return true;
    // Replicas tell at their own pace: the answers of one are not those of all.
    if (told > 0 && answered >= told && passed >= TOLD_MILLISECONDS) return false;
  }
}

function merged(
  answers: readonly AnswerRow[],
  sinceMs: number,
): { readonly held: number; readonly packets: readonly PacketSample[] } {
  const told = answers.flatMap(({ packets }) => packets);
  const all = told.filter(({ at_ms }) => at_ms >= sinceMs).sort((a, b) => a.at_ms - b.at_ms);
  const count = Math.min(all.length, MOST_PACKETS);
  const packets = Array.from(
    { length: count },
    (_, index) => all[Math.floor((index * all.length) / count)] as PacketSample,
  );
  const held = answers.reduce((sum, each) => sum + each.held, 0);
  // Of a detector that holds more than it tells, as much of the rest is from before as of what it told.
  return { held: told.length === 0 ? 0 : Math.round((held * all.length) / told.length), packets };
}
