/** From requests about webhooks to commands, and from rows to answers. Decides nothing itself, sends nothing. */
import { randomBytes } from 'node:crypto';
import type { Problem } from '@levee/contract/errors.ts';
import { testEventName } from '@levee/contract/event-names.ts';
import { parseTargetUrl } from '@levee/core/webhook/target-url.ts';
import type pg from 'pg';
import type { AuditEntry } from '../../commands/audit.ts';
import { executorOf } from '../../commands/executor.ts';
import { type Outcome, refuse } from '../../commands/outcome.ts';
import { listDeliveries, queueTest, sendAgain } from '../../commands/webhook-deliveries.ts';
import type { DeliveryRow, WebhookRow } from '../../commands/webhook-row.ts';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  listWebhooks,
  readWebhook,
  rotateSecret,
} from '../../commands/webhooks.ts';
import { newUuid } from '../../store/new-uuid.ts';
import { type Call, type Handler, isSound, type Judged, judgedBy, membersOf, type Wrote } from '../call.ts';
import { nextLink, notACursor, sequenceOf } from '../list-answer.ts';
import { createBuckets } from '../rate-limit.ts';
import { isUuid } from '../uuid-text.ts';
import { deliveryJson, doneTo, testJson, webhookAudit, webhookJson } from '../webhook-answer.ts';

/** What http needs of whoever sends. */
export interface WebhookPort {
  /** Where the address leads now. `certain` false: it may be another time. */
  readonly judge: (
    url: URL,
  ) => Promise<{ readonly ok: boolean; readonly certain?: boolean; readonly sentence?: string }>;
  /** `due`: it has something new to send. `anew`: it was changed. */
  readonly wake: (webhook: string, reason: 'due' | 'anew') => void;
}

export interface WebhookServices {
  readonly pool: pg.Pool;
  readonly webhooks: WebhookPort;
}

interface WebhookBody {
  readonly url?: string;
  readonly events?: readonly string[];
  readonly description?: string | null;
  readonly disabled?: boolean;
}

/** What is wrong with where it leads, found out before the transaction. */
interface Prepared {
  readonly body: WebhookBody;
  readonly problem: Problem | undefined;
}

/** Tests and repetitions of a webhook in a minute, at a replica: each is sent at once, however often it failed. */
const ASKED_PER_MINUTE = 30;

/** As Standard Webhooks writes them: 32 random bytes. */
const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;

