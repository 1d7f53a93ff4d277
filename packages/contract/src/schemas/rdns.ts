/** A reverse DNS record on the wire. `ips` is one address, despite its name: the given interface calls it so. */
import Type from 'typebox';
import { objectState, storedObjectFields, timestamp } from './object.ts';
import { zoneDriver } from './rdns-zone.ts';

const ips = Type.String({ maxLength: 64, description: 'The address that the record belongs to: one, no subnet.' });
const record = Type.String({
  minLength: 1,
  maxLength: 254,
  description:
    'Host name of 1 to 253 characters; a Unicode one is converted to its form in the DNS, a trailing dot stripped, ' +
    'capitals are lowered.',
});

export const rdnsWrite = Type.Object({ ips, record }, { $id: 'RdnsWrite', additionalProperties: false });
export const rdnsDelete = Type.Object({ ips }, { $id: 'RdnsDelete', additionalProperties: false });

export const rdnsListQuery = Type.Object(
  {
    ip: Type.Optional(
      Type.String({ maxLength: 64, description: 'Only the record of this address, or those inside this subnet.' }),
    ),
    state: Type.Optional(
      Type.Enum(['pending', 'active', 'failed', 'marked_for_deletion'], { description: 'Only those in it.' }),
    ),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, description: 'Objects in this answer; absent: all of them.' }),
    ),
    cursor: Type.Optional(
      Type.String({ maxLength: 64, description: 'Where to go on, from the `Link` header of the previous page.' }),
    ),
  },
  { additionalProperties: false },
);

const applied = Type.Array(
  Type.Object(
    {
      zone: Type.String({ description: 'The reverse zone in which the address stands.' }),
      driver: zoneDriver,
      state: Type.Enum(['pending', 'active', 'failed', 'removed'], { description: 'At its DNS server.' }),
      at: Type.Optional(timestamp),
      latency_ms: Type.Optional(Type.Number({ minimum: 0, description: 'From the change to when the server had it.' })),
      reason: Type.Optional(Type.String()),
    },
    { additionalProperties: false },
  ),
  { description: 'The DNS server that holds the record; empty where no zone covers the address.' },
);

export const rdnsRecord = Type.Object(
  {
    ...storedObjectFields,
    applied,
    state: objectState,
    ips,
    record,
    forward_confirmed: Type.Optional(
      Type.Boolean({
        description: 'Whether the name resolves back to the address; informative only, absent until it is known.',
      }),
    ),
    message: Type.Optional(Type.String()),
  },
  { $id: 'RdnsRecord', additionalProperties: false },
);
