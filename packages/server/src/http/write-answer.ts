/**
 * Carries out an operation that writes: one transaction around the command, and under an Idempotency-Key the answer
 * kept in that same transaction, and once more after a wait. Requests under one key at the same time: one is carried
 * out, the others replay its answer. A request that was refused is not kept: it changed nothing, and may be sent again.
 */
import type { Problem } from '@levee/contract/errors.ts';
import type { Operation } from '@levee/contract/operation.ts';
import type pg from 'pg';
import type { AppliedView } from '../agents/applied-view.ts';
import { saveAudit } from '../commands/audit.ts';
import { type Executor, executorOf, transact } from '../commands/executor.ts';
import { done, type Outcome, refuse } from '../commands/outcome.ts';
import { claimRequest, keepAnswer, type RequestName } from '../commands/repeated-request.ts';
import { DatabaseSilent, isUnanswered, isUnavailable, OutcomeUnknown } from '../store/failure.ts';
import { answerInTime } from './answer-deadline.ts';
import type { Answered, Call, WriteHandler, Written } from './call.ts';
import { preferenceApplied, waitSecondsOf } from './prefer.ts';
import { type Replay, replayAnswer } from './replay-answer.ts';
import { requestMark } from './request-mark.ts';
import { sealAnswer } from './sealed-answer.ts';

export interface WriteServices {
  readonly pool: pg.Pool;
  /** After a commit: the change log has something new. */
  readonly wake: () => void;
  /** Resolves as soon as it is known what becomes of the change, or when the time is over. */
  readonly waitApplied: AppliedView['waitApplied'];
}

/** How long after the end of a wait its answer may still come to be kept. */
const graceSeconds = 5;

const keyForm = /^[\x21-\x7e]{1,255}$/;

function repeatKeyOf(operation: Operation, call: Call): string | undefined {
  const header = call.raw.headers['idempotency-key'];
  return operation.method === 'POST' && header !== undefined ? String(header) : undefined;
}

/** What is wrong with the request's Idempotency-Key; empty when nothing is, or none was sent. */
export function judgeRepeatKey(operation: Operation, call: Call): readonly Problem[] {
  const key = repeatKeyOf(operation, call);
  if (key === undefined || keyForm.test(key)) return [];
  const message = 'Idempotency-Key: must be 1 to 255 visible ASCII characters';
  return [{ field: 'Idempotency-Key', code: 'malformed', message }];
}

export async function answerWrite(
  services: WriteServices,
  operation: Operation,
  handler: WriteHandler,
  call: Call,
  judged: unknown,
): Promise<Answered> {
  const apiKey = String(call.raw.headers['x-api-key']);
  const waited = operation.waits ? waitSecondsOf(call.raw.headers.prefer) : undefined;
  const repeatable = repeatableOf(operation, call, apiKey, waited);
  const prepared = handler.prepare === undefined ? judged : await handler.prepare(judged);
  const run = async (executor: Executor) => {
    const written = await handler.run(call, executor, prepared);
    if (!written.ok || written.value.audit === 'kept') return written;
    const { audit } = written.value;
    if (audit.length > 0 && !executor.inTransaction) throw new Error(`${operation.id}: audit outside a transaction`);
    await saveAudit(executor, { caller: call.caller, origin: call.origin, operation: operation.id }, audit);
    return written;
  };

  const carryOut = async (): Promise<Outcome<CarriedOut | Replay>> => {
    const outcome =
      repeatable !== undefined
        ? await transact(services.pool, (executor) => runOnce(executor, repeatable, run))
        : handler.alone
          ? await run(executorOf(services.pool)).catch(unknownAfter(isUnanswered))
          : await transact(services.pool, run);
    if (outcome.ok && 'render' in outcome.value) await finish(services, outcome.value);
    return outcome;
  };
  // The transaction goes on without the client.
  const outcome = await answerInTime(carryOut()).catch(unknownAfter((error) => error instanceof DatabaseSilent));
  if (!outcome.ok) return outcome;
  if (!('render' in outcome.value)) {
    return { ok: true, answer: await replayAnswer(services.pool, apiKey, outcome.value, waited) };
  }
  const { change, uuids = [], render, settled, kept } = outcome.value;
  const rendered = () => answerInTime(Promise.resolve(render())).catch(unknownAfter(isUnavailable));
  if (change === undefined || waited === undefined) return { ok: true, answer: { body: kept ?? (await rendered()) } };
  const milliseconds = waited * 1000;
  const become = await (settled?.(milliseconds) ?? services.waitApplied(change, milliseconds, uuids));
  const answer = { body: await rendered(), headers: { 'preference-applied': preferenceApplied(waited, become) } };
  if (repeatable !== undefined) await keepFinal(services.pool, repeatable.name, sealAnswer(apiKey, answer));
  return { ok: true, answer };
}

/** `kept`: the answer from before the commit, which a repeated request gets unless a final one follows. */
interface CarriedOut extends Written {
  readonly kept?: string;
}

/** The change is made, and its answer known: that it could not be kept leaves the earlier one to repeated requests. */
async function keepFinal(pool: pg.Pool, name: RequestName, sealed: Buffer): Promise<void> {
  try {
    await answerInTime(keepAnswer(executorOf(pool), name, sealed));
  } catch (error) {
    if (!isUnavailable(error)) throw error;
  }
}

/** What follows a commit, whether or not the client still waits for it. */
async function finish(services: WriteServices, written: Written): Promise<void> {
  await written.committed?.();
  if (written.change !== undefined) services.wake();
}

/** Where such a failure leaves open whether the change was made, or says nothing of it. */
function unknownAfter(isSuch: (error: unknown) => boolean) {
  return (error: unknown): never => {
    throw isSuch(error) && !(error instanceof OutcomeUnknown) ? new OutcomeUnknown(error) : error;
  };
}

interface Repeatable {
  readonly name: RequestName;
  readonly apiKey: string;
  readonly waited: number | undefined;
}

function repeatableOf(
  operation: Operation,
  call: Call,
  apiKey: string,
  waited: number | undefined,
): Repeatable | undefined {
  const key = repeatKeyOf(operation, call);
  if (key === undefined) return undefined;
  const mark = requestMark(apiKey, String(call.raw.method), String(call.raw.url), call.body);
  return { name: { keyUuid: call.caller.keyUuid, key, mark }, apiKey, waited };
}

async function runOnce(
  executor: Executor,
  { name, apiKey, waited }: Repeatable,
  run: (executor: Executor) => Promise<Outcome<Written>>,
): Promise<Outcome<CarriedOut | Replay>> {
  const claim = await claimRequest(executor, name);
  if (claim.kind === 'repeated') return done({ name, kept: claim.kept });
  if (claim.kind === 'other') return keyReused;
  const outcome = await run(executor);
  if (!outcome.ok) return outcome;
  const body = await outcome.value.render();
  const waits = waited !== undefined && outcome.value.change !== undefined;
  const finalWithin = waits ? waited + graceSeconds : undefined;
  await keepAnswer(executor, name, sealAnswer(apiKey, { body, headers: {} }), finalWithin);
  return done({ ...outcome.value, kept: body });
}

const keyReused = refuse('idempotency_key_reused', {
  field: 'Idempotency-Key',
  code: 'idempotency_key_reused',
  message: 'Idempotency-Key: was used before with another request; a new request needs a new key',
});
