/** Renders webhooks and deliveries. A secret is added by whoever has just made it. */
import type { AuditEntry } from '../commands/audit.ts';
import type { Caller } from '../commands/caller.ts';
import type { DeliveryRow, WebhookRow } from '../commands/webhook-row.ts';
import { timeText } from './object-answer.ts';

export function webhookJson(row: WebhookRow): Readonly<Record<string, unknown>> {
  return {
    uuid: row.uuid,
    owner_uuid: row.owner_uuid,
    ...stateOf(row),
    ...settingsJson(row),
    ...(row.key_uuid !== null && { api_key_uuid: row.key_uuid }),
    ...(row.key_expires_ms !== null && { valid_until: timeText(row.key_expires_ms) }),
    ...(row.failing_since_ms !== null && { failing_since: timeText(row.failing_since_ms) }),
    ...(row.former_secret_until_ms !== null && { former_secret_valid_until: timeText(row.former_secret_until_ms) }),
    created_at: timeText(row.created_ms),
    updated_at: timeText(row.updated_ms),
  };
}

function settingsJson({ url, events, description, disabled }: WebhookRow): object {
  return { url, events, ...(description !== null && { description }), disabled };
}

function stateOf({ disabled, disabled_reason, key_ended, failing_since_ms, failure }: WebhookRow): object {
  if (key_ended && !disabled) return { state: 'disabled', state_reason: keyEnded };
  if (disabled) return { state: 'disabled', ...(disabled_reason !== null && { state_reason: disabled_reason }) };
  if (failing_since_ms === null) return { state: 'active' };
  return { state: 'failing', ...(failure !== null && { state_reason: `The last attempt: ${failure}.` }) };
}

export function deliveryJson(row: DeliveryRow): object {
  return {
    uuid: row.uuid,
    webhook_uuid: row.webhook_uuid,
    event: row.name,
    ...(row.event_id !== null && { event_id: row.event_id }),
    state: row.state,
    created_at: timeText(row.created_ms),
    ...(row.next_attempt_ms !== null && { next_attempt_at: timeText(row.next_attempt_ms) }),
    attempts: row.attempts,
  };
}

const keyEnded = 'The API key that it was set with was revoked or has expired.';

/** Without what an address may hold of a token: who may read the log is not who may send there. */
function auditedJson({ url, ...settings }: WebhookRow, isElsewhere = false): object {
  return { ...settingsJson({ url: new URL(url).origin, ...settings }), ...(isElsewhere && { url_changed: true }) };
}

/** What its owner set. That of the address only its path or query is another is said without telling them. */
export function webhookAudit(
  caller: Caller,
  before: WebhookRow | undefined,
  after: WebhookRow | undefined,
): readonly AuditEntry[] {
  const row = after ?? before;
  if (row === undefined) return [];
  const isElsewhere = before !== undefined && before.url !== after?.url;
  return [
    {
      ...doneTo(caller, row.uuid),
      before: before && auditedJson(before),
      after: after && auditedJson(after, isElsewhere),
    },
  ];
}

/** That something was done with it by which nothing that its owner set is different. */
export function doneTo(caller: Caller, webhook: string): AuditEntry {
  return { kind: 'webhook', uuid: webhook, ownerUuid: caller.accountUuid, providerUuid: caller.providerUuid };
}

/** What a test sends: its receiver knows where it is, and a former one's token is no one else's. */
export function testJson(row: WebhookRow): object {
  return { ...webhookJson(row), url: new URL(row.url).origin };
}
