/**
 * What all stored objects have in common on the wire: identity, owner, state, times, where they are applied. Owns
 * these fields' shapes; which states a kind of object can have is said by that kind's own schema.
 */
import Type from 'typebox';

export const uuid = Type.String({ format: 'uuid', description: 'Identifier.' });
export const accountUuid = Type.String({ format: 'uuid', description: 'Identifier of an account.' });

/** RFC 3339, UTC, milliseconds. */
export const timestamp = Type.String({ format: 'date-time', examples: ['2026-01-31T12:00:00.000Z'] });

export const expiresAt = Type.String({
  format: 'date-time',
  maxLength: 40,
  description: 'RFC 3339, in the future: the object is marked for deletion then.',
  examples: ['2030-01-31T12:00:00.000Z'],
});

export const confirmWithin = Type.Integer({
  minimum: 10,
  maximum: 3600,
  description: 'Seconds: the change is undone unless `POST /firewall/confirm/{change_uuid}` comes within them.',
});

export const objectState = Type.Enum(['pending', 'active', 'failed', 'marked_for_deletion'], {
  description: 'Derived from what the routers and servers in scope report to have applied.',
});

export const appliedEntry = Type.Object(
  {
    location: Type.String(),
    router: Type.String(),
    state: Type.Enum(['pending', 'active', 'failed', 'removed'], { description: 'There.' }),
    at: Type.Optional(timestamp),
    latency_ms: Type.Optional(Type.Number({ minimum: 0, description: 'From the change to its report.' })),
    last_seen_at: Type.Optional(
      Type.String({
        format: 'date-time',
        description: 'Only where the router has been silent for so long that its state is a supposition.',
      }),
    ),
    reason: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);
export type AppliedEntry = Type.Static<typeof appliedEntry>;

/** Every stored object has these; `state` stands with each kind. */
export const storedObjectFields = {
  uuid,
  owner_uuid: accountUuid,
  state_reason: Type.Optional(Type.String({ description: 'Why the state is not what was asked for.' })),
  created_at: timestamp,
  updated_at: timestamp,
  applied: Type.Array(appliedEntry, { description: 'Where it stands, router by router.' }),
};

/** Sums over all routers, of their reports so far. */
export const hitFields = {
  packets: Type.Integer({ minimum: 0 }),
  bytes: Type.Integer({ minimum: 0 }),
  last_hit_at: Type.Optional(timestamp),
};

export const confirmedChange = Type.Object(
  { change_uuid: Type.String({ format: 'uuid' }), confirmed_at: timestamp, message: Type.String() },
  { $id: 'ConfirmedChange', additionalProperties: false },
);
