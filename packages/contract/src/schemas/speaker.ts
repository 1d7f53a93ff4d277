/** The BGP speaker through which flowrules are announced, as the operator sees it. */
import Type from 'typebox';
import { timestamp } from './object.ts';

const count = (description: string) => Type.Integer({ minimum: 0, description });

export const bgpSpeaker = Type.Object(
  {
    name: Type.Union([Type.Enum(['GoBGP', 'ExaBGP']), Type.Null()], {
      description: 'null: none is configured, and flowrules stay `proposed`.',
    }),
    address: Type.Optional(Type.String({ description: 'Where it is reached.', examples: ['unix:///run/gobgp.sock'] })),
    version: Type.Optional(Type.String({ description: 'Of its interface, as it was found.' })),
    connected: Type.Boolean({ description: 'It has everything that it should have, as far as it says.' }),
    trouble: Type.Optional(Type.String({ description: 'Why it is away.' })),
    since: Type.Optional(timestamp),
    checked_at: Type.Optional(timestamp),
    peers: Type.Optional(
      Type.Array(
        Type.Object(
          {
            address: Type.String(),
            asn: Type.Optional(Type.Integer({ minimum: 0, maximum: 4294967295 })),
            established: Type.Boolean(),
          },
          { additionalProperties: false },
        ),
        { description: 'Absent: the speaker does not tell.' },
      ),
    ),
    routes: Type.Optional(
      Type.Object(
        {
          flowspec: count('Ours.'),
          blackhole: count('Ours.'),
          foreign: count('Announced through it by others, and never touched.'),
        },
        { additionalProperties: false, description: 'What it has, as of `checked_at`.' },
      ),
    ),
  },
  { $id: 'BgpSpeaker', additionalProperties: false },
);
