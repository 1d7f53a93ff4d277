/** Detection on the wire: policies, the exporters that telemetry comes from, detectors. An answer never holds a detector's key but once. */
import Type from 'typebox';
import { MOST_SAMPLING_RATE } from '../detector.ts';
import { attackMitigations, count } from './attack.ts';
import { inWords } from './in-words.ts';
import { timestamp, uuid } from './object.ts';

/** Numbers of vectors are their places in it, also between processes: the order never changes. Core says what they are. */
export const vectorNames = [
  'udp-amplification',
  'tcp-syn',
  'tcp-syn-ack',
  'tcp-ack',
  'tcp-rst',
  'tcp-other',
  'icmp',
  'gre',
  'esp',
  'ip-fragment',
  'udp-other',
  'ip-other',
  'total',
] as const;

const limits = Type.Object(
  {
    pps: Type.Optional(Type.Number({ minimum: 100, maximum: 1e9, description: 'Packets a second.' })),
    bps: Type.Optional(Type.Number({ minimum: 1e5, maximum: 1e13, description: 'Bits a second, of IP packets.' })),
  },
  { additionalProperties: false, minProperties: 1 },
);
const byVector = Object.fromEntries(vectorNames.map((name) => [name, Type.Optional(limits)]));
const thresholds = Type.Object(byVector, {
  additionalProperties: false,
  description:
    'By vector, or `total` for all traffic of a destination: what it may have. Exceeding either of `pps` and `bps` is an ' +
    'attack. A vector that is absent takes them from the next wider policy, and below all policies from the defaults.',
  examples: [{ 'udp-amplification': { pps: 20000, bps: 200000000 }, total: { pps: 500000 } }],
});
const aggregateThresholds = Type.Object(byVector, {
  additionalProperties: false,
  description:
    'The same for all addresses of a /24 (IPv6: /64) together, where only together they are attacked. Absent: four ' +
    'times what one address may have. Nothing wider is judged: traffic that keeps below this in each of many /24s is no attack.',
});

const mitigation = Type.Enum([...attackMitigations], {
  description:
    'The strongest measure that may be taken by itself. `observe`: none; what would be done is shown as `proposed`. ' +
    '`edge`: rules at the edge. `flowspec`: BGP FlowSpec routes as well. `rtbh`: the destination may be given up.',
});

/** What all policies have, with its default. */
export const policyDefaults = {
  thresholds: {},
  mitigation: 'observe',
  hold_s: 30,
  baseline_factor: 3,
  mitigation_hold_s: 300,
  override_accept: false,
  allow_rtbh: false,
} as const;

const policySettings = {
  thresholds,
  mitigation,
  hold_s: Type.Integer({
    minimum: 5,
    maximum: 3600,
    description: 'An attack has ended when its traffic was below half the threshold for so many seconds. Absent: 30.',
  }),
  baseline_factor: Type.Number({
    minimum: 1,
    maximum: 1000,
    description:
      'Besides the threshold, traffic must exceed what is usual of the destination in this hour of the week so many ' +
      'times. Usual is what the same hour of at least three days of the week had; each day raises the limit by a quarter of itself, ' +
      'all seven to 3.05 times the threshold at most. 1: the threshold alone counts. Absent: 3.',
  }),
  mitigation_hold_s: Type.Integer({
    minimum: 0,
    maximum: 86_400,
    description:
      'How many seconds measures stay when an attack has ended; doubled with each attack that returns. Absent: 300.',
  }),
  override_accept: Type.Boolean({
    description:
      "Whether a measure may also hit what a customer's rule accepts. Absent: it stays `proposed` where it would.",
  }),
  allow_rtbh: Type.Boolean({
    description:
      'Whether `mitigation: flowspec` may give up the destination where the routers have no room for more routes. Absent: no.',
  }),
};
const optional = <T extends Record<string, Type.TSchema>>(fields: T) =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, Type.Optional(schema)]));

