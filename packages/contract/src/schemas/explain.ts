/**
 * What a caller asks about one packet, and what is answered. Owns the outer shape; the packet's own checks are
 * core's, which judges them together.
 */
import Type from 'typebox';
import { protocolNames } from '../protocols.ts';
import { packetTypes, stateTypes, tcpFlagNames } from './firewall-rule.ts';

const port = Type.Integer({ minimum: 0, maximum: 65535 });

export const explainRequest = Type.Object(
  {
    dst: Type.String({ maxLength: 64, description: 'Destination address of the packet.' }),
    src: Type.String({ maxLength: 64, description: 'Source address of the packet.' }),
    protocol: Type.Enum([...protocolNames]),
    port: Type.Optional(
      Type.Object({ src: Type.Optional(port), dst: Type.Optional(port) }, { additionalProperties: false }),
    ),
    packetlength: Type.Optional(Type.Integer({ minimum: 1, maximum: 65535 })),
    tcpflags: Type.Optional(Type.Array(Type.Enum([...tcpFlagNames]), { maxItems: 8 })),
    packettype: Type.Optional(Type.Enum([...packetTypes])),
    statetype: Type.Optional(Type.Enum([...stateTypes])),
    payload: Type.Optional(Type.String({ maxLength: 90_000, description: 'Base64: the transport payload.' })),
  },
  { $id: 'ExplainRequest', additionalProperties: false },
);

export const explanation = Type.Object(
  {
    verdict: Type.Enum(['accept', 'drop', 'reject']),
    decided_by: Type.String({
      description: 'The deciding rule, or `default`; `other` when the rule is not yours to read.',
    }),
    trail: Type.Array(Type.Object({ uuid: Type.Optional(Type.String()) }, { additionalProperties: true }), {
      description: 'Every rule that covers the destination, in the order of evaluation, until one decided.',
    }),
  },
  { $id: 'Explanation', additionalProperties: false },
);