export function webhookHandlers({ pool, webhooks }: WebhookServices): Record<string, Handler> {
  const prepare = async (judged: unknown): Promise<Prepared> => {
    const body = judged as WebhookBody;
    return { body, problem: body.url === undefined ? undefined : await judgeTarget(body.url, webhooks) };
  };
  const written = (row: WebhookRow, audit: readonly AuditEntry[], more = {}): Wrote => ({
    ok: true,
    value: {
      render: () => JSON.stringify({ ...webhookJson(row), ...more }),
      audit,
      committed: () => webhooks.wake(row.uuid, 'anew'),
    },
  });
  const asked = createBuckets(() => performance.now());
  const queued = (outcome: Outcome<DeliveryRow>, audit: readonly AuditEntry[]): Wrote => {
    if (!outcome.ok) return outcome;
    const row = outcome.value;
    const { allowed, retrySeconds } = asked.take(row.webhook_uuid, ASKED_PER_MINUTE);
    if (!allowed) return { ok: false, failure: { code: 'rate_limited', details: [askedTooOften], retrySeconds } };
    const render = () => JSON.stringify(deliveryJson(row));
    return { ok: true, value: { render, audit, committed: () => webhooks.wake(row.webhook_uuid, 'due') } };
  };
  return {
    createWebhook: {
      write: {
        judge: judgeBody,
        prepare,
        async run({ caller }, executor, { body, problem }: Prepared) {
          if (problem !== undefined) return refuse('validation_failed', problem);
          const { url = '', events = [], description, disabled = false } = body;
          const secret = newSecret();
          const webhook = { uuid: newUuid(), url, events, description: description ?? undefined, disabled, secret };
          const created = await createWebhook(executor, caller, webhook);
          if (!created.ok) return created;
          return written(created.value, webhookAudit(caller, undefined, created.value), { secret });
        },
      },
    },
    listWebhooks: {
      async read({ caller }) {
        const rows = await listWebhooks(executorOf(pool), caller);
        return { ok: true, answer: { body: JSON.stringify(rows.map(webhookJson)) } };
      },
    },
    readWebhook: {
      async read(call) {
        const uuid = uuidIn(call);
        if (uuid === undefined) return refuse('not_found');
        const read = await readWebhook(executorOf(pool), call.caller, uuid);
        return read.ok ? { ok: true, answer: { body: JSON.stringify(webhookJson(read.value)) } } : read;
      },
    },
    changeWebhook: {
      write: {
        judge: judgeBody,
        prepare,
        async run(call, executor, { body, problem }: Prepared) {
          const uuid = uuidIn(call);
          if (uuid === undefined) return refuse('not_found');
          const { url, events, description, disabled } = body;
          const changed = await changeWebhook(executor, call.caller, uuid, { url, events, description, disabled });
          if (!changed.ok) return changed;
          // Only its owner is told where names lead.
          if (problem !== undefined) return refuse('validation_failed', problem);
          const { before, after } = changed.value;
          return written(after, webhookAudit(call.caller, before, after));
        },
      },
    },
    deleteWebhook: {
      write: {
        async run(call, executor) {
          const uuid = uuidIn(call);
          if (uuid === undefined) return refuse('not_found');
          const deleted = await deleteWebhook(executor, call.caller, uuid);
          if (!deleted.ok) return deleted;
          const body = JSON.stringify({ uuid, message: 'The webhook is deleted, with its deliveries.' });
          const audit = webhookAudit(call.caller, deleted.value, undefined);
          return { ok: true, value: { render: () => body, audit, committed: () => webhooks.wake(uuid, 'anew') } };
        },
      },
    },
    testWebhook: {
      write: {
        async run(call, executor) {
          const uuid = uuidIn(call);
          if (uuid === undefined) return refuse('not_found');
          const data = (row: WebhookRow) => JSON.stringify(testJson(row));
          const event = { uuid: newUuid(), name: testEventName, data };
          return queued(await queueTest(executor, call.caller, uuid, event), []);
        },
      },
    },
    rotateWebhookSecret: {
      write: {
        async run(call, executor) {
          const uuid = uuidIn(call);
          if (uuid === undefined) return refuse('not_found');
          const secret = newSecret();
          const rotated = await rotateSecret(executor, call.caller, uuid, secret);
          if (!rotated.ok) return rotated;
          return written(rotated.value, [doneTo(call.caller, uuid)], { secret });
        },
      },
    },
    listWebhookDeliveries: {
      judge: judgePage,
      async read(call, before) {
        const uuid = uuidIn(call);
        if (uuid === undefined) return refuse('not_found');
        const { state, limit = 100 } = call.query as { state?: string; limit?: number };
        const filter = { state, before: before as number | undefined, limit };
        const listed = await listDeliveries(executorOf(pool), call.caller, uuid, filter);
        if (!listed.ok) return listed;
        const { rows, more } = listed.value;
        const body = JSON.stringify(rows.map(deliveryJson));
        const last = rows.at(-1);
        if (!more || last === undefined) return { ok: true, answer: { body } };
        return { ok: true, answer: { body, headers: { link: nextLink(call, last.sequence) } } };
      },
    },
    retryWebhookDelivery: {
      write: {
        async run(call, executor) {
          const uuid = uuidIn(call);
          const delivery = uuidIn(call, 'delivery_uuid');
          if (uuid === undefined || delivery === undefined) return refuse('not_found');
          return queued(await sendAgain(executor, call.caller, uuid, delivery), [doneTo(call.caller, uuid)]);
        },
      },
    },
  };
}

const askedTooOften: Problem = {
  field: '',
  code: 'asked_too_often',
  message: `Of a webhook ${ASKED_PER_MINUTE} tests and repetitions a minute are sent; Retry-After says when the next one is.`,
};

function judgeBody(call: Call, found: readonly Problem[]): Judged {
  const body = membersOf(call.body) as WebhookBody;
  if (typeof body.url !== 'string' || !isSound(found, '/url')) return { ok: true, value: body };
  const target = parseTargetUrl(body.url);
  if (!target.ok) return judgedBy([{ field: '/url', code: target.code, message: `url: ${target.sentence}` }]);
  return { ok: true, value: { ...body, url: target.url.href } };
}

/** A name that cannot be looked up at present is taken: it is judged again at each attempt. */
async function judgeTarget(url: string, { judge }: WebhookPort): Promise<Problem | undefined> {
  const { ok, certain, sentence } = await judge(new URL(url));
  if (ok || certain !== true) return undefined;
  return { field: '/url', code: 'not_reachable', message: `url: ${sentence}` };
}

function judgePage({ query }: Call): Judged {
  if (typeof query.cursor !== 'string') return { ok: true };
  const before = sequenceOf(query.cursor);
  return before === undefined ? judgedBy([notACursor]) : { ok: true, value: before };
}

function uuidIn({ params }: Call, name = 'uuid'): string | undefined {
  const text = params[name] ?? '';
  return isUuid(text) ? text.toLowerCase() : undefined;
}
