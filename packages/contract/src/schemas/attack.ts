/** An attack on the wire, as the list shows it. */
import Type from 'typebox';
import { dst } from './firewall-rule.ts';
import { accountUuid, timestamp, uuid } from './object.ts';

export const attack = Type.Object(
  {
    uuid,
    owner_uuid: accountUuid,
    dst,
    state: Type.Enum(['ongoing', 'ended']),
    vectors: Type.Array(Type.String(), { description: 'Kinds of traffic that it consists of.' }),
    started_at: timestamp,
    ended_at: Type.Optional(timestamp),
    peak_pps: Type.Integer({ minimum: 0, description: 'Packets a second.' }),
    peak_bps: Type.Integer({ minimum: 0, description: 'Bits a second.' }),
    mitigation: Type.Enum(['observe', 'edge', 'flowspec', 'rtbh']),
  },
  { $id: 'Attack', additionalProperties: false },
);
