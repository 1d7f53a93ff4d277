/** Attacks on the wire: as lists show them, and as one is read with all that is known of it. Owns the shapes. */
import Type from 'typebox';
import { attackEvidenceFields } from './attack-evidence.ts';
import { dst } from './firewall-rule.ts';
import { inWords } from './in-words.ts';
import { providerRuleListQuery, ruleListQuery } from './list.ts';
import { timestamp, uuid } from './object.ts';

const state = Type.Enum(['ongoing', 'ended']);

const milliseconds = (description: string) => Type.Optional(Type.Number({ minimum: 0, description }));

export const timings = Type.Optional(
  Type.Object(
    {
      detect_ms: milliseconds('From its first packets, as far as the telemetry tells, to its detection.'),
      decide_ms: milliseconds(
        'From there to its first measures: until they are written, in the same commit as the attack.',
      ),
      announce_ms: milliseconds('From there until the BGP speaker had all flowrules of that decision.'),
      enforce_ms: milliseconds('From there until every router had all rules of that decision in force.'),
    },
    {
      additionalProperties: false,
      description:
        'How long each step took, in milliseconds, for the first measures. A step is absent until it is over, and where there ' +
        'is none.',
    },
  ),
);
/** JSON's whole numbers end there for most readers. */
export const count = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });

export const attackMitigations = ['observe', 'edge', 'flowspec', 'rtbh'] as const;
export const mitigation = Type.Enum([...attackMitigations], {
  description: 'The strongest measure taken. `observe`: none, it is only recorded.',
});

export const vector = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: '^[a-z0-9][a-z0-9._-]*$',
  ...inWords("up to 64 of a–z, 0–9, '.', '_' and '-', with a letter or a digit first"),
  examples: ['udp-amplification-dns'],
});

const attackFields = {
  uuid,
  owner_uuid: Type.String({
    format: 'uuid',
    description:
      'Who held the destination when the attack was first heard of. It stays so when the addresses go to another account: ' +
      'what is told later is a record of that one.',
  }),
  dst,
  state,
  source: Type.String({ description: 'Who told of it: `levee` for the detector of this installation.' }),
  external_id: Type.Optional(Type.String({ description: 'What the source calls it.' })),
  part_of: Type.Optional(
    Type.String({
      format: 'uuid',
      description:
        'The attack on all of `dst`, of which this is the share of one holder: `dst`, its state and mitigation are those of the ' +
        "whole; rates, totals and the timeline are estimated from how much of the whole goes to the holder's addresses, and what " +
        'its packets look like from those that were sampled on their way there. What is known of the whole alone is absent: ' +
        'threshold, timings, measures, where it entered.',
    }),
  ),
  vectors: Type.Array(Type.String(), { description: 'Kinds of traffic that it consists of.' }),
  started_at: timestamp,
  ended_at: Type.Optional(timestamp),
  end_reason: Type.Optional(
    Type.Enum(['reported', 'silent', 'another_began', 'holder_changed'], {
      description:
        'Why it counts as over. `reported`: its source told so. `silent`: nothing was told of it for 24 hours, or by the ' +
        'detectors of this installation for 15 minutes in which one was there; `ended_at` is when it was last told to go ' +
        'on, and so it is for the others. `another_began`: another attack on the destination did. `holder_changed`: the ' +
        'addresses went to another account, which the rest of it is recorded for.',
    }),
  ),
  last_reported_at: Type.String({
    format: 'date-time',
    description: 'When its source last told of it, whether or not that was news; up to a minute old.',
  }),
  peak_pps: count('The most packets a second that were told of.'),
  peak_bps: count('The most bits a second that were told of.'),
  mitigation,
  timings,
  created_at: timestamp,
  updated_at: timestamp,
};

export const attack = Type.Object(attackFields, { $id: 'Attack', additionalProperties: false });

const share = Type.Number({ minimum: 0, maximum: 1, description: 'Of all the packets, from 0 to 1.' });

const traffic = {
  packets: Type.Optional(count('Packets.')),
  bytes: Type.Optional(count('Bytes.')),
  share: Type.Optional(share),
};

const portTraffic = Type.Object(
  { port: Type.Integer({ minimum: 0, maximum: 65535 }), ...traffic },
  { additionalProperties: false },
);
const ports = Type.Array(portTraffic, { maxItems: 100 });

/** A line of text that people read. */
const text = (maxLength: number, description: string) =>
  Type.String({
    minLength: 1,
    maxLength,
    pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$',
    ...inWords('text without control characters'),
    description,
  });

/** What a report may tell and the read of one attack shows, as it was told last. */
export const attackDetailFields = {
  descr: Type.Optional(text(1000, 'In words.')),
  packets: Type.Optional(count('In all.')),
  bytes: Type.Optional(count('In all.')),
  threshold: Type.Optional(
    Type.Object(
      {
        policy: Type.Optional(text(128, 'Whose threshold it was.')),
        metric: text(64, 'What was measured: `pps`, `bps`, `syn_pps`, …'),
        value: Type.Optional(Type.Number({ minimum: 0, description: 'The limit.' })),
        observed: Type.Optional(Type.Number({ minimum: 0, description: 'What was measured when it fired.' })),
      },
      { additionalProperties: false, description: 'What fired.' },
    ),
  ),
  top_sources: Type.Optional(
    Type.Array(
      Type.Object(
        { source: Type.String({ maxLength: 64, description: 'An address or a subnet.' }), ...traffic },
        { additionalProperties: false },
      ),
      { maxItems: 100, description: 'Where most of it came from, as the packets say: a source may be forged.' },
    ),
  ),
  top_ports: Type.Optional(
    Type.Object(
      { src: Type.Optional(ports), dst: Type.Optional(ports) },
      { additionalProperties: false, description: 'The ports that most of it came from and went to.' },
    ),
  ),
  actions: Type.Optional(
    Type.Array(
      Type.Object(
        {
          at: Type.Optional(timestamp),
          action: text(64, 'What was done, in a word.'),
          descr: Type.Optional(text(255, 'In words.')),
        },
        { additionalProperties: false },
      ),
      { maxItems: 100, description: 'What was done about it.' },
    ),
  ),
  timings,
};

export const attackRead = Type.Object(
  {
    ...attackFields,
    ...attackDetailFields,
    samples: Type.Array(
      Type.Object(
        { at: timestamp, pps: Type.Optional(count('Packets a second.')), bps: Type.Optional(count('Bits a second.')) },
        { additionalProperties: false },
      ),
      {
        description:
          'What was measured while it lasted, oldest first. At most 720: of the older ones every second one goes when ' +
          'there are more; the first and the highest stay.',
      },
    ),
    flowrules: Type.Array(Type.String({ format: 'uuid' }), {
      description: 'Uuids of the flowrules that came of it and still exist.',
    }),
    ...attackEvidenceFields,
  },
  { $id: 'AttackRead', additionalProperties: false },
);

const attackStates = Type.Optional(Type.Enum(['ongoing', 'ended'], { description: 'Only those in it.' }));
export const attackListQuery = Type.Object(
  { ...ruleListQuery.properties, state: attackStates },
  { additionalProperties: false },
);
export const providerAttackListQuery = Type.Object(
  { ...providerRuleListQuery.properties, state: attackStates },
  { additionalProperties: false },
);
