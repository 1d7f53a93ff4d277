/** The stream of events: what becomes of objects, as it happens. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';

export const eventOperations: readonly Operation[] = [
  {
    tag: 'extension',
    roles: ['operator', 'provider', 'user'],
    roleError: 'provider_key_required',
    id: 'readEvents',
    method: 'GET',
    path: '/event',
    summary: 'Follow events as they happen',
    description:
      "Server-sent events (the WHATWG's HTML standard, 9.2) without an end: a user is told of its own objects, a provider of " +
      'its own and those of its users, an operator of all. Each message has an `id`, an `event` (its name, such as ' +
      '`firewall_rule.active`) and as `data` one line of JSON: `{"id", "type", "timestamp", "data"}`, the last being the ' +
      'object as a read answered it then. A state is told once a change: what was `pending` and settled before anyone ' +
      'looked is told as settled; a router that falls silent is no event. Events are kept for 24 hours: a client that ' +
      'sends `Last-Event-ID` misses none of them. When some are gone, a message `gap` comes first: read the present state ' +
      'then. A comment or an empty message with an id comes every 15 seconds. A client that does not read is cut off and ' +
      'can go on where it was. The stream ends when its key does. A key may hold 8 streams at a replica.',
    access: 'read',
    query: Type.Object(
      {
        after: Type.Optional(
          Type.String({
            maxLength: 64,
            description:
              'Begin after the event with this id; `0`: with the oldest kept. The header `Last-Event-ID` goes before it. ' +
              'Absent: from now on.',
            examples: ['0', '5f0c3a9e-1042'],
          }),
        ),
        events: Type.Optional(
          Type.String({
            maxLength: 2000,
            description: 'Only these, separated by commas: names, `attack.*` and the like, or `*`.',
            examples: ['firewall_rule.failed,attack.*'],
          }),
        ),
      },
      { additionalProperties: false },
    ),
    answerMedia: 'text/event-stream',
    answer: Type.String({ description: 'Messages, each ended by an empty line.' }),
    errors: ['validation_failed', 'rate_limited'],
  },
];
