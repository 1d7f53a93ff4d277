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
    ...(row.failing_since_ms !== null && { failing_since: timeText(row.failing_since_ms) }),
    ...(row.former_secret_until_ms !== null && { former_secret_valid_until: timeText(row.former_secret_until_ms) }),
    created_at: timeText(row.created_ms),
    updated_at: timeText(row.updated_ms),
  };
}

function settingsJson({ url, events, description, disabled }: WebhookRow): object {
  return { url, events, ...(description !== null && { description }), disabled };
}

function stateOf({ disabled, disabled_reason, failing_since_ms, failure }: WebhookRow): object {
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

/** What its owner set; that another secret was made is said by the operation. */
export function webhookAudit(
  caller: Caller,
  before: WebhookRow | undefined,
  after: WebhookRow | undefined,
): readonly AuditEntry[] {
  const row = after ?? before;
  if (row === undefined) return [];
  return [
    {
      kind: 'webhook',
      uuid: row.uuid,
      ownerUuid: row.owner_uuid,
      providerUuid: caller.providerUuid,
      before: before && settingsJson(before),
      after: after && settingsJson(after),
    },
  ];
}
