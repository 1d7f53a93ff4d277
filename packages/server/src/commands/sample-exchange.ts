/**
 * How recent traffic is asked for of detectors by way of the database: any replica may ask, and any may have a detector's
 * stream. Owns the two tables, which are of the moment, and their bounds. Never in a transaction: nobody else would hear of it
 * before its end.
 */
import type { PacketSample, SamplesAnswer } from '@levee/contract/detector.ts';
import type { Executor } from './executor.ts';

export const SAMPLES_CHANNEL = 'levee_samples';
/** Questions that are open at a time, over all replicas. */
export const MOST_OPEN = 64;
export const MOST_PACKETS = 1_000;
/** What a replica left behind that died while it asked. */
const FORGOTTEN_SECONDS = 30;
/** Detectors report every ten seconds. */
const SEEN_SECONDS = 30;

/** What is told on the channel, as JSON. */
export interface SampleRequest {
  readonly uuid: string;
  /** An address or a subnet. */
  readonly dst: string;
  readonly seconds: number;
  readonly most: number;
}

const askStatement = {
  name: 'samples_ask',
  text: `with forgotten as (
      delete from sample_request where asked_at < now() - interval '${FORGOTTEN_SECONDS} seconds'
    ), made as (
      insert into sample_request (uuid, dst, seconds, most)
      select $1, $2, $3, $4 where (
        select count(*) from sample_request where asked_at >= now() - interval '${FORGOTTEN_SECONDS} seconds'
      ) < ${MOST_OPEN} returning uuid
    )
    select pg_notify('${SAMPLES_CHANNEL}', $5) from made`,
};

/** False: too many are open already, and nothing was asked. */
export async function askForSamples(executor: Executor, request: SampleRequest): Promise<boolean> {
  if (executor.inTransaction) throw new Error('samples are asked for in a transaction');
  const { uuid, dst, seconds, most } = request;
  const values = [uuid, dst, seconds, most, JSON.stringify(request)];
  return (await executor.rows(askStatement, values)).length > 0;
}

const standingStatement = {
  name: 'samples_standing',
  text: `select q.told, (select count(*) from sample_answer a where a.request_uuid = q.uuid) as answered,
      exists (select from detector where last_seen_at > now() - interval '${SEEN_SECONDS} seconds') as seen
    from sample_request q where q.uuid = $1`,
};

export interface Standing {
  /** Detectors that were told of it, and that answered. */
  readonly told: number;
  readonly answered: number;
  /** Whether any detector has reported lately. */
  readonly seen: boolean;
}

/** Undefined: it is forgotten. */
export async function standingOf(executor: Executor, uuid: string): Promise<Standing | undefined> {
  const [row] = await executor.rows<Standing & Record<string, unknown>>(standingStatement, [uuid]);
  return row && { told: row.told, answered: Number(row.answered), seen: row.seen };
}

const takeStatement = {
  name: 'samples_take',
  text: `with gone as (delete from sample_request where uuid = $1)
    select held, packets from sample_answer where request_uuid = $1 order by detector_uuid`,
};

export interface AnswerRow {
  readonly held: number;
  readonly packets: readonly PacketSample[];
}

/** What came, of each detector; the question is over with it. */
export function takeAnswers(executor: Executor, uuid: string): Promise<AnswerRow[]> {
  return executor.rows<AnswerRow & Record<string, unknown>>(takeStatement, [uuid]);
}

const toldStatement = {
  name: 'samples_told',
  text: 'update sample_request set told = told + $2 where uuid = $1',
};

/** That so many detectors were told of it here. */
export async function noteTold(executor: Executor, uuid: string, detectors: number): Promise<void> {
  await executor.rows(toldStatement, [uuid, detectors]);
}

const answerStatement = {
  name: 'samples_answer',
  text: `insert into sample_answer (request_uuid, detector_uuid, held, packets)
    select uuid, $2, $3, $4 from sample_request where uuid = $1 for key share
    on conflict do nothing`,
};

/** A question that nobody waits for any more is none. */
export async function saveAnswer(executor: Executor, detectorUuid: string, answer: SamplesAnswer): Promise<void> {
  const packets = JSON.stringify(answer.packets.slice(0, MOST_PACKETS));
  const held = Math.min(answer.held, 2 ** 31 - 1);
  await executor.rows(answerStatement, [answer.request, detectorUuid, held, packets]);
}
