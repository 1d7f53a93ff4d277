/**
 * Webhooks of an account: creating, reading, changing, deleting, another secret. Each is its owner's alone, to others it
 * does not exist. Where one leads was judged before; a secret leaves here once, as text, with what made it.
 */
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { isLimited } from './key-limits.ts';
import { done, type Failure, type Outcome, refuse } from './outcome.ts';
import { withinQuota } from './quota.ts';
import { type WebhookRow, webhookColumns } from './webhook-row.ts';

export interface NewWebhook {
  readonly uuid: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly description: string | undefined;
  readonly disabled: boolean;
  readonly secret: string;
}

/** SQL: what has happened up to now is none of a webhook's that is made or enabled. */
const lastEvent = '(select coalesce(max(sequence), 0) from event)';

const createStatement = {
  name: 'webhook_create',
  text: `insert into webhook as w (uuid, owner_uuid, role, url, events, description, disabled, secret, key_uuid,
      after_sequence, created_at, updated_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, ${lastEvent}, date_trunc('milliseconds', now()),
      date_trunc('milliseconds', now()))
    returning ${webhookColumns}`,
};

/** A webhook ends with the key that said what is sent where, when that key has limits: it is the longer arm of it. */
const bindingKey = ({ limits, keyUuid }: Caller) => (isLimited(limits) ? keyUuid : null);

/** A webhook sends what the stream of events shows: a key that may not follow that one has nothing sent to itself either. */
function mayNotFollow({ limits }: Caller): { readonly ok: false; readonly failure: Failure } | undefined {
  if (limits.operations === undefined || limits.operations.has('readEvents')) return undefined;
  const message =
    'A webhook sends what `readEvents` shows, which is not among the operations that this API key is limited to.';
  return refuse('operation_not_allowed', { field: '', code: 'operation_not_allowed', message });
}

export async function createWebhook(
  executor: Executor,
  caller: Caller,
  webhook: NewWebhook,
): Promise<Outcome<WebhookRow>> {
  const refused = mayNotFollow(caller);
  if (refused !== undefined) return refused;
  const within = await withinQuota(executor, caller, 'webhooks', 1);
  if (!within.ok) return within;
  const { uuid, url, events, description, disabled, secret } = webhook;
  const { accountUuid, role } = caller;
  const values = [uuid, accountUuid, role, url, events, description ?? null, disabled, secret, bindingKey(caller)];
  const [row] = await executor.rows<WebhookRow>(createStatement, values);
  if (row === undefined) throw new Error('an insert without a row');
  return done(row);
}

const listStatement = {
  name: 'webhook_list',
  text: `select ${webhookColumns} from webhook w where w.owner_uuid = $1 and w.deletion_marked_at is null
    order by w.created_at, w.uuid`,
};

export function listWebhooks(executor: Executor, caller: Caller): Promise<WebhookRow[]> {
  return executor.rows<WebhookRow>(listStatement, [caller.accountUuid]);
}

const readStatement = {
  name: 'webhook_read',
  text: `select ${webhookColumns} from webhook w
    where w.uuid = $1 and w.owner_uuid = $2 and w.deletion_marked_at is null`,
};

/** `uuid` is well-formed, here and below. */
export async function readWebhook(executor: Executor, caller: Caller, uuid: string): Promise<Outcome<WebhookRow>> {
  return found(await executor.rows<WebhookRow>(readStatement, [uuid, caller.accountUuid]));
}

const lockStatement = { name: 'webhook_lock', text: `${readStatement.text} for update` };

export interface Changed {
  readonly before: WebhookRow;
  readonly after: WebhookRow;
}

/** Undefined: stays. */
export interface WebhookChange {
  readonly url: string | undefined;
  readonly events: readonly string[] | undefined;
  readonly description: string | null | undefined;
  readonly disabled: boolean | undefined;
}

/** $6: another address, or enabling it, is a new beginning: what failed before says nothing about it. $7: it was enabled. */
const changeStatement = {
  name: 'webhook_change',
  text: `update webhook w set url = $2, events = $3, description = $4, disabled = $5, key_uuid = $8,
      after_sequence = case when $7 then ${lastEvent} else w.after_sequence end,
      disabled_reason = case when $5 then w.disabled_reason end,
      failing_since = case when not $6 then w.failing_since end, failure = case when not $6 then w.failure end,
      updated_at = greatest(w.updated_at, date_trunc('milliseconds', now()))
    where w.uuid = $1 returning ${webhookColumns}`,
};

const cancelStatement = {
  name: 'webhook_cancel',
  text: `update webhook_delivery set state = 'cancelled', next_attempt_at = null, ended_at = clock_timestamp()
    where webhook_uuid = $1 and state = 'pending'`,
};

export async function changeWebhook(
  executor: Executor,
  caller: Caller,
  uuid: string,
  change: WebhookChange,
): Promise<Outcome<Changed>> {
  const locked = found(await executor.rows<WebhookRow>(lockStatement, [uuid, caller.accountUuid]));
  if (!locked.ok) return locked;
  const before = locked.value;
  const url = change.url ?? before.url;
  const disabled = change.disabled ?? before.disabled;
  const description = change.description === undefined ? before.description : change.description;
  const sets = change.url !== undefined || change.events !== undefined || change.disabled === false;
  const refused = sets ? mayNotFollow(caller) : undefined;
  if (refused !== undefined) return refused;
  const enabled = (before.disabled || before.key_ended) && !disabled;
  const anew = url !== before.url || enabled;
  const key = sets ? bindingKey(caller) : before.key_uuid;
  const values = [before.uuid, url, change.events ?? before.events, description, disabled, anew, enabled, key];
  const [after] = await executor.rows<WebhookRow>(changeStatement, values);
  if (after === undefined) throw new Error('a locked row is gone');
  if (disabled) await executor.rows(cancelStatement, [before.uuid]);
  return done({ before, after });
}

const deleteStatement = {
  name: 'webhook_delete',
  text: `update webhook w set deletion_marked_at = now()
    where w.uuid = $1 and w.owner_uuid = $2 and w.deletion_marked_at is null returning ${webhookColumns}`,
};

/** With its deliveries, however many: the leader removes the rows. */
export async function deleteWebhook(executor: Executor, caller: Caller, uuid: string): Promise<Outcome<WebhookRow>> {
  return found(await executor.rows<WebhookRow>(deleteStatement, [uuid, caller.accountUuid]));
}

const rotateStatement = {
  name: 'webhook_rotate',
  text: `update webhook w set secret = $3, former_secret = w.secret, former_secret_until = now() + interval '24 hours',
      updated_at = greatest(w.updated_at, date_trunc('milliseconds', now()))
    where w.uuid = $1 and w.owner_uuid = $2 and w.deletion_marked_at is null returning ${webhookColumns}`,
};

export async function rotateSecret(
  executor: Executor,
  caller: Caller,
  uuid: string,
  secret: string,
): Promise<Outcome<WebhookRow>> {
  return found(await executor.rows<WebhookRow>(rotateStatement, [uuid, caller.accountUuid, secret]));
}

function found(rows: readonly WebhookRow[]): Outcome<WebhookRow> {
  const [row] = rows;
  return row === undefined ? refuse('not_found') : done(row);
}
