/**
 * The part of the OpenAPI document about what is not asked of this service but sent by it: events to the webhooks that
 * `createWebhook` makes. Owns the words; the shape of an event is schemas/event.ts'.
 */
import { recordedAnswers } from './generated/recorded-answers.ts';
import { event } from './schemas/event.ts';

const header = (name: string, description: string, example: string) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
  example,
});

/** As the document has them, but for the event's schema, which `schemaOf` gives. */
export function webhooksObject<T>(schemaOf: (schema: object) => T) {
  const rule = recordedAnswers.createFirewallRule;
  return {
    event: {
      post: {
        operationId: 'receiveEvent',
        tags: ['extension'],
        summary: 'Receive an event',
        description:
          'Sent to the `url` of a webhook for each event that it names, with the same `webhook-id` at each attempt. Signed as ' +
          'Standard Webhooks says: verify the signature with the secret of the webhook before you believe the body, by one of ' +
          'the libraries at https://www.standardwebhooks.com. An event may come more than once, and not in its order: ' +
          '`webhook-id` names the delivery, `id` in the body the event.',
        security: [],
        parameters: [
          header('webhook-id', 'Names the delivery.', '01890a5d-ac96-774b-bcce-b302099a8057'),
          header('webhook-timestamp', 'When this attempt was made, in seconds since 1970.', '1798761600'),
          header(
            'webhook-signature',
            'One or two signatures, separated by a space: `v1,` and the base64 of an HMAC-SHA256 over id, timestamp and body.',
            'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
          ),
        ],
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema: schemaOf(event),
              example: {
                id: '5f0c3a9e-1042',
                type: 'firewall_rule.pending',
                timestamp: '2027-01-01T00:00:00.000Z',
                data: (rule ?? {}) as T,
              },
            },
          },
        },
        responses: {
          '2XX': { description: 'Delivered, when it comes within 10 seconds. No more than 1 KiB of it is read.' },
          '3XX': { description: 'Not delivered: redirects are not followed.' },
          '410': { description: 'Not delivered, and not wanted any more: the webhook is disabled.' },
          '4XX': {
            description: 'Not delivered: tried again for 24 hours, and not before `Retry-After` (up to 4 hours).',
          },
          '5XX': { description: 'As with 4XX.' },
        },
      },
    },
  };
}
