/** The body and the headers of a delivery (https://www.standardwebhooks.com, specification 1.0.0). */
import { Webhook } from 'standardwebhooks';
import { eventText } from '../../events/read-events.ts';

export interface DeliveryContent {
  readonly uuid: string;
  readonly name: string;
  /** Absent for a test. */
  readonly eventId: string | null;
  readonly atMilliseconds: number;
  /** JSON text. */
  readonly data: string;
}

/** The same at each attempt. */
export function bodyOf({ eventId, name, atMilliseconds, data }: DeliveryContent): string {
  return eventText(eventId ?? undefined, name, atMilliseconds, data);
}

/** `secrets`: `whsec_…`, each of which signs; receivers accept any. */
export function headersOf(
  uuid: string,
  body: string,
  secrets: readonly string[],
  now: Date,
): Readonly<Record<string, string>> {
  return {
    'content-type': 'application/json',
    'user-agent': 'Levee-Webhooks/1',
    'webhook-id': uuid,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(uuid, now, body)).join(' '),
  };
}
