/** Locations and the routers at them, on the wire. An answer never holds a router's key. */
import Type from 'typebox';
import { inWords } from './in-words.ts';
import { timestamp, uuid } from './object.ts';

const placeName = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: '^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$',
  ...inWords("1 to 64 of a–z, A–Z, 0–9, '.', '_' and '-', with a letter or a digit first and last"),
  description: 'Unique; letters, digits, dot, dash and underscore.',
  examples: ['fra1'],
});

export const locationCreate = Type.Object({ name: placeName }, { $id: 'LocationCreate', additionalProperties: false });
export const location = Type.Object(
  { uuid, name: Type.String(), created_at: timestamp },
  { $id: 'Location', additionalProperties: false },
);

const placeOfRouter = Type.String({ maxLength: 64, description: 'Name or uuid of its location.' });
const tunnelAddresses = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: 2,
  description:
    'Public unicast addresses of the router itself, at which tunnels end: at most one a family. Each is one ' +
    "router's, outside what tunnels route.",
  examples: [['192.0.2.1', '2001:db8:ffff::1']],
});

export const routerCreate = Type.Object(
  { name: placeName, location: placeOfRouter, tunnel_addresses: Type.Optional(tunnelAddresses) },
  { $id: 'RouterCreate', additionalProperties: false },
);

export const routerPatch = Type.Object(
  {
    name: Type.Optional(placeName),
    location: Type.Optional(placeOfRouter),
    tunnel_addresses: Type.Optional(tunnelAddresses),
  },
  { $id: 'RouterPatch', additionalProperties: false, minProperties: 1 },
);

const routerFields = {
  uuid,
  name: Type.String(),
  location: Type.String(),
  tunnel_addresses: Type.Array(Type.String()),
  created_at: timestamp,
};

export const router = Type.Object(
  {
    ...routerFields,
    enrolled: Type.Boolean(),
    enrolled_at: Type.Optional(timestamp),
    enforcement: Type.Optional(Type.Enum(['kernel', 'dry'], { description: 'Absent until its first report.' })),
    enforcement_reason: Type.Optional(Type.String({ description: 'Why nothing is enforced there.' })),
    last_seen_at: Type.Optional(timestamp),
    status: Type.Optional(
      Type.Object({}, { additionalProperties: true, description: 'What its agent tells of itself and its machine.' }),
    ),
  },
  { $id: 'Router', additionalProperties: false },
);

const enrollment = {
  enrollment_token: Type.String({ description: 'Works once: `levee router enroll`. Shown this once.' }),
  enrollment_expires_at: timestamp,
};

export const routerToken = Type.Object(
  { ...routerFields, ...enrollment, message: Type.String({ description: 'What becomes of the present key.' }) },
  { $id: 'RouterToken', additionalProperties: false },
);

export const removedTopology = Type.Object(
  { uuid, message: Type.String() },
  { $id: 'RemovedTopology', additionalProperties: false },
);

export const routerCreated = Type.Object(
  { ...routerFields, ...enrollment },
  { $id: 'RouterCreated', additionalProperties: false },
);
