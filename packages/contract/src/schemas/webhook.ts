/** Webhooks and their deliveries on the wire. A secret is answered where it is made, and nowhere else. */
import Type from 'typebox';
import { eventNames, eventSelectors, testEventName } from '../event-names.ts';
import { eventId } from './event.ts';
import { inWords } from './in-words.ts';
import { accountUuid, timestamp, uuid } from './object.ts';

const url = Type.String({
  minLength: 1,
  maxLength: 2048,
  description:
    'http or https, any port, without user name, password and fragment. A host that is, or resolves to, an address which ' +
    'is not public is refused, now and at each delivery, unless the operator has allowed its subnet.',
  examples: ['https://hooks.example.net/levee'],
});

const events = Type.Array(Type.Enum([...eventSelectors]), {
  minItems: 1,
  maxItems: 64,
  description: 'Names, `attack.*` and the like, or `*`.',
  examples: [['firewall_rule.failed', 'attack.*']],
});

const description = Type.String({
  maxLength: 255,
  pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$',
  ...inWords('text without control characters'),
  description: 'For people; at most 255 characters.',
});

const disabled = Type.Boolean({
  default: false,
  description: 'Gets nothing: what waits for it is cancelled, what happens meanwhile is not kept for it.',
});

export const webhookCreate = Type.Object(
  { url, events, description: Type.Optional(description), disabled: Type.Optional(disabled) },
  { $id: 'WebhookCreate', additionalProperties: false },
);

export const webhookChange = Type.Object(
  {
    url: Type.Optional(url),
    events: Type.Optional(events),
    description: Type.Optional(Type.Union([description, Type.Null()])),
    disabled: Type.Optional(disabled),
  },
  { $id: 'WebhookChange', additionalProperties: false, minProperties: 1 },
);

const webhookFields = {
  uuid,
  owner_uuid: accountUuid,
  state: Type.Enum(['active', 'failing', 'disabled'], {
    description: '`failing`: attempts fail, and nothing has been delivered since `failing_since`.',
  }),
  state_reason: Type.Optional(Type.String({ description: 'Why it is not active.' })),
  url: Type.String(),
  events: Type.Array(Type.String()),
  description: Type.Optional(Type.String()),
  disabled: Type.Boolean(),
  api_key_uuid: Type.Optional(
    Type.String({
      format: 'uuid',
      description:
        'The API key that it was set with, when that key has limits (`expires_at`, `sources`, `operations`): the webhook is ' +
        'disabled when that key expires or is revoked.',
    }),
  ),
  valid_until: Type.Optional(Type.String({ format: 'date-time', description: 'When that key expires, if it does.' })),
  failing_since: Type.Optional(timestamp),
  former_secret_valid_until: Type.Optional(timestamp),
  created_at: timestamp,
  updated_at: timestamp,
};

export const webhook = Type.Object(webhookFields, { $id: 'Webhook', additionalProperties: false });

const secret = Type.String({
  pattern: '^whsec_[A-Za-z0-9+/]{43}=$',
  description: 'What deliveries are signed with (Standard Webhooks): shown this once, never again.',
});

export const webhookWithSecret = Type.Object(
  { ...webhookFields, secret },
  { $id: 'WebhookWithSecret', additionalProperties: false },
);

export const webhookDeleted = Type.Object(
  { uuid, message: Type.String() },
  { $id: 'WebhookDeleted', additionalProperties: false },
);

export const deliveryStates = ['pending', 'delivered', 'given_up', 'cancelled'] as const;

export const webhookDelivery = Type.Object(
  {
    uuid: Type.String({ format: 'uuid', description: 'Also the header `webhook-id` of every attempt.' }),
    webhook_uuid: uuid,
    event: Type.Enum([...eventNames, testEventName]),
    event_id: Type.Optional(eventId),
    state: Type.Enum([...deliveryStates], {
      description:
        '`pending`: to be tried at `next_attempt_at` or soon after. `given_up`: not delivered within 24 hours. `cancelled`: ' +
        'the webhook was disabled before.',
    }),
    created_at: timestamp,
    next_attempt_at: Type.Optional(timestamp),
    attempts: Type.Array(
      Type.Object(
        {
          at: timestamp,
          duration_ms: Type.Integer({ minimum: 0 }),
          status: Type.Optional(Type.Integer({ description: 'HTTP status of the answer; 200 to 299 is delivered.' })),
          error: Type.Optional(Type.String({ description: 'Why it was not delivered.' })),
        },
        { additionalProperties: false },
      ),
      { description: 'The latest last; the 20 latest.' },
    ),
  },
  { $id: 'WebhookDelivery', additionalProperties: false },
);

export const deliveryListQuery = Type.Object(
  {
    state: Type.Optional(Type.Enum([...deliveryStates], { description: 'Only those in it.' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'In this answer; absent: 100.' })),
    cursor: Type.Optional(
      Type.String({ maxLength: 64, description: 'Where to go on, from the `Link` header of the previous page.' }),
    ),
  },
  { additionalProperties: false },
);
