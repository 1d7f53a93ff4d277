/** What a draft rule would have matched, on the wire. Owns the shapes. */
import Type from 'typebox';
import { packetSampleFields } from './attack-evidence.ts';
import { dst } from './firewall-rule.ts';
import { timestamp } from './object.ts';

const count = (description: string) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });
const packets = Type.Number({
  minimum: 0,
  description: 'Packets that these samples stand for, by their sampling rates.',
});
const closed = { additionalProperties: false } as const;
const amount = (description: string) =>
  Type.Object({ samples: count('Samples.'), packets }, { ...closed, description });

const verdict = Type.Enum(['accept', 'drop', 'reject', 'filters', 'undecided'], {
  description:
    'What becomes of it without the draft. `filters`: no rule decides, and a filter looks at it, whose answer depends on what ' +
    'routers remember. `undecided`: the sample does not show enough of the packet, or a rule asks for the state of its ' +
    'connection.',
});

export const rulePreview = Type.Object(
  {
    dst,
    samples: count('Samples that the draft was held against.'),
    packets,
    held: count(
      'Samples that the detectors hold of the destination; at most 1 000 are looked at, spread over the time.',
    ),
    since: Type.Optional(timestamp),
    until: Type.Optional(timestamp),
    reason: Type.Optional(
      Type.Object(
        { code: Type.Enum(['no_detector', 'no_answer', 'no_samples']), message: Type.String() },
        { ...closed, description: 'Why there are no samples.' },
      ),
    ),
    matched: count('Samples that the draft matches.'),
    matched_packets: packets,
    matched_share: Type.Number({ minimum: 0, maximum: 1, description: 'Of the packets looked at.' }),
    undecided: count(
      'Samples of which it cannot be told whether the draft matches: what it asks for lies behind what was sampled, or is the ' +
        'state of a connection.',
    ),
    undecided_packets: packets,
    of: Type.Object(
      {
        accept: Type.Optional(amount('Let through.')),
        drop: Type.Optional(amount('Discarded.')),
        reject: Type.Optional(amount('Answered and discarded.')),
        filters: Type.Optional(amount('Left to the filters.')),
        undecided: Type.Optional(amount('Not known.')),
      },
      { ...closed, description: 'What becomes of the matched ones without the draft.' },
    ),
    changes: Type.Object(
      {
        newly_discarded: amount('Not discarded by rules now, and with the draft they are.'),
        newly_accepted: amount('Discarded or left to the filters now, and let through with the draft.'),
        unclear: amount('It cannot be told whether anything changes.'),
      },
      {
        ...closed,
        description:
          'What the draft would change among all rules and filters that routers enforce for the destination, whoever owns them; ' +
          'limits are taken as not exceeded.',
      },
    ),
    examples: Type.Array(Type.Object({ ...packetSampleFields, verdict }, closed), {
      description: 'At most 20 of the matched ones, spread over the time.',
    }),
    top_sources: Type.Array(
      Type.Object(
        {
          source: Type.String(),
          packets,
          share: Type.Number({ minimum: 0, maximum: 1, description: 'Of the matched packets.' }),
        },
        closed,
      ),
      { description: 'Where most of the matched ones came from, at most 10; a source may be forged.' },
    ),
  },
  { $id: 'RulePreview', additionalProperties: false },
);
