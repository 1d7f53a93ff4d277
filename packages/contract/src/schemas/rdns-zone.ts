/** A reverse zone and the DNS server that keeps it, on the wire. An answer never holds a secret. */
import Type from 'typebox';
import { inWords } from './in-words.ts';
import { timestamp, uuid } from './object.ts';

export const zoneDriver = Type.Enum(['embedded', 'rfc2136', 'powerdns'], {
  description:
    '`embedded`: the DNS server in Levee itself; `rfc2136`: dynamic updates (BIND, Knot, PowerDNS, Windows DNS …); ' +
    '`powerdns`: the HTTP API of PowerDNS.',
});

const server = Type.String({
  minLength: 1,
  maxLength: 500,
  description: "`rfc2136`: host or address of the zone's primary, with its port when that is not 53. `powerdns`: URL.",
});
const tsigName = Type.String({ minLength: 1, maxLength: 254, description: 'As the server calls the key.' });
const tsigAlgorithm = Type.Enum(['hmac-sha1', 'hmac-sha224', 'hmac-sha256', 'hmac-sha384', 'hmac-sha512']);
const tsig = Type.Object(
  {
    name: tsigName,
    algorithm: tsigAlgorithm,
    secret: Type.String({ minLength: 4, maxLength: 1024, description: 'Base64. Never answered.' }),
  },
  {
    additionalProperties: false,
    description:
      '`rfc2136`: the key that signs updates and proves the answers (RFC 8945). Without one the server can tell Levee ' +
      'only by its address, which others can forge, and Levee cannot tell its answers: give one.',
  },
);
const apiKey = Type.String({
  minLength: 1,
  maxLength: 256,
  pattern: '^[\\x21-\\x7e]+$',
  ...inWords('1 to 256 visible ASCII characters'),
  description: '`powerdns`: the api-key of its configuration. Never answered.',
});
const nameservers = Type.Array(Type.String({ maxLength: 254 }), {
  minItems: 1,
  maxItems: 16,
  description:
    'Host names of the name servers, the primary first: to these a wider zone that is `embedded` delegates this one. ' +
    '`embedded`: they stand in the zone; without any it has those of the embedded zone around it, and without one around it ' +
    '`localhost`, good for nothing but trying out (the answer then holds a `warning`). ' +
    '`powerdns`: a zone that the server does not have yet is created with them.',
});
/** As long as a name of the SOA record can be, which it becomes (RFC 1035, 2.3.4 and 8). */
const admin = Type.String({
  minLength: 3,
  maxLength: 253,
  description: '`embedded`: mailbox of whoever looks after the zone, for its SOA record.',
  examples: ['hostmaster@example.net'],
});
const secondaries = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: 16,
  description:
    '`embedded`: addresses that may transfer the zone, and are notified of changes (at port 53 or the given).',
});
const ttl = Type.Integer({ minimum: 1, maximum: 604_800, description: 'Seconds, of every record; 300 when absent.' });

const settingFields = {
  server: Type.Optional(server),
  tsig: Type.Optional(tsig),
  api_key: Type.Optional(apiKey),
  nameservers: Type.Optional(nameservers),
  admin: Type.Optional(admin),
  secondaries: Type.Optional(secondaries),
  ttl: Type.Optional(ttl),
};

export const rdnsZoneCreate = Type.Object(
  {
    zone: Type.String({
      minLength: 1,
      maxLength: 254,
      description:
        'Name of a reverse zone: below in-addr.arpa or ip6.arpa, classless ones (RFC 2317) included: ' +
        '`128/25.2.0.192.in-addr.arpa` (first octet, prefix length) or `128-255.2.0.192.in-addr.arpa` (first, last octet).',
      examples: ['113.0.203.in-addr.arpa'],
    }),
    driver: zoneDriver,
    ...settingFields,
  },
  { $id: 'RdnsZoneCreate', additionalProperties: false },
);

const orNull = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

