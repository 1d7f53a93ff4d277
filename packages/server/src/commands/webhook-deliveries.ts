/**
 * Deliveries as their webhook's owner has to do with them: reading the log, sending a test, sending one again. What is
 * queued here is sent by whichever replica sends; nothing here reaches out.
 */
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { type DeliveryRow, deliveryColumns, type WebhookRow } from './webhook-row.ts';
import { readWebhook } from './webhooks.ts';

export interface DeliveryPage {
  /** The latest first. */
  readonly rows: readonly DeliveryRow[];
  readonly more: boolean;
}

export interface DeliveryFilter {
  readonly state: string | undefined;
  /** Only those before the one with this sequence. */
  readonly before: number | undefined;
  readonly limit: number;
}

const listStatement = {
  name: 'webhook_deliveries_list',
  text: `select ${deliveryColumns} from webhook_delivery d
    where d.webhook_uuid = $1 and ($2::text is null or d.state = $2) and ($3::int8 is null or d.sequence < $3)
    order by d.sequence desc limit $4`,
};

export async function listDeliveries(
  executor: Executor,
  caller: Caller,
  webhook: string,
  { state, before, limit }: DeliveryFilter,
): Promise<Outcome<DeliveryPage>> {
  const known = await readWebhook(executor, caller, webhook);
  if (!known.ok) return known;
  const values = [webhook, state ?? null, before ?? null, limit + 1];
  const rows = await executor.rows<DeliveryRow>(listStatement, values);
  return done({ rows: rows.slice(0, limit), more: rows.length > limit });
}

const testStatement = {
  name: 'webhook_test',
  text: `insert into webhook_delivery as d (uuid, webhook_uuid, name, test_data) values ($1, $2, $3, $4)
    returning ${deliveryColumns}`,
};

export interface TestEvent {
  readonly uuid: string;
  readonly name: string;
  /** JSON text of its data. */
  readonly data: (webhook: WebhookRow) => string;
}

export async function queueTest(
  executor: Executor,
  caller: Caller,
  webhook: string,
  { uuid, name, data }: TestEvent,
): Promise<Outcome<DeliveryRow>> {
  const known = await readWebhook(executor, caller, webhook);
  if (!known.ok) return known;
  if (known.value.disabled || known.value.key_ended) return refuse('conflict', isDisabled);
  const [row] = await executor.rows<DeliveryRow>(testStatement, [uuid, known.value.uuid, name, data(known.value)]);
  if (row === undefined) throw new Error('an insert without a row');
  return done(row);
}

const againStatement = {
  name: 'webhook_delivery_again',
  text: `update webhook_delivery d set state = 'pending', next_attempt_at = clock_timestamp(), ended_at = null,
      round_at = clock_timestamp(), round_attempts = 0
    where d.uuid = $1 and d.webhook_uuid = $2 returning ${deliveryColumns}`,
};

/** Also of one that waits: then it is due now. */
export async function sendAgain(
  executor: Executor,
  caller: Caller,
  webhook: string,
  delivery: string,
): Promise<Outcome<DeliveryRow>> {
  const known = await readWebhook(executor, caller, webhook);
  if (!known.ok) return known;
  if (known.value.disabled || known.value.key_ended) return refuse('conflict', isDisabled);
  const [row] = await executor.rows<DeliveryRow>(againStatement, [delivery, known.value.uuid]);
  return row === undefined ? refuse('not_found') : done(row);
}

const isDisabled = {
  field: '',
  code: 'disabled',
  message: 'The webhook is disabled and gets nothing; enable it first.',
};
