/** A reverse DNS record on the wire. `ips` is one address, despite its name: the given interface calls it so. */
import Type from 'typebox';
import { objectState, storedObjectFields } from './object.ts';

const ips = Type.String({ maxLength: 64, description: 'The address that the record belongs to.' });
const record = Type.String({
  minLength: 1,
  maxLength: 254,
  description: 'Host name; a Unicode one is converted, a trailing dot stripped.',
});

export const rdnsWrite = Type.Object({ ips, record }, { $id: 'RdnsWrite', additionalProperties: false });
export const rdnsDelete = Type.Object({ ips }, { $id: 'RdnsDelete', additionalProperties: false });

export const rdnsRecord = Type.Object(
  {
    ...storedObjectFields,
    state: objectState,
    ips,
    record,
    forward_confirmed: Type.Optional(Type.Boolean({ description: 'The name resolves back to the address.' })),
    message: Type.Optional(Type.String()),
  },
  { $id: 'RdnsRecord', additionalProperties: false },
);
