/**
 * What a caller asks about one packet, and what is answered. Owns the outer shape; the packet's own checks are
 * core's, which judges them together.
 */
import Type from 'typebox';
import { protocolNames } from '../protocols.ts';
import { packetTypes, ruleActions, stateTypes, tcpFlagNames } from './firewall-rule.ts';

const port = Type.Integer({ minimum: 0, maximum: 65535 });
const octet = Type.Integer({ minimum: 0, maximum: 255 });

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
    icmp: Type.Optional(
      Type.Object(
        { type: Type.Optional(octet), code: Type.Optional(octet) },
        { additionalProperties: false, description: 'Only with icmp and ipv6-icmp.' },
      ),
    ),
    packettype: Type.Optional(Type.Enum([...packetTypes])),
    statetype: Type.Optional(Type.Enum([...stateTypes])),
    payload: Type.Optional(Type.String({ maxLength: 90_000, description: 'Base64: the transport payload.' })),
  },
  { $id: 'ExplainRequest', additionalProperties: false },
);

const explainedEntry = Type.Object(
  {
    uuid: Type.Optional(Type.String()),
    priority: Type.Optional(Type.Integer()),
    action: Type.Optional(Type.Enum([...ruleActions], { description: 'Of a rule.' })),
    attack_uuid: Type.Optional(
      Type.String({ format: 'uuid', description: 'Of a rule that is a measure against an attack.' }),
    ),
    filter: Type.Optional(Type.Integer({ description: "Of a filter: its kind's id." })),
    kind: Type.Optional(Type.String({ description: "Of a filter: its kind's name." })),
    matched: Type.Boolean({ description: 'Whether it is about such packets; a filter: whether it looks at them.' }),
    code: Type.String({ description: 'Why it is not, or what it does with the packet, for programs.' }),
    message: Type.String({ description: 'The same for people.' }),
  },
  { additionalProperties: true },
);

export const explanation = Type.Object(
  {
    verdict: Type.Enum(['accept', 'drop', 'reject', 'challenge'], {
      description:
        "`challenge`: the router answers in the destination's place, as a SYN proxy does, and the packet goes no further.",
    }),
    decided_by: Type.String({
      description: 'The deciding rule or filter, or `default`; `other` when it is not yours to read.',
    }),
    trail: Type.Array(explainedEntry, {
      description:
        'Every rule and then every filter that covers the destination, in the order of evaluation, until one decided.',
    }),
  },
  { $id: 'Explanation', additionalProperties: false },
);
