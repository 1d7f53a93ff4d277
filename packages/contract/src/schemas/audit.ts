/**
 * The audit log on the wire: who did what to which object, from where. Owns the entry's shape and the kinds of objects;
 * an entry never holds a password, a key, a token or another secret.
 */
import Type from 'typebox';
import { accountUuid, timestamp } from './object.ts';

export const auditKinds = [
  'firewall_rule',
  'filter',
  'tunnel',
  'rdns',
  'rdns_zone',
  'attack',
  'flowrule',
  'change',
  'account',
  'api_key',
  'webhook',
  'quota',
  'location',
  'router',
  'detector',
  'exporter',
  'detection_policy',
] as const;
export type AuditKind = (typeof auditKinds)[number];

const state = (description: string) => Type.Optional(Type.Object({}, { additionalProperties: true, description }));

export const auditEntry = Type.Object(
  {
    sequence: Type.Integer({
      minimum: 1,
      description:
        'Number of the entry, for `after`. Where it stands in the log is not told by it, and gaps mean nothing.',
    }),
    at: timestamp,
    operation: Type.String({
      description:
        'The operation of this interface by its id, or a word for what the service did of its own: `expire` and `undo` ' +
        'of objects, `disable` of a webhook, `silence` of an attack that its source no longer tells of, `mitigate` of measures against an attack, `install` and `enrol`.',
    }),
    kind: Type.Enum([...auditKinds], { description: 'Of object.' }),
    object_uuid: Type.String({ format: 'uuid', description: 'Of a `quota`: the account whose it is.' }),
    owner_uuid: Type.Optional(
      Type.String({ format: 'uuid', description: "Whose object it is; absent: the installation's." }),
    ),
    actor: Type.Optional(
      Type.Object(
        {
          uuid: accountUuid,
          role: Type.Enum(['operator', 'provider', 'user']),
          api_key_uuid: Type.Optional(Type.String({ format: 'uuid' })),
          source: Type.Optional(Type.String({ description: 'The address that the request came from.' })),
          request_id: Type.Optional(Type.String()),
        },
        {
          additionalProperties: false,
          description:
            'Who did it; absent: the service itself. The key, the address and the request are shown of oneself, to a ' +
            'provider of its users too, and to the operator of everyone.',
        },
      ),
    ),
    before: state('As it was; absent when it was not there.'),
    after: state('As it is since; absent when nothing is left of it.'),
  },
  { $id: 'AuditEntry', additionalProperties: false },
);

const moment = (description: string) =>
  Type.Optional(Type.String({ format: 'date-time', maxLength: 40, description: `RFC 3339. ${description}` }));

export const auditQuery = Type.Object(
  {
    object_uuid: Type.Optional(Type.String({ format: 'uuid', description: 'Only what was done to this object.' })),
    kind: Type.Optional(Type.Enum([...auditKinds], { description: 'Only objects of this kind.' })),
    operation: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'Only this operation.',
        examples: ['createFirewallRule'],
      }),
    ),
    actor_uuid: Type.Optional(Type.String({ format: 'uuid', description: 'Only what this account did.' })),
    since: moment(
      'Only what was written into the log then or later; so also a request that began before, where that took longer.',
    ),
    until: moment('Only what was written into the log before then.'),
    after: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        examples: [1042],
        description:
          'Only what came into the log after the entry with this `sequence`: to follow the log, ask again with that of ' +
          'the last entry that was answered.',
      }),
    ),
    order: Type.Optional(
      Type.Enum(['asc', 'desc'], { description: 'Oldest first (`asc`, also when absent), or newest.' }),
    ),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, description: 'Entries in this answer; absent: all of them.' }),
    ),
    cursor: Type.Optional(
      Type.String({ maxLength: 64, description: 'Where to go on, from the `Link` header of the previous page.' }),
    ),
  },
  { additionalProperties: false },
);