export const rdnsZoneChange = Type.Object(
  {
    driver: Type.Optional(zoneDriver),
    server: settingFields.server,
    tsig: orNull(tsig),
    api_key: settingFields.api_key,
    nameservers: orNull(nameservers),
    admin: orNull(admin),
    secondaries: orNull(secondaries),
    ttl: orNull(ttl),
  },
  { $id: 'RdnsZoneChange', additionalProperties: false, minProperties: 1 },
);

const count = (description: string) => Type.Integer({ minimum: 0, description });

const serial = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }));

const secondaryStatus = Type.Object(
  {
    secondary: Type.String({ description: 'Address and port.' }),
    acknowledged_serial: serial('The last one of whose NOTIFY it said that it has it.'),
    transferred_serial: serial('The last one that it took whole.'),
    unanswered: count('NOTIFY messages sent since the last answer; repeated until there is one.'),
    problem: Type.Optional(Type.String({ description: 'What it answered instead, or what the system said.' })),
  },
  { additionalProperties: false },
);

const delegation = Type.Object(
  {
    zone: Type.String({ description: 'Where the records belong.' }),
    made_by: Type.Enum(['levee', 'operator'], {
      description:
        '`levee`: the zone is `embedded` and has them already. `operator`: it is kept elsewhere, and Levee does not look ' +
        'whether they are there; without them nobody finds the records of this zone.',
    }),
    records: Type.Array(Type.String(), {
      description:
        'Lines of a zone file: NS of this zone, as far as `nameservers` says them, and for a classless one the CNAME of ' +
        'each of its addresses (RFC 2317), many in one line by `$GENERATE`.',
    }),
  },
  {
    additionalProperties: false,
    description: 'What the zone around this one must hold. Absent where none is known and the zone is not classless.',
  },
);

export const rdnsZone = Type.Object(
  {
    uuid,
    zone: Type.String(),
    driver: zoneDriver,
    covers: Type.Array(Type.String(), { description: 'The addresses whose records stand in it, as subnets.' }),
    server: Type.Optional(Type.String()),
    tsig: Type.Optional(
      Type.Object({ name: Type.String(), algorithm: tsigAlgorithm }, { additionalProperties: false }),
    ),
    api_key_set: Type.Optional(Type.Boolean({ description: 'A key is stored; it is never answered.' })),
    nameservers: Type.Optional(Type.Array(Type.String())),
    admin: Type.Optional(Type.String()),
    secondaries: Type.Optional(Type.Array(Type.String())),
    ttl: Type.Integer({ description: 'Seconds.' }),
    serial: Type.Optional(Type.Integer({ description: '`embedded`: of the SOA record.' })),
    status: Type.Object(
      {
        reachable: Type.Optional(
          Type.Boolean({
            description: 'The server answered the last time and takes changes; absent until it was tried.',
          }),
        ),
        trouble: Type.Optional(
          Type.Enum(['away', 'refused'], {
            description: 'What keeps changes from it: it does not answer (properly), or it refuses all of them.',
          }),
        ),
        trouble_since: Type.Optional(timestamp),
        checked_at: Type.Optional(timestamp),
        last_error: Type.Optional(Type.String({ description: 'The last one there was; it may be over.' })),
        last_error_at: Type.Optional(timestamp),
        records_applied: count('Records that the server has as they are here.'),
        records_pending: count('Records that it has yet to take or give up.'),
        records_failed: count('Records, of those pending, that it refused.'),
        secondaries: Type.Optional(
          Type.Array(secondaryStatus, {
            description: '`embedded`: what the replica that answers knows of each secondary since it started.',
          }),
        ),
      },
      { additionalProperties: false, description: 'How the server behind does.' },
    ),
    delegation: Type.Optional(delegation),
    warning: Type.Optional(Type.String({ description: 'What keeps resolvers from finding the zone.' })),
    created_at: timestamp,
    updated_at: timestamp,
    message: Type.Optional(Type.String()),
  },
  { $id: 'RdnsZone', additionalProperties: false },
);

export const removedZone = Type.Object(
  { uuid, message: Type.String({ description: 'What becomes of the records.' }) },
  { $id: 'RemovedRdnsZone', additionalProperties: false },
);
