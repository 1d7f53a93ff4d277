/**
 * Carries out an operation that writes: one transaction around the command, and under an Idempotency-Key the answer
 * kept in that same transaction. Requests under one key at the same time: one is carried out, the others replay its
 * answer. A request that was refused is not kept: it changed nothing, and may be sent again.
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
import { requestMark } from './request-mark.ts';
import { openAnswer, sealAnswer } from './sealed-answer.ts';

export interface WriteServices {
  readonly pool: pg.Pool;
  /** After a commit: the change log has something new. */
  readonly wake: () => void;
  /** Resolves as soon as it is known what becomes of the change, or when the time is over. */
  readonly waitApplied: AppliedView['waitApplied'];
}

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
  const sent = call.raw.headers;
  const repeatKey = repeatKeyOf(operation, call);
  const prepared = handler.prepare === undefined ? judged : await handler.prepare(judged);
  const run = async (executor: Executor) => {
    const written = await handler.run(call, executor, prepared);
    if (!written.ok || written.value.audit === 'kept') return written;
    const { audit } = written.value;
    if (audit.length > 0 && !executor.inTransaction) throw new Error(`${operation.id}: audit outside a transaction`);
    await saveAudit(executor, { caller: call.caller, origin: call.origin, operation: operation.id }, audit);
    return written;
  };

  const carryOut = async (): Promise<Outcome<Written | string>> => {
    const outcome =
      repeatKey !== undefined
        ? await transact(services.pool, (executor) => runOnce(executor, call, repeatKey, run))
        : handler.alone
          ? await run(executorOf(services.pool)).catch(unknownAfter(isUnanswered))
          : await transact(services.pool, run);
    if (outcome.ok && typeof outcome.value !== 'string') await finish(services, outcome.value);
    return outcome;
  };
  // The transaction goes on without the client.
  const outcome = await answerInTime(carryOut()).catch(unknownAfter((error) => error instanceof DatabaseSilent));
  if (!outcome.ok) return outcome;
  if (typeof outcome.value === 'string') {
    return { ok: true, answer: { body: outcome.value, headers: { 'idempotent-replayed': 'true' } } };
  }
  const { change, uuids = [], render, settled } = outcome.value;
  const rendered = () => answerInTime(Promise.resolve(render())).catch(unknownAfter(isUnavailable));
  const seconds = operation.waits && change !== undefined ? waitSecondsOf(sent.prefer) : undefined;
  if (change === undefined || seconds === undefined) return { ok: true, answer: { body: await rendered() } };
  const milliseconds = seconds * 1000;
  const become = await (settled?.(milliseconds) ?? services.waitApplied(change, milliseconds, uuids));
  const headers = { 'preference-applied': preferenceApplied(seconds, become) };
  return { ok: true, answer: { body: await rendered(), headers } };
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

/** A string is a kept answer. */
async function runOnce(
  executor: Executor,
  call: Call,
  key: string,
  run: (executor: Executor) => Promise<Outcome<Written>>,
): Promise<Outcome<Written | string>> {
  const apiKey = String(call.raw.headers['x-api-key']);
  const mark = requestMark(apiKey, String(call.raw.method), String(call.raw.url), call.body);
  const name: RequestName = { keyUuid: call.caller.keyUuid, key, mark };
  const claim = await claimRequest(executor, name);
  if (claim.kind === 'repeated') return done(openAnswer(apiKey, claim.answer));
  if (claim.kind === 'other') {
    return refuse('idempotency_key_reused', {
      field: 'Idempotency-Key',
      code: 'idempotency_key_reused',
      message: 'Idempotency-Key: was used before with another request; a new request needs a new key',
    });
  }
  const outcome = await run(executor);
  if (outcome.ok) await keepAnswer(executor, name, sealAnswer(apiKey, await outcome.value.render()));
  return outcome;
}
