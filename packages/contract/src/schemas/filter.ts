/** The filter on the wire: one kind of application-aware protection for a destination. Owns names, types and bounds. */
import Type from 'typebox';
import { addressRange, dst, portRanges, ruleFields } from './firewall-rule.ts';
import { expiresAt, objectState, storedObjectFields } from './object.ts';

const filterFields = {
  dst,
  filter: Type.Integer({ minimum: 1, maximum: 65535, description: 'Identifier of a supported kind.' }),
  priority: ruleFields.priority,
  src: Type.Optional(addressRange),
  port: Type.Optional(portRanges),
  ratelimit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 25000, description: 'Mbit/s of traffic that passes; absent: unlimited.' }),
  ),
  expires_at: Type.Optional(expiresAt),
};

export const filterCreate = Type.Object(
  { ...filterFields, priority: Type.Optional(filterFields.priority) },
  { $id: 'FilterCreate', additionalProperties: false },
);

export const filter = Type.Object(
  { ...storedObjectFields, state: objectState, ...filterFields },
  { $id: 'Filter', additionalProperties: false },
);
