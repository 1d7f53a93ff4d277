/** What another detector tells of an attack: this service's own form, and FastNetMon's. Owns the shapes of the bodies. */
import Type from 'typebox';
import { attackDetailFields, count, mitigation, vector } from './attack.ts';
import { inWords } from './in-words.ts';

const time = (description: string) =>
  Type.Optional(Type.String({ format: 'date-time', maxLength: 40, description, examples: ['2026-01-31T12:00:00Z'] }));

export const attackReport = Type.Object(
  {
    source: Type.String({
      minLength: 1,
      maxLength: 64,
      pattern: '^[a-z0-9][a-z0-9._-]*$',
      ...inWords("up to 64 of a–z, 0–9, '.', '_' and '-', with a letter or a digit first"),
      description: 'The system that tells. `levee` is this installation itself and is refused.',
      examples: ['scrubbing-centre'],
    }),
    external_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 128,
        pattern: '^[\\u0021-\\u007e]+$',
        ...inWords('1 to 128 visible ASCII characters'),
        description:
          'What the source calls the attack: all reports with it are of one attack. Without it a report is of the ' +
          "source's ongoing attack on that very destination.",
      }),
    ),
    dst: Type.String({
      maxLength: 64,
      description: 'The address or subnet under attack. Some provider of this installation must hold all of it.',
      examples: ['203.0.113.7'],
    }),
    state: Type.Optional(
      Type.Enum(['started', 'changed', 'ended'], {
        description: 'Absent: `ended` when `ended_at` is given, else `started` when `started_at` is.',
      }),
    ),
    started_at: time('Absent: now, or, for an attack that is first heard of when it has ended, `ended_at`.'),
    ended_at: time('Absent in a report that it ended: now.'),
    at: time('When `pps` and `bps` were measured. Absent: now.'),
    vectors: Type.Optional(
      Type.Array(vector, { maxItems: 32, description: 'Kinds of traffic; added to those known.' }),
    ),
    pps: Type.Optional(count('Packets a second, at the time of the report; the highest becomes the peak.')),
    bps: Type.Optional(count('Bits a second, likewise.')),
    mitigation: Type.Optional(mitigation),
    ...attackDetailFields,
  },
  { $id: 'AttackReport', additionalProperties: false },
);

const rate = Type.Optional(Type.Number({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }));

/** The members that are looked at; there are many more, and other versions have others. */
const fastnetmonDetails = Type.Object(
  {
    attack_uuid: Type.Optional(Type.String({ maxLength: 128 })),
    attack_type: Type.Optional(Type.String({ maxLength: 128 })),
    attack_severity: Type.Optional(Type.String({ maxLength: 64 })),
    attack_protocol: Type.Optional(Type.String({ maxLength: 64 })),
    attack_direction: Type.Optional(Type.String({ maxLength: 64 })),
    attack_detection_threshold: Type.Optional(Type.String({ maxLength: 128 })),
    attack_detection_threshold_direction: Type.Optional(Type.String({ maxLength: 64 })),
    host_group: Type.Optional(Type.String({ maxLength: 128 })),
    initial_attack_power: rate,
    peak_attack_power: rate,
    total_incoming_pps: rate,
    total_incoming_traffic: Type.Optional(
      Type.Number({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER / 8, description: 'Bytes a second.' }),
    ),
  },
  { additionalProperties: true, description: "As FastNetMon's JSON formats have it." },
);

export const fastnetmonReport = Type.Object(
  {
    ip: Type.String({ maxLength: 64, description: 'The address under attack.' }),
    action: Type.String({
      minLength: 1,
      maxLength: 64,
      description:
        '`ban` and `partial_block` begin an attack, `unban` ends it; every other word tells more of it (`attack_details`, ' +
        'status updates).',
    }),
    alert_scope: Type.Optional(Type.String({ maxLength: 64 })),
    attack_details: Type.Optional(fastnetmonDetails),
    direction: Type.Optional(
      Type.String({ maxLength: 64, description: "The text format's second argument, from the notify script." }),
    ),
    pps: Type.Optional(count("The text format's third argument, from the notify script.")),
    details: Type.Optional(
      Type.String({ maxLength: 200_000, description: "The text format's details, from the notify script." }),
    ),
  },
  { $id: 'FastnetmonReport', additionalProperties: true },
);
export type FastnetmonReport = Type.Static<typeof fastnetmonReport>;
