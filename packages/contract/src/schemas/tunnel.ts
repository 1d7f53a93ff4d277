/** The tunnel on the wire: what is asked for, and per router what the customer's end has to be set to. */
import Type from 'typebox';
import { inWords } from './in-words.ts';
import { providerRuleListQuery } from './list.ts';
import { expiresAt, objectState, storedObjectFields, timestamp } from './object.ts';

const ips = Type.Array(Type.String({ maxLength: 64 }), {
  minItems: 1,
  maxItems: 256,
  description:
    "Subnets (or single addresses) routed through the tunnel, inside the caller's own; each in one tunnel only.",
  examples: [['203.0.113.0/28']],
});
const endpoint = Type.String({
  maxLength: 64,
  description:
    "Public unicast address of the customer's end, IPv4 or IPv6, outside `ips`; inside another tunnel's only where that one " +
    'does not lead back into this one.',
  examples: ['198.51.100.9'],
});
const locations = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: 64,
  description:
    'Names: only routers at these locations; absent or empty: at every one, also those that are added later.',
  examples: [['fra1']],
});

const tunnelFields = {
  ips,
  endpoint,
  type: Type.String({
    pattern: '^([Gg][Rr][Ee]|[Gg][Ee][Nn][Ee][Vv][Ee])$',
    maxLength: 16,
    description: 'GRE or Geneve, in any case.',
    ...inWords('GRE or Geneve'),
  }),
  keyed: Type.Optional(
    Type.Boolean({
      description:
        'False: a GRE tunnel whose packets carry no key, for equipment that knows none (MikroTik RouterOS, Juniper SRX ' +
        'before GRE Tunnel Key Support). Of such tunnels each endpoint can have one only. Absent: true.',
    }),
  ),
  locations: Type.Optional(locations),
  expires_at: Type.Optional(expiresAt),
};

export const tunnelCreate = Type.Object(tunnelFields, { $id: 'TunnelCreate', additionalProperties: false });

export const tunnelPatch = Type.Object(
  {
    ips: Type.Optional(ips),
    endpoint: Type.Optional(endpoint),
    locations: Type.Optional(Type.Union([locations, Type.Null()], { description: 'Null or empty: every location.' })),
    expires_at: Type.Optional(Type.Union([expiresAt, Type.Null()], { description: 'Null: never.' })),
  },
  { $id: 'TunnelPatch', additionalProperties: false, minProperties: 1 },
);

const inner = (description: string) =>
  Type.Object(
    { router: Type.String(), customer: Type.String(), prefix_length: Type.Integer() },
    { additionalProperties: false, description },
  );

const milliseconds = Type.Number({ minimum: 0 });

const tunnelProbe = Type.Object(
  {
    rtt_ms: Type.Optional(
      Type.Object(
        { min: milliseconds, avg: milliseconds, max: milliseconds },
        {
          additionalProperties: false,
          description: 'Round trips of the last five minutes; absent: nothing was answered.',
        },
      ),
    ),
    loss_percent: Type.Number({ minimum: 0, maximum: 100, description: 'Of the last five minutes.' }),
    last_answer_at: Type.Optional({ ...timestamp, description: 'Absent: none came yet.' }),
    at: { ...timestamp, description: 'Of the last report: all else is of then.' },
  },
  {
    additionalProperties: false,
    description: "How the customer's inner address answers the router's pings; absent until the router has reported.",
  },
);
export type TunnelProbe = Type.Static<typeof tunnelProbe>;

const tunnelInformation = Type.Object(
  {
    location: Type.String(),
    router: Type.String(),
    local_endpoint: Type.String({ description: "The router's address outside the tunnel." }),
    remote_endpoint: Type.String({ description: "The customer's: `endpoint`." }),
    inner_ipv4: inner('Addresses inside the tunnel, a /31.'),
    inner_ipv6: inner('Addresses inside the tunnel, a /127.'),
    key: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 4294967295, description: 'Of a GRE tunnel, unless it is without key.' }),
    ),
    vni: Type.Optional(Type.Integer({ minimum: 1, maximum: 16777215, description: 'Of a Geneve tunnel.' })),
    udp_port: Type.Optional(Type.Integer({ description: 'Of a Geneve tunnel: where both ends listen.' })),
    mtu: Type.Integer({ description: 'Largest packet inside, octets, where the path outside carries 1500.' }),
    mss: Type.Integer({
      description: 'Largest TCP segment over IPv4 inside, octets: what hosts behind it shall announce.',
    }),
    mss_ipv6: Type.Integer({ description: 'Largest TCP segment over IPv6 inside, octets.' }),
    state: objectState,
    state_reason: Type.Optional(Type.String({ description: 'Why the state there is not what was asked for.' })),
    probe: Type.Optional(tunnelProbe),
  },
  { additionalProperties: false },
);

export const tunnel = Type.Object(
  {
    ...storedObjectFields,
    state: objectState,
    ...tunnelFields,
    type: Type.Enum(['GRE', 'Geneve']),
    tunnel_information: Type.Array(tunnelInformation, {
      description: 'What each end has to be set to, router by router.',
    }),
  },
  { $id: 'Tunnel', additionalProperties: false },
);

export const tunnelList = Type.Object(
  { tunnels: Type.Array(tunnel) },
  { $id: 'TunnelList', additionalProperties: false },
);

const { user_uuid, ...page } = providerRuleListQuery.properties;
const listed = {
  ...page,
  dst: Type.Optional(
    Type.String({ maxLength: 64, description: 'Only tunnels with a subnet that covers it or lies inside it.' }),
  ),
  state: Type.Optional(
    Type.Enum(['pending', 'active', 'failed', 'marked_for_deletion'], { description: 'Only those in it.' }),
  ),
};

export const tunnelListQuery = Type.Object(listed, { additionalProperties: false });
export const providerTunnelListQuery = Type.Object({ ...listed, user_uuid }, { additionalProperties: false });

export const configFormats = ['iproute2', 'systemd-networkd', 'netplan', 'mikrotik', 'junos', 'ios', 'vyos'] as const;
export type ConfigFormat = (typeof configFormats)[number];

export const tunnelConfigQuery = Type.Object(
  {
    format: Type.Enum([...configFormats], {
      description:
        'iproute2: shell; systemd-networkd: files; netplan: YAML; mikrotik: RouterOS 7; junos: Junos OS; ios: Cisco IOS XE; ' +
        'vyos: VyOS 1.4.',
    }),
    location: Type.Optional(
      Type.String({ maxLength: 64, description: 'Only the ends at this location; absent: every end.' }),
    ),
  },
  { additionalProperties: false },
);
