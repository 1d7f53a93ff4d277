/**
 * The firewall rule on the wire: the fields that a caller sends, and the object that is answered. Owns names, types,
 * bounds and texts of the fields; what they mean together (families, ports and protocols) is core's parser's.
 */
import Type from 'typebox';
import { protocolNames } from '../protocols.ts';
import { confirmWithin, expiresAt, hitFields, storedObjectFields, timestamp } from './object.ts';

export const ruleActions = ['accept', 'continue', 'drop', 'reject'] as const;
export const tcpFlagNames = ['fin', 'syn', 'rst', 'psh', 'ack', 'urg', 'ece', 'cwr'] as const;
export const packetTypes = ['broadcast', 'host', 'multicast', 'other'] as const;
export const stateTypes = ['established', 'invalid', 'new', 'related'] as const;

export const portRange = Type.Object(
  {
    start: Type.Integer({ minimum: 0, maximum: 65535, description: 'First port.' }),
    end: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 65535, description: 'Last port, inclusive; absent: the first port alone.' }),
    ),
  },
  { additionalProperties: false, description: 'An inclusive range of ports.' },
);

export const addressRange = Type.Object(
  {
    start: Type.String({
      maxLength: 64,
      description: 'First address; alone it is one address or, in CIDR form, one subnet.',
    }),
    end: Type.Optional(Type.String({ maxLength: 64, description: 'Last address, inclusive.' })),
  },
  { additionalProperties: false, description: 'Source addresses that the traffic must come from.' },
);

export const portRanges = Type.Object(
  { src: Type.Optional(portRange), dst: Type.Optional(portRange) },
  { additionalProperties: false, description: 'Source and destination port ranges.' },
);

export const dst = Type.String({
  maxLength: 64,
  description: 'Destination: one address, or a subnet in CIDR form without host bits.',
  examples: ['203.0.113.7', '2001:db8::/64'],
});

/** Every field of a rule, by name: create, change and answer pick from these. */
export const ruleFields = {
  dst,
  protocol: Type.Enum([...protocolNames], {
    description: 'Internet protocol, by its name in the IANA registry; `any` sets no condition.',
  }),
  action: Type.Enum([...ruleActions], { description: 'What happens to traffic that matches.' }),
  priority: Type.Integer({
    minimum: 1,
    maximum: 2147483647,
    default: 1000,
    description: '1 is evaluated first; rules of equal priority in the order of their creation.',
  }),
  descr: Type.String({ maxLength: 255, description: 'Free text, without control characters.' }),
  src: addressRange,
  port: portRanges,
  disabled: Type.Boolean({ default: false, description: 'A disabled rule is kept and not applied.' }),
  tcpflags: Type.Array(Type.Enum([...tcpFlagNames]), {
    maxItems: 8,
    description: 'Flags that must be set; the others are ignored. Only with protocol tcp. Empty is the same as absent.',
  }),
  ratelimit: Type.Integer({
    minimum: 0,
    maximum: 4294967295,
    description: 'Packets a second over all traffic that the rule matches; 0 is no limit.',
  }),
  packetlength: Type.Integer({ minimum: 1, maximum: 65535, description: 'Total length of the IP packet in bytes.' }),
  packettype: Type.Enum([...packetTypes], { description: 'Link-layer addressing of the packet.' }),
  statetype: Type.Enum([...stateTypes], {
    description: 'State of the connection that the packet belongs to. SYNs that a filter would answer are new.',
  }),
};

const optionalRuleFields = {
  descr: Type.Optional(ruleFields.descr),
  src: Type.Optional(ruleFields.src),
  port: Type.Optional(ruleFields.port),
  tcpflags: Type.Optional(ruleFields.tcpflags),
  ratelimit: Type.Optional(ruleFields.ratelimit),
  packetlength: Type.Optional(ruleFields.packetlength),
  packettype: Type.Optional(ruleFields.packettype),
  statetype: Type.Optional(ruleFields.statetype),
};

const canonicalRuleFields = Type.Object({
  dst: ruleFields.dst,
  protocol: ruleFields.protocol,
  action: ruleFields.action,
  priority: ruleFields.priority,
  disabled: ruleFields.disabled,
  ...optionalRuleFields,
});

/** The canonical wire fields of a stored rule, in no particular order; absent optional ones are left out. */
export type FirewallRuleFields = Type.Static<typeof canonicalRuleFields>;

/** Fields of a change that are not the rule's: when it ends, and until when it is to be confirmed. */
export const changeFieldNames = ['expires_at', 'confirm_within'] as const;