const scope = Type.String({
  minLength: 1,
  maxLength: 64,
  description:
    '`installation`; the uuid of a provider or a user, for all of its addresses; or an address or a subnet that lies in ' +
    "a provider's prefix. Of several policies that are for a destination the narrowest wins: the one of the longest subnet, " +
    "its own or, of an account's policy, the account's around the destination; of one length the subnet's, then the user's, " +
    "then the provider's. The installation's comes last.",
  examples: ['203.0.113.0/28'],
});

export const policyCreate = Type.Object(
  { scope, ...optional(policySettings), aggregate_thresholds: Type.Optional(aggregateThresholds) },
  { $id: 'DetectionPolicyCreate', additionalProperties: false },
);
export const policyChange = Type.Object(
  {
    ...optional(policySettings),
    aggregate_thresholds: Type.Optional(
      Type.Union([aggregateThresholds, Type.Null()], { description: 'Null: four times what one address may have.' }),
    ),
  },
  { $id: 'DetectionPolicyChange', additionalProperties: false, minProperties: 1 },
);
export const policy = Type.Object(
  {
    uuid,
    scope,
    ...policySettings,
    aggregate_thresholds: Type.Optional(aggregateThresholds),
    created_at: timestamp,
    updated_at: timestamp,
  },
  { $id: 'DetectionPolicy', additionalProperties: false },
);

const effectiveLimits = Type.Object(
  {
    policy: Type.String({ description: '`default` where no policy says anything, else what the policy is for.' }),
    pps: Type.Optional(Type.Number()),
    bps: Type.Optional(Type.Number()),
  },
  { additionalProperties: false },
);
const effectiveByVector = Type.Object(Object.fromEntries(vectorNames.map((name) => [name, effectiveLimits])), {
  additionalProperties: false,
});
export const effectivePolicyQuery = Type.Object(
  {
    dst: Type.String({
      maxLength: 64,
      description: "An address or subnet of the caller's.",
      examples: ['203.0.113.7'],
    }),
  },
  { additionalProperties: false },
);
export const effectivePolicy = Type.Object(
  {
    dst: Type.String(),
    thresholds: effectiveByVector,
    aggregate_thresholds: effectiveByVector,
    mitigation,
    hold_s: policySettings.hold_s,
    baseline_factor: policySettings.baseline_factor,
    mitigation_hold_s: policySettings.mitigation_hold_s,
    override_accept: policySettings.override_accept,
    allow_rtbh: policySettings.allow_rtbh,
  },
  { $id: 'EffectiveDetectionPolicy', additionalProperties: false },
);

const partName = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: '^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$',
  ...inWords("1 to 64 of a–z, A–Z, 0–9, '.', '_' and '-', with a letter or a digit first and last"),
  description: 'Unique; letters, digits, dot, dash and underscore.',
  examples: ['edge1'],
});

const exporterSettings = {
  name: partName,
  source: Type.String({
    minLength: 1,
    maxLength: 64,
    description:
      'The address that its datagrams come from. Unique. Not one that nothing is sent from: unspecified, multicast, broadcast, ' +
      'reserved.',
    examples: ['192.0.2.1'],
  }),
  sampling: Type.Union([Type.Enum(['auto', 'prescaled']), Type.Integer({ minimum: 1, maximum: MOST_SAMPLING_RATE })], {
    ...inWords(`auto, prescaled or an integer from 1 to ${MOST_SAMPLING_RATE}`),
    description:
      '`auto`: as the exporter tells (its datagrams, or its options data); `prescaled`: its counts are multiplied already; ' +
      'a number: one packet of so many, whatever it tells.',
  }),
  interfaces: Type.Array(Type.Integer({ minimum: 0, maximum: 4_294_967_295 }), {
    minItems: 1,
    maxItems: 1024,
    description:
      'SNMP indices of the interfaces by which traffic comes in from outside: only what came in by them is counted. ' +
      'Absent: all. Where an exporter samples a packet on its way in and on its way out, it is counted twice without.',
    examples: [[1, 2]],
  }),
};

