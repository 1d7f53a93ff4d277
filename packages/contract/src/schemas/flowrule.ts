/** A flowrule on the wire: a BGP FlowSpec rule (RFC 8955, 8956) that was proposed or announced for an address. */
import Type from 'typebox';
import { dst } from './firewall-rule.ts';
import { providerRuleListQuery, ruleListQuery } from './list.ts';
import { expiresAt, storedObjectFields, timestamp } from './object.ts';

/** All but the destination prefix, in the order of their numbers in RFC 8955, 4.2.2 and RFC 8956, 3. */
export const flowComponents = [
  'source-prefix',
  'protocol',
  'port',
  'destination-port',
  'source-port',
  'icmp-type',
  'icmp-code',
  'tcp-flags',
  'packet-length',
  'dscp',
  'fragment',
  'flow-label',
] as const;

export const flowActions = ['discard', 'rate-limit', 'redirect', 'mark', 'blackhole'] as const;

const component = Type.Optional(Type.String());

export const flowrule = Type.Object(
  {
    ...storedObjectFields,
    state: Type.Enum(['proposed', 'pending', 'active', 'failed', 'marked_for_deletion'], {
      description:
        '`proposed`: not to be announced, `state_reason` says why. `pending`: the BGP speaker does not have it yet. ' +
        '`active`: announced. `failed`: the speaker refused it.',
    }),
    dst,
    components: Type.Object(
      Object.fromEntries(flowComponents.map((name) => [name, component])) as Record<
        (typeof flowComponents)[number],
        typeof component
      >,
      {
        additionalProperties: false,
        description:
          'What a packet must have besides the destination, by the names of RFC 8955 and RFC 8956. Numbers: values and ' +
          'ranges, ascending, such as `53,1024-65535`; a protocol by its name where it has one. Flags: alternatives, ' +
          'each of flags that are set or, after `!`, not set, such as `syn&!ack,rst`.',
        examples: [{ protocol: 'udp', 'source-port': '53', 'packet-length': '1000-65535' }],
      },
    ),
    action: Type.Enum([...flowActions], {
      description:
        '`blackhole` is no FlowSpec rule but a route to the destination that peers discard (RFC 7999): it has no ' +
        'components, and takes the whole destination down.',
    }),
    ratelimit: Type.Optional(
      Type.Number({ minimum: 0, description: 'Bytes a second, with `rate-limit`: what exceeds it is discarded.' }),
    ),
    redirect_target: Type.Optional(
      Type.String({ description: 'Route target of the VRF, with `redirect`.', examples: ['64500:666'] }),
    ),
    mark_dscp: Type.Optional(Type.Integer({ minimum: 0, maximum: 63, description: 'Code point, with `mark`.' })),
    origin: Type.Enum(['attack', 'policy', 'operator'], {
      description:
        '`attack`: made against an attack, with which it goes. `operator`: made so, and kept by the operator. `policy`: it ' +
        'stands by itself.',
    }),
    attack_uuid: Type.Optional(Type.String({ format: 'uuid', description: 'The attack that it came of.' })),
    announced_at: Type.Optional(timestamp),
    routers: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Addresses of the peers that have a session with the BGP speaker, while it is announced. Whether a peer acts on ' +
          'it, it does not tell.',
        examples: [['192.0.2.7']],
      }),
    ),
    expires_at: Type.Optional(expiresAt),
  },
  { $id: 'Flowrule', additionalProperties: false },
);

/** Body of an announcement by hand. */
export const flowruleAnnounce = Type.Object(
  {
    override_accept: Type.Optional(
      Type.Boolean({ description: "Whether it may hit what a customer's rule accepts. Absent: no." }),
    ),
  },
  { $id: 'FlowruleAnnounce', additionalProperties: false },
);

const flowruleStates = Type.Optional(
  Type.Enum(['proposed', 'pending', 'active', 'failed', 'marked_for_deletion'], { description: 'Only those in it.' }),
);
export const flowruleListQuery = Type.Object(
  { ...ruleListQuery.properties, state: flowruleStates },
  { additionalProperties: false },
);
export const providerFlowruleListQuery = Type.Object(
  { ...providerRuleListQuery.properties, state: flowruleStates },
  { additionalProperties: false },
);
