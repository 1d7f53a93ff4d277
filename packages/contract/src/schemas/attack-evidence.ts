/** What the detector of this installation keeps of an attack, on the wire, beside what any source may tell. Owns the shapes. */
import Type from 'typebox';
import { timestamp } from './object.ts';

const count = (description: string) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });
const share = Type.Number({ minimum: 0, maximum: 1, description: 'Of its packets, from 0 to 1.' });
const port = Type.Integer({ minimum: 0, maximum: 65535 });
const octet = Type.Integer({ minimum: 0, maximum: 255 });
const closed = { additionalProperties: false } as const;

const rates = { pps: count('Packets a second.'), bps: count('Bits a second.') };
const protocol = Type.String({ description: 'By its name where it has one, else its number.', examples: ['udp'] });
const flags = Type.Array(Type.String(), { description: 'Those that are set; empty: none is.' });
const icmp = { type: octet, code: octet };

/** A packet as an exporter sampled it; what lies behind the sample is absent. */
export const packetSampleFields = {
  at: timestamp,
  src: Type.Optional(Type.String()),
  dst: Type.Optional(Type.String()),
  protocol: Type.Optional(protocol),
  port: Type.Optional(Type.Object({ src: Type.Optional(port), dst: Type.Optional(port) }, closed)),
  tcpflags: Type.Optional(flags),
  icmp: Type.Optional(Type.Object(icmp, closed)),
  fragment_offset: Type.Optional(count('Of a fragment: how many octets of the packet lie before it.')),
  length: count('IP total length, in octets.'),
  scale: Type.Number({ minimum: 0, description: 'How many packets it stands for.' }),
};

const timelineEntry = Type.Object(
  {
    at: timestamp,
    seconds: Type.Integer({
      minimum: 1,
      maximum: 60,
      description: 'What the rates are an average of: 1 second or 60.',
    }),
    ...rates,
    vectors: Type.Object({}, { additionalProperties: Type.Object(rates, closed), description: 'By kind of traffic.' }),
  },
  closed,
);

const vectorProfile = Type.Object(
  {
    vector: Type.String(),
    ...rates,
    peak_pps: count('The most packets a second so far.'),
    peak_bps: count('The most bits a second so far.'),
    samples: count('How many samples this was made of.'),
    protocols: Type.Array(Type.Object({ protocol, share }, closed)),
    source_ports: Type.Array(Type.Object({ port, share }, closed)),
    destination_ports: Type.Array(Type.Object({ port, share }, closed)),
    icmp: Type.Array(Type.Object({ ...icmp, share }, closed)),
    tcpflags: Type.Array(Type.Object({ flags, share }, closed)),
    length: Type.Object(
      {
        min: count('The shortest.'),
        p5: count('At most 5 % of the packets are shorter.'),
        max: count('The longest.'),
      },
      { ...closed, description: 'IP total length, in octets.' },
    ),
    later_fragments: Type.Number({
      minimum: 0,
      maximum: 1,
      description: 'The part that is a fragment but not the first.',
    }),
    sources: Type.Array(Type.Object({ source: Type.String(), share }, closed)),
    distinct_sources: count(
      'About how many sources the samples have: near their number, sources are forged or very many.',
    ),
    destinations: Type.Array(Type.Object({ destination: Type.String(), share }, closed), {
      description: 'Where addresses of a subnet are attacked together.',
    }),
  },
  closed,
);

const measure = Type.Object(
  {
    uuid: Type.String({ format: 'uuid' }),
    purpose: Type.Optional(Type.String({ description: 'The kind of traffic that it is about, and what of it.' })),
    state: Type.Enum(['proposed', 'pending', 'active', 'failed', 'marked_for_deletion'], {
      description: 'That of the flowrule or rule. `proposed`: it is shown, and in force nowhere.',
    }),
    state_reason: Type.Optional(Type.String({ description: 'Why it is not active.' })),
  },
  closed,
);

export const attackEvidenceFields = {
  sampled: Type.Optional(count('Sampled packets and flow records that `packets` and `bytes` were made of.')),
  average: Type.Optional(Type.Object(rates, { ...closed, description: 'Over the time that it lasted so far.' })),
  entries: Type.Optional(
    Type.Array(
      Type.Object(
        {
          exporter: Type.String({ description: 'Its name, or its address where it is configured no longer.' }),
          interface: Type.Optional(count('SNMP index of the interface that it came in by.')),
          share,
        },
        closed,
      ),
      { description: 'Where it entered, the most first.' },
    ),
  ),
  profile: Type.Optional(
    Type.Array(vectorProfile, {
      description:
        'What its packets look like, kind by kind, from samples. Shares of one list are of that kind, the most first.',
    }),
  ),
  timeline: Type.Array(timelineEntry, {
    description:
      'Rates as the detector measured them, oldest first. Seconds: the first 300 and the newest 600. Minutes: at most about ' +
      '1 440, of an attack of more than a day fewer the older they are. The first and the highest of each stay.',
  }),
  packet_samples: Type.Array(
    Type.Object(
      {
        ...packetSampleFields,
        exporter: Type.String({ description: 'Its name, or its address where it is configured no longer.' }),
        interface: Type.Optional(count('SNMP index of the interface that it came in by.')),
      },
      closed,
    ),
    {
      description:
        'At most 100 of the packets that are kept, spread over the time; `GET /attacks/{uuid}/pcap` has all of them.',
    },
  ),
  measures: Type.Object(
    {
      flowrules: Type.Array(measure),
      firewall_rules: Type.Array(measure),
      notes: Type.Array(
        Type.Object(
          {
            vector: Type.Optional(Type.String({ description: 'The kind of traffic that it is about.' })),
            where: Type.Optional(Type.String({ description: 'Of which enforcement: `edge` or `flowspec`.' })),
            text: Type.String(),
          },
          closed,
        ),
        { description: 'What could not be said in the terms of an enforcement, or was left out, and why.' },
      ),
    },
    { ...closed, description: 'What came of it and still exists.' },
  ),
};
