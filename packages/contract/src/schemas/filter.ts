/**
 * The filter on the wire: one kind of application-aware protection for a destination; and what is said of the kinds.
 * Owns names, types and bounds; what a kind allows is core's to check.
 */
import Type from 'typebox';
import { addressRange, dst, portRanges } from './firewall-rule.ts';
import { providerRuleListQuery, ruleListQuery } from './list.ts';
import { expiresAt, hitFields, objectState, storedObjectFields } from './object.ts';

const filterFields = {
  dst,
  filter: Type.Integer({
    minimum: 1,
    maximum: 65535,
    description: 'Identifier of a kind of filter; `GET /filter/kind` describes them.',
  }),
  priority: Type.Integer({
    minimum: 1,
    maximum: 2147483647,
    default: 1000,
    description:
      '1 is asked first; filters of equal priority in the order of their creation. Kinds that complete handshakes in the ' +
      "destination's place (tcp-syn-protect, web) are asked before all others, whatever their priority.",
  }),
  src: Type.Optional(addressRange),
  port: Type.Optional(portRanges),
  ratelimit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 25000,
      description:
        'Mbit/s of traffic that passes the filter, all of its destinations together; absent: unlimited. After a pause, one ' +
        "second's worth passes at once.",
    }),
  ),
  expires_at: Type.Optional(expiresAt),
};

export const filterCreate = Type.Object(
  { ...filterFields, priority: Type.Optional(filterFields.priority) },
  { $id: 'FilterCreate', additionalProperties: false },
);

export const filter = Type.Object(
  {
    ...storedObjectFields,
    state: objectState,
    ...filterFields,
    hits: Type.Object(hitFields, {
      additionalProperties: false,
      description:
        'What the routers have reported so far that the filter has discarded; what it let pass is not counted.',
    }),
  },
  { $id: 'Filter', additionalProperties: false },
);

export const filterListQuery = Type.Object(
  { ...ruleListQuery.properties, state: Type.Optional(objectState) },
  { additionalProperties: false },
);
export const providerFilterListQuery = Type.Object(
  { ...providerRuleListQuery.properties, state: Type.Optional(objectState) },
  { additionalProperties: false },
);

const port = Type.Integer({ minimum: 0, maximum: 65535 });
const prefixLength = (family: string, bits: number) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: bits, description: `Of an ${family} destination.` }));

const kindField = Type.Object(
  {
    name: Type.String({ description: 'Of the field of a new filter; `port.dst` is `dst` inside `port`.' }),
    type: Type.Enum(['prefix', 'address_range', 'port_range', 'integer', 'time'], {
      description: 'What a form asks for; the body of `POST /filter` says how it is written.',
    }),
    required: Type.Boolean(),
    minimum: Type.Optional(Type.Integer()),
    maximum: Type.Optional(Type.Integer()),
    default: Type.Optional(Type.Integer()),
    unit: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);

export const filterKind = Type.Object(
  {
    id: Type.Integer({
      minimum: 1,
      maximum: 65535,
      description: 'What `filter` of a new filter names; never changes.',
    }),
    name: Type.String({ description: 'As stable as `id`.' }),
    label: Type.String({ description: 'For people.' }),
    description: Type.String({ description: 'Which traffic passes and which is discarded.' }),
    limits: Type.Array(Type.String(), { description: 'What it cannot do and what it needs, a sentence each.' }),
    families: Type.Array(Type.Enum(['ipv4', 'ipv6']), {
      minItems: 1,
      description: 'Of destinations that it protects.',
    }),
    transports: Type.Array(Type.Enum(['tcp', 'udp', 'icmp']), {
      minItems: 1,
      description: 'Traffic that it looks at.',
    }),
    default_ports: Type.Array(
      Type.Object(
        { side: Type.Enum(['src', 'dst']), transport: Type.Enum(['tcp', 'udp']), start: port, end: port },
        { additionalProperties: false },
      ),
      {
        description:
          'Looked at on a side for which a filter names no ports. A side that is not in the list: all ports, or those that ' +
          'the filter must name.',
      },
    ),
    memory: Type.Enum(['none', 'source', 'connection'], {
      description:
        'By what it tells good traffic: each packet alone, what was seen of the source before, or the connection. Each ' +
        'kind limits sources besides.',
    }),
    needs_return_path: Type.Boolean({
      description: "True: the destination's answers must leave through the router that sees what comes in.",
    }),
    shortest_prefix: Type.Optional(
      Type.Object(
        { ipv4: prefixLength('IPv4', 32), ipv6: prefixLength('IPv6', 128) },
        { additionalProperties: false, description: 'Where it cannot protect any subnet: the shortest that it takes.' },
      ),
    ),
    fields: Type.Array(kindField, { description: 'The fields of a new filter that it uses, in the order of a form.' }),
  },
  { $id: 'FilterKind', additionalProperties: false },
);
export type Filter = Type.Static<typeof filter>;
export type FilterKindAnswer = Type.Static<typeof filterKind>;
