/** Webhooks and their deliveries as rows give them to http and commands. Owns the columns that are selected; renders nothing. */
import { milliseconds } from './stored-row.ts';

export interface WebhookRow {
  readonly uuid: string;
  readonly owner_uuid: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly description: string | null;
  readonly disabled: boolean;
  /** Why the service disabled it. */
  readonly disabled_reason: string | null;
  /** What the last attempt failed for. */
  readonly failure: string | null;
  /** Milliseconds since 1970, as the others. */
  readonly failing_since_ms: number | null;
  /** The limited key that it was set with; null: one without limits. */
  readonly key_uuid: string | null;
  /** When that key expires; null: not at a time that is known. */
  readonly key_expires_ms: number | null;
  /** That key is revoked or has expired: the webhook gets nothing. */
  readonly key_ended: boolean;
  /** Null: no former secret signs. */
  readonly former_secret_until_ms: number | null;
  readonly created_ms: number;
  readonly updated_ms: number;
}

/** Of `webhook w`. Secrets are not among them. */
export const webhookColumns = `w.uuid::text as uuid, w.owner_uuid::text as owner_uuid, w.url, w.events, w.description,
  w.disabled, w.disabled_reason, w.failure, ${milliseconds('w.failing_since')} as failing_since_ms,
  w.key_uuid::text as key_uuid,
  (select ${milliseconds('k.expires_at')} from api_key k where k.uuid = w.key_uuid) as key_expires_ms,
  coalesce((select k.revoked_at is not null or k.expires_at <= now() from api_key k where k.uuid = w.key_uuid), false)
    as key_ended,
  case when w.former_secret_until > now() then ${milliseconds('w.former_secret_until')} end as former_secret_until_ms,
  ${milliseconds('w.created_at')} as created_ms, ${milliseconds('w.updated_at')} as updated_ms`;

export interface DeliveryRow {
  readonly uuid: string;
  readonly sequence: number;
  readonly webhook_uuid: string;
  readonly name: string;
  readonly event_id: string | null;
  readonly state: 'pending' | 'delivered' | 'given_up' | 'cancelled';
  readonly created_ms: number;
  readonly next_attempt_ms: number | null;
  /** As they are answered. */
  readonly attempts: readonly object[];
}

/** Of `webhook_delivery d`. */
export const deliveryColumns = `d.uuid::text as uuid, d.sequence, d.webhook_uuid::text as webhook_uuid, d.name, d.event_id,
  d.state, ${milliseconds('d.created_at')} as created_ms, ${milliseconds('d.next_attempt_at')} as next_attempt_ms,
  d.attempts`;
