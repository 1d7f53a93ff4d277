/** A flowrule on the wire: a BGP FlowSpec rule (RFC 8955, 8956) that was proposed or announced for an address. */
import Type from 'typebox';
import { dst } from './firewall-rule.ts';
import { expiresAt, storedObjectFields } from './object.ts';

export const flowrule = Type.Object(
  {
    ...storedObjectFields,
    state: Type.Enum(['proposed', 'pending', 'active', 'failed', 'marked_for_deletion']),
    dst,
    components: Type.Record(Type.String(), Type.String(), {
      description: 'Match components by their RFC 8955 names, in text form.',
    }),
    action: Type.Enum(['discard', 'rate-limit', 'redirect', 'mark']),
    ratelimit: Type.Optional(Type.Number({ minimum: 0, description: 'Bytes a second.' })),
    attack_uuid: Type.Optional(Type.String({ format: 'uuid' })),
    expires_at: Type.Optional(expiresAt),
  },
  { $id: 'Flowrule', additionalProperties: false },
);