/** What a new rule gives beside its destination, wherever it is given. */
const newRuleFields = {
  protocol: ruleFields.protocol,
  action: ruleFields.action,
  priority: Type.Optional(ruleFields.priority),
  disabled: Type.Optional(ruleFields.disabled),
  ...optionalRuleFields,
  expires_at: Type.Optional(expiresAt),
};

/** Body of a create. */
export const firewallRuleCreate = Type.Object(
  { dst: ruleFields.dst, ...newRuleFields, confirm_within: Type.Optional(confirmWithin) },
  { $id: 'FirewallRuleCreate', additionalProperties: false },
);

const nullable = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

/** Body of a change: a field that is absent stays; `null` removes an optional one or restores a default. */
export const firewallRulePatch = Type.Object(
  {
    dst: Type.Optional(ruleFields.dst),
    protocol: Type.Optional(ruleFields.protocol),
    action: Type.Optional(ruleFields.action),
    priority: nullable(ruleFields.priority),
    disabled: nullable(ruleFields.disabled),
    descr: nullable(ruleFields.descr),
    src: nullable(ruleFields.src),
    port: nullable(ruleFields.port),
    tcpflags: nullable(ruleFields.tcpflags),
    ratelimit: nullable(ruleFields.ratelimit),
    packetlength: nullable(ruleFields.packetlength),
    packettype: nullable(ruleFields.packettype),
    statetype: nullable(ruleFields.statetype),
    expires_at: nullable(expiresAt),
    confirm_within: Type.Optional(confirmWithin),
  },
  { $id: 'FirewallRulePatch', additionalProperties: false, minProperties: 1 },
);

/** A larger set is one request too long for the routers to swallow in a step. */
export const rulesPerReplacement = 1000;

/** Body of the replacement of all rules of one destination: each entry is a create without its own meta fields. */
export const firewallRuleReplace = Type.Object(
  {
    rules: Type.Array(
      Type.Object({ dst: Type.Optional(ruleFields.dst), ...newRuleFields }, { additionalProperties: false }),
      {
        maxItems: rulesPerReplacement,
        description: 'The whole set, in evaluation order among equal priorities; empty removes all.',
      },
    ),
    confirm_within: Type.Optional(confirmWithin),
  },
  { $id: 'FirewallRuleReplace', additionalProperties: false },
);

/** What is answered for a stored rule. */
export const firewallRule = Type.Object(
  {
    ...storedObjectFields,
    state: Type.Enum(['pending', 'active', 'disabled', 'failed', 'marked_for_deletion'], {
      description: 'Derived from what the routers report to have applied.',
    }),
    ...canonicalRuleFields.properties,
    priority: Type.Integer({
      minimum: 1,
      maximum: 2147483648,
      description:
        '1 is evaluated first. A measure against an attack has 2147483648, more than can be given: it comes after all other ' +
        'rules, so that what they accept is accepted.',
    }),
    origin: Type.Optional(
      Type.Enum(['attack', 'operator'], {
        description:
          'Absent: a rule that somebody created. `attack`: the service made it as a measure against an attack, and takes it ' +
          'back; it cannot be changed, and once deleted it is not made again for that attack. `operator`: such a rule that ' +
          'the operator keeps.',
      }),
    ),
    attack_uuid: Type.Optional(Type.String({ format: 'uuid', description: 'The attack that it came of.' })),
    expires_at: Type.Optional(expiresAt),
    hits: Type.Object(
      {
        ...hitFields,
        shared_by: Type.Optional(
          Type.Integer({ minimum: 2, description: 'The count is the sum over that many destinations.' }),
        ),
      },
      { additionalProperties: false, description: 'What the routers have reported so far that the rule has matched.' },
    ),
    change_uuid: Type.Optional(
      Type.String({ format: 'uuid', description: 'Confirms the change (`confirm_within`); only in its own answer.' }),
    ),
    confirm_by: Type.Optional(timestamp),
  },
  { $id: 'FirewallRule', additionalProperties: false },
);
export type FirewallRule = Type.Static<typeof firewallRule>;

/** What is answered when all rules of one destination were replaced. */
export const replacedRules = Type.Object(
  {
    dst: ruleFields.dst,
    rules: Type.Array(firewallRule, { description: 'The set as it now is.' }),
    created: Type.Integer({ minimum: 0 }),
    kept: Type.Integer({ minimum: 0 }),
    removed: Type.Integer({ minimum: 0, description: 'Marked for deletion.' }),
    change_uuid: Type.Optional(Type.String({ format: 'uuid', description: 'Confirms the change.' })),
    confirm_by: Type.Optional(timestamp),
  },
  { $id: 'ReplacedRules', additionalProperties: false },
);
