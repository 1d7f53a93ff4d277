/** Webhooks: events sent to a server of the client's own. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';
import { uuidParams } from '../schemas/list.ts';
import { mostOfAnAccount } from '../schemas/quota.ts';
import {
  deliveryListQuery,
  webhook,
  webhookChange,
  webhookCreate,
  webhookDeleted,
  webhookDelivery,
  webhookWithSecret,
} from '../schemas/webhook.ts';

const anyone = {
  tag: 'extension',
  roles: ['operator', 'provider', 'user'],
  roleError: 'provider_key_required',
} as const;

export const webhookOperations: readonly Operation[] = [
  {
    ...anyone,
    id: 'createWebhook',
    method: 'POST',
    path: '/webhook',
    summary: 'Have events sent to a server',
    description:
      'Each event that `GET /event` would show and `events` names is sent as a POST with the JSON object of that stream, ' +
      'signed as Standard Webhooks says: headers `webhook-id` (the same at each attempt), `webhook-timestamp`, ' +
      '`webhook-signature`. An answer of 200 to 299 within 10 seconds is a delivery; anything else, a redirect too, is tried ' +
      'again for 24 hours, at growing intervals. Sent at least once, in no promised order. While every attempt fails the ' +
      'webhook is tried by one delivery at a time; after 5 days without any delivery it is disabled, and at once by an ' +
      'answer of 410, or when more than 50000 deliveries wait for it. An account may have ' +
      `${mostOfAnAccount.webhooks} webhooks, whatever its quota. All webhooks of an account share 16 attempts at a time, and ` +
      'those to one server 8; to one server at most 100 requests a second are sent. What an API key with limits ' +
      '(`expires_at`, `sources`, `operations`) has set ends with that key: `api_key_uuid` and `valid_until` say so; a key that ' +
      'is limited to operations needs `readEvents` among them. `sources` limits from where the key is used, not where a webhook ' +
      'leads. The audit log shows scheme, host and port of the address alone. The answer has the secret: it is not shown again.',
    access: 'write',
    body: webhookCreate,
    answer: webhookWithSecret,
    errors: ['validation_failed', 'quota_exceeded'],
    example: { body: { url: 'https://hooks.example.net/levee', events: ['firewall_rule.failed', 'attack.*'] } },
  },
  {
    ...anyone,
    id: 'listWebhooks',
    method: 'GET',
    path: '/webhook',
    summary: "List the caller's webhooks",
    description: 'Secrets are not answered.',
    access: 'read',
    answer: Type.Array(webhook),
    errors: [],
  },
  {
    ...anyone,
    id: 'readWebhook',
    method: 'GET',
    path: '/webhook/{uuid}',
    summary: 'Read one webhook',
    description: '`state` says whether it gets what it should. The secret is not answered.',
    access: 'read',
    params: uuidParams,
    answer: webhook,
    errors: ['not_found'],
    entityTag: true,
  },
  {
    ...anyone,
    id: 'changeWebhook',
    method: 'PATCH',
    path: '/webhook/{uuid}',
    summary: 'Change a webhook',
    description:
      'Fields that are not named stay. Enabling one that the service disabled gives it another 5 days. Deliveries that ' +
      'wait go to the address that holds when they are tried. `url`, `events` or `disabled: false` make the API key that sends ' +
      'them the one that the webhook ends with, or, when it has no limits, let the webhook be without an end.',
    access: 'write',
    params: uuidParams,
    body: webhookChange,
    answer: webhook,
    errors: ['validation_failed', 'not_found'],
    example: { body: { events: ['*'], disabled: false } },
  },
  {
    ...anyone,
    id: 'deleteWebhook',
    method: 'DELETE',
    path: '/webhook/{uuid}',
    summary: 'Delete a webhook',
    description: 'At once, with its deliveries; an attempt that is under way may still arrive.',
    access: 'write',
    params: uuidParams,
    answer: webhookDeleted,
    errors: ['not_found'],
  },
  {
    ...anyone,
    id: 'testWebhook',
    method: 'POST',
    path: '/webhook/{uuid}/test',
    summary: 'Send a test event',
    description:
      'Sends `webhook.test` with the webhook as its data, the way events are sent. The answer is the delivery as it is ' +
      'queued; its log says what became of it. It is tried at once, also where events wait for a target that fails. A ' +
      'disabled webhook is a 409. Of a webhook 30 tests and repetitions a minute are taken, more are a 429.',
    access: 'write',
    params: uuidParams,
    answer: webhookDelivery,
    errors: ['not_found', 'conflict'],
  },
  {
    ...anyone,
    id: 'rotateWebhookSecret',
    method: 'POST',
    path: '/webhook/{uuid}/secret',
    summary: "Replace a webhook's secret",
    description:
      'For 24 hours deliveries carry a signature by the former secret beside the one by the new: receivers accept either. ' +
      'Of several rotations within that time only the last two secrets sign.',
    access: 'write',
    params: uuidParams,
    answer: webhookWithSecret,
    errors: ['not_found'],
  },
  {
    ...anyone,
    id: 'listWebhookDeliveries',
    method: 'GET',
    path: '/webhook/{uuid}/delivery',
    summary: "List a webhook's deliveries",
    description:
      'The latest first, with what became of each attempt. Kept for 24 hours after a delivery, for 3 days when it was given ' +
      'up or cancelled.',
    access: 'read',
    params: uuidParams,
    query: deliveryListQuery,
    answer: Type.Array(webhookDelivery),
    errors: ['validation_failed', 'not_found'],
  },
  {
    ...anyone,
    id: 'retryWebhookDelivery',
    method: 'POST',
    path: '/webhook/{uuid}/delivery/{delivery_uuid}/retry',
    summary: 'Send a delivery again',
    description:
      'Whatever became of it: with the same `webhook-id` and the same body, at once, and for another 24 hours when that ' +
      'fails. A disabled webhook is a 409; more than 30 tests and repetitions of a webhook a minute are a 429.',
    access: 'write',
    params: Type.Object({
      uuid: Type.String({ description: 'Identifier of the webhook.' }),
      delivery_uuid: Type.String({ description: 'Identifier of the delivery.' }),
    }),
    answer: webhookDelivery,
    errors: ['not_found', 'conflict'],
  },
];
