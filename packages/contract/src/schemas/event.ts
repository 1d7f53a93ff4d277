/** Events on the wire: one shape, for the stream and for webhooks alike. */
import Type from 'typebox';
import { eventNames, testEventName } from '../event-names.ts';
import { timestamp } from './object.ts';

export const eventId = Type.String({
  pattern: '^[0-9a-f]{8}-[0-9]{1,16}$',
  description: 'Place of the event among all; opaque. Takes up the stream after it.',
  examples: ['5f0c3a9e-1042'],
});

export const event = Type.Object(
  {
    id: Type.Optional(eventId),
    type: Type.Enum([...eventNames, testEventName]),
    timestamp,
    data: Type.Object(
      {},
      {
        additionalProperties: true,
        description:
          'The object as a read answered it then; of a `….deleted` one as it was before. Of `webhook.test` the webhook.',
      },
    ),
  },
  { $id: 'Event', additionalProperties: false },
);