export const exporterCreate = Type.Object(
  {
    name: exporterSettings.name,
    source: exporterSettings.source,
    sampling: Type.Optional(exporterSettings.sampling),
    interfaces: Type.Optional(exporterSettings.interfaces),
  },
  { $id: 'ExporterCreate', additionalProperties: false },
);
export const exporterChange = Type.Object(
  {
    ...optional({ name: exporterSettings.name, source: exporterSettings.source, sampling: exporterSettings.sampling }),
    interfaces: Type.Optional(
      Type.Union([exporterSettings.interfaces, Type.Null()], { description: 'Null: all interfaces.' }),
    ),
  },
  { $id: 'ExporterChange', additionalProperties: false, minProperties: 1 },
);

const figure = Type.Number({ minimum: 0 });
const live = Type.Object(
  {
    told_at: Type.String({ format: 'date-time', description: 'When a detector last told of it: every ten seconds.' }),
    last_seen_at: timestamp,
    protocols: Type.Array(Type.String(), { examples: [['ipfix']] }),
    datagrams: count("Since the detector's start."),
    records: count("Since the detector's start."),
    datagrams_per_second: Type.Optional(figure),
    records_per_second: Type.Optional(
      Type.Number({
        minimum: 0,
        description: 'Of the last ten seconds, as the other rate; absent: no detector tells.',
      }),
    ),
    templates: count('Known at present.'),
    sampling_rate: Type.Optional(
      Type.Number({ minimum: 0, description: 'One packet of so many, as last told or set; absent: nothing was.' }),
    ),
    longest_flow_s: Type.Optional(
      count('Seconds of the longest flow that it told of lately, where that is more than 75.'),
    ),
    warning: Type.Optional(
      Type.String({
        description:
          'Sentences, where something of how it tells keeps attacks from being seen at once, or counts what it tells more than once.',
      }),
    ),
    dropped: Type.Record(Type.String(), count('Datagrams and records that were thrown away.'), {
      description: 'By reason.',
    }),
    lost: count("Datagrams that are missing in the exporter's sequence numbers."),
    detectors: Type.Array(Type.String(), { description: 'Names of those that hear it.' }),
    collectors: Type.Array(Type.String(), {
      description:
        'Those that receive it: names of detectors that do so themselves, and of collectors over NATS. It should be one: what is sent to two is counted twice.',
    }),
  },
  { additionalProperties: false, description: 'What is heard of it; absent: nothing was yet.' },
);

export const exporter = Type.Object(
  {
    uuid,
    ...exporterSettings,
    interfaces: Type.Optional(exporterSettings.interfaces),
    created_at: timestamp,
    updated_at: timestamp,
    live: Type.Optional(live),
  },
  { $id: 'Exporter', additionalProperties: false },
);
export const exporterInList = Type.Object(
  {
    ...optional(exporter.properties),
    source: exporterSettings.source,
    unknown: Type.Optional(
      Type.Literal(true, {
        description: 'Nobody configured this address: what it sends is counted and thrown away.',
      }),
    ),
    local: Type.Optional(
      Type.Literal(true, {
        description: 'A program on the machine of the detector itself: taken without being configured.',
      }),
    ),
  },
  { $id: 'ListedExporter', additionalProperties: false },
);

export const detectorCreate = Type.Object({ name: partName }, { $id: 'DetectorCreate', additionalProperties: false });
const detectorFields = {
  uuid,
  name: Type.String(),
  created_at: timestamp,
  last_seen_at: Type.Optional(timestamp),
  status: Type.Optional(
    Type.Object({}, { additionalProperties: true, description: 'What it last told of itself and its machine.' }),
  ),
};
export const detector = Type.Object(detectorFields, { $id: 'Detector', additionalProperties: false });
export const detectorCreated = Type.Object(
  { ...detectorFields, key: Type.String({ description: 'Of the detector: shown this once.' }) },
  { $id: 'CreatedDetector', additionalProperties: false },
);
export const removedDetection = Type.Object(
  { uuid, message: Type.String() },
  { $id: 'RemovedOfDetection', additionalProperties: false },
);
