/** The tunnel on the wire: what is asked for, and per location what the customer's end has to be set to. */
import Type from 'typebox';
import { inWords } from './in-words.ts';
import { expiresAt, objectState, storedObjectFields } from './object.ts';

const tunnelFields = {
  ips: Type.Array(Type.String({ maxLength: 64 }), {
    minItems: 1,
    maxItems: 256,
    description: "Subnets routed through the tunnel, inside the caller's own.",
  }),
  endpoint: Type.String({ maxLength: 64, description: "Public unicast address of the customer's end." }),
  type: Type.String({
    pattern: '^([Gg][Rr][Ee]|[Gg][Ee][Nn][Ee][Vv][Ee])$',
    description: 'GRE or Geneve.',
    ...inWords('GRE or Geneve'),
  }),
  locations: Type.Optional(
    Type.Array(Type.String({ maxLength: 64 }), {
      minItems: 1,
      maxItems: 64,
      description: 'Only routers at these locations; absent: at every one.',
    }),
  ),
  expires_at: Type.Optional(expiresAt),
};

export const tunnelCreate = Type.Object(tunnelFields, { $id: 'TunnelCreate', additionalProperties: false });

const inner = Type.Object(
  { router: Type.String(), customer: Type.String(), prefix_length: Type.Integer() },
  { additionalProperties: false },
);

const tunnelInformation = Type.Object(
  {
    location: Type.String(),
    router: Type.String(),
    local_endpoint: Type.String(),
    remote_endpoint: Type.String(),
    inner_ipv4: inner,
    inner_ipv6: inner,
    key: Type.Optional(Type.Integer({ minimum: 0, maximum: 4294967295, description: 'GRE only.' })),
    vni: Type.Optional(Type.Integer({ minimum: 0, maximum: 16777215, description: 'Geneve only.' })),
    udp_port: Type.Optional(Type.Integer({ description: 'Geneve only.' })),
    mtu: Type.Integer(),
    mss: Type.Integer(),
    state: objectState,
    probe: Type.Optional(
      Type.Object(
        { rtt_ms: Type.Optional(Type.Number()), loss: Type.Number({ minimum: 0, maximum: 1 }) },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
);

export const tunnel = Type.Object(
  {
    ...storedObjectFields,
    state: objectState,
    ...tunnelFields,
    type: Type.Enum(['GRE', 'Geneve']),
    tunnel_information: Type.Array(tunnelInformation),
  },
  { $id: 'Tunnel', additionalProperties: false },
);

export const tunnelList = Type.Object(
  { tunnels: Type.Array(tunnel) },
  { $id: 'TunnelList', additionalProperties: false },
);
