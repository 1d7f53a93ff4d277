/**
 * Owns the one table of settings. Everything else about configuration derives from it: environment variables,
 * levee.toml, command-line options, help, docs/configuration.md. A setting that nothing reads must not be here.
 *
 * The environment's name is `LEVEE_` and the TOML key in capitals, dots as underscores: `edge.netns` is
 * `LEVEE_EDGE_NETNS`. The one exception is DATABASE_URL, as every hosting platform calls it.
 */
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import { usualPools } from '@levee/core/tunnel/allocation.ts';
import {
  addressAndPort,
  addressOf,
  addressPool,
  choice,
  controlAddress,
  deviceName,
  gobgpAddress,
  hostAndPort,
  largeCommunity,
  listOf,
  namespaceName,
  natsAddress,
  numberOrOff,
  orOff,
  path,
  postgresUrl,
  subjectName,
  subnet,
  text,
  type ValueType,
  wholeNumber,
} from './value-types.ts';

/**
 * The programs that look at settings. `levee up` hands each child what it reads, and a program can see no other: what is
 * read and what is handed down are one statement.
 */
export type Reader = 'serve' | 'edge' | 'detect' | 'up';

export interface Setting<T, D extends T | undefined = T | undefined, R extends Reader = Reader> {
  /** `name` or `table.name` in levee.toml. */
  readonly toml: string;
  readonly environment: string;
  readonly type: ValueType<T>;
  readonly default: D;
  /** In words, where the default depends on something else. */
  readonly defaultText?: string;
  /** May come from a file named by `…_FILE`; never shown, never a command-line option. */
  readonly secret: boolean;
  readonly readBy: readonly R[];
  /** One or two sentences for the operator. */
  readonly text: string;
}

interface Details {
  readonly environment?: string;
  readonly defaultText?: string;
  readonly secret?: boolean;
}

function setting<T, const R extends Reader>(
  toml: string,
  type: ValueType<T>,
  fallback: T,
  readBy: readonly R[],
  text: string,
  details?: Details,
): Setting<T, T, R>;
function setting<T, const R extends Reader>(
  toml: string,
  type: ValueType<T>,
  fallback: undefined,
  readBy: readonly R[],
  text: string,
  details?: Details,
): Setting<T, undefined, R>;
function setting<T, R extends Reader>(
  toml: string,
  type: ValueType<T>,
  fallback: T | undefined,
  readBy: readonly R[],
  text: string,
  { environment, defaultText, secret = false }: Details = {},
): Setting<T, T | undefined, R> {
  return {
    toml,
    environment: environment ?? `LEVEE_${toml.replaceAll('.', '_').toUpperCase()}`,
    type,
    default: fallback,
    ...(defaultText === undefined ? {} : { defaultText }),
    secret,
    readBy,
    text,
  };
}

export const settings = {
  listen: setting(
    'listen',
    hostAndPort,
    { host: '127.0.0.1', port: 8080 },
    ['serve'],
    'Where the control plane listens for the interface and for routers. Speaks HTTP: put a proxy that ends TLS in front of any address that others reach.',
  ),
  trustedProxies: setting(
    'trusted_proxies',
    listOf(subnet),
    undefined,
    ['serve'],
    "Addresses and subnets of the proxies in front of the control plane. Only from them is X-Forwarded-For believed: the caller's address, which a key's `sources` are held against, is then its rightmost entry that is none of theirs.",
  ),
  rateLimit: setting(
    'rate_limit',
    numberOrOff(1_000_000),
    120_000,
    ['serve'],
    'How many requests a minute each API key may make of one control plane; a whole minute of them may come at once. A key can have a limit of its own. With `off` (or 0) nothing is limited, also not attempts with invalid keys, of which an address (IPv6: a /64) otherwise has 120 a minute.',
  ),
  auditKeepDays: setting(
    'audit_keep_days',
    wholeNumber(1, 36_500),
    365,
    ['serve'],
    'How long the audit log keeps its entries.',
  ),
  attackKeepDays: setting(
    'attack_keep_days',
    wholeNumber(1, 36_500),
    365,
    ['serve'],
    'How long the timeline, the sampled packets and the profile of an attack are kept after its end. The attack itself stays. Of all attacks together at most 5 million rows are kept: the oldest go first.',
  ),
  flowspecBudget: setting(
    'flowspec_budget',
    wholeNumber(0, 1_000_000),
    1000,
    ['serve'],
    'How many FlowSpec routes may be announced at once, of all attacks together: what the routers have room for. Beyond it one route on a subnet stands in for several attacks, or the destination is given up where its policy allows that.',
  ),
  dataDirectory: setting(
    'data_dir',
    path,
    './.levee',
    ['serve', 'edge', 'detect', 'up'],
    'Everything that is kept on this machine: the embedded database, the operator key, the unix socket, the state of the local edge and of the local detector. Made with mode 0700.',
  ),
  databaseUrl: setting(
    'database_url',
    postgresUrl,
    undefined,
    ['serve'],
    'A PostgreSQL (15 or newer) elsewhere, instead of the embedded one.',
    { environment: 'DATABASE_URL', secret: true },
  ),
  operatorKey: setting(
    'operator_key',
    text,
    undefined,
    ['serve'],
    'The operator key of a new installation. Without it one is made, printed once and kept in operator.key in the data directory.',
    { secret: true },
  ),
  webhookAllow: setting(
    'webhook_allow',
    listOf(subnet),
    undefined,
    ['serve'],
    'Addresses and subnets that webhooks may reach although they are not public: all others that are private, loopback, link-local or otherwise special are refused, when a webhook is made and at each delivery.',
  ),
  logLevel: setting(
    'log_level',
    choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'warn',
    ['serve', 'edge', 'detect'],
    'What is logged to standard error, as JSON lines. Requests are logged at debug.',
  ),
  dnsListen: setting(
    'dns.listen',
    orOff(listOf(hostAndPort)),
    [{ host: '127.0.0.1', port: 5300 }],
    ['serve'],
    'Where the embedded DNS server answers for zones of the driver `embedded`, over UDP and TCP alike; `off`: not at all. With several addresses on a machine name each of them: an answer from a wildcard address leaves by the address that the route prefers, and a resolver drops it. Port 53 needs root or CAP_NET_BIND_SERVICE.',
  ),
  dnsAnswersPerSecond: setting(
    'dns.answers_per_second',
    wholeNumber(0, 1_000_000),
    500,
    ['serve'],
    'How many answers a second the embedded DNS server sends over UDP to one network (IPv4 /24, IPv6 /56), whose address may be forged; 0: no limit. Beyond it every other answer asks to come over TCP, the rest are not sent.',
  ),
  dnsResolvers: setting(
    'dns.resolvers',
    listOf(addressAndPort),
    undefined,
    ['serve'],
    "Resolvers that are asked whether the name of a PTR record leads back to its address, as `address:port`; absent: this machine's own.",
  ),
  tunnelInnerIpv4: setting(
    'tunnel.inner_ipv4',
    addressPool(4),
    formatPrefix(usualPools.ipv4),
    ['serve'],
    'Where the IPv4 addresses inside tunnels come from, a /31 for each end. Choose one that neither the routers nor the customers use. Tunnels that are there keep what they have.',
  ),
  tunnelInnerIpv6: setting(
    'tunnel.inner_ipv6',
    addressPool(6),
    formatPrefix(usualPools.ipv6),
    ['serve'],
    'Where the IPv6 addresses inside tunnels come from, a /127 for each end. A customer with tunnels to two installations needs it to differ between them.',
  ),
  gobgp: setting(
    'gobgp',
    gobgpAddress,
    undefined,
    ['serve'],
    'The gobgpd through which flowrules are announced, by its gRPC interface: `unix:/run/gobgp/gobgp.sock` or `host:port`. It speaks without TLS and asks nobody who they are: a unix socket, or an address that others cannot reach; on another host only through a tunnel that encrypts (SSH, WireGuard). Without a BGP speaker flowrules are shown and announced nowhere.',
  ),
  bgpExabgp: setting(
    'bgp.exabgp',
    path,
    undefined,
    ['serve'],
    'Instead of `gobgp`: the unix socket on which the control plane waits for `levee exabgp`, which an ExaBGP (4.2) runs as its process. Made with mode 0660: whoever may open it may take what is announced for themselves.',
  ),
  bgpMark: setting(
    'bgp.mark',
    largeCommunity,
    { administrator: 4_200_000_000, first: 17_749, second: 1 },
    ['serve'],
    'The large community that our routes bear. Routes without it are never changed or withdrawn; those with it that no flowrule has are. Two installations that announce through one speaker need two marks.',
  ),
  bgpBlackholeNextHopIpv4: setting(
    'bgp.blackhole_next_hop_v4',
    addressOf(4),
    '192.0.2.1',
    ['serve'],
    'Next hop of IPv4 blackhole routes, which peers send to nowhere (RFC 7999).',
  ),
  bgpBlackholeNextHopIpv6: setting(
    'bgp.blackhole_next_hop_v6',
    addressOf(6),
    '100::1',
    ['serve'],
    'Next hop of IPv6 blackhole routes; the default lies in the prefix that is for discarding (RFC 6666).',
  ),
  bgpBlackholeExport: setting(
    'bgp.blackhole_export',
    choice('off', 'on'),
    'off',
    ['serve'],
    'Whether blackhole routes may leave the AS of the peers: with `off` they bear NO_EXPORT. Choose `on` where the peers pass them to a transit provider that discards for you.',
  ),
  edgeDriver: setting(
    'edge.driver',
    choice('auto', 'kernel', 'dry', 'off'),
    'auto',
    ['edge', 'up'],
    'How the edge on this machine works: in the kernel (fails when it cannot), dry (notes what it would do, enforces nothing), whichever is possible, or not at all.',
  ),
  edgeNetns: setting(
    'edge.netns',
    namespaceName,
    undefined,
    ['up'],
    "Network namespace in which `levee up` starts the local edge; absent: this process's own.",
  ),
  edgeIngressDevices: setting(
    'edge.ingress_devices',
    listOf(deviceName),
    undefined,
    ['edge'],
    'Devices on which rules about broadcast, multicast and foreign packets are met; absent: such rules fail with that reason. The hook has a price: the kernel then drops later IPv6 fragments whose fragment header names destination options or an authentication header, on these devices, whatever the rules say.',
  ),
  edgeStateDirectory: setting(
    'edge.state_dir',
    path,
    undefined,
    ['edge', 'up'],
    'What an edge keeps: its key, its cursor, the rules it last knew.',
    { defaultText: '`edge` in the data directory' },
  ),
  edgeControl: setting(
    'edge.control',
    listOf(controlAddress),
    undefined,
    ['edge'],
    'Control planes that `levee edge` follows, tried in turn. `levee up` follows its own.',
  ),
  edgeRouterKey: setting(
    'edge.router_key',
    text,
    undefined,
    ['edge', 'up'],
    'Key of this router; absent: the one that `levee router enroll` left in the state directory.',
    { secret: true },
  ),
  flowListen: setting(
    'flow.listen',
    orOff(listOf(hostAndPort)),
    [
      { host: '127.0.0.1', port: 6343 },
      { host: '127.0.0.1', port: 2055 },
    ],
    ['detect', 'up'],
    'Where flow telemetry is taken, over UDP: sFlow, NetFlow and IPFIX alike on each of them; `off`: nowhere, and `levee up` starts no detector, but for one of the role `detect`. One that is in use is left out, and said. Name an address that exporters reach, not the whole network: who may send is judged by the source address, which can be forged.',
  ),
  detectControl: setting(
    'detect.control',
    listOf(controlAddress),
    undefined,
    ['detect'],
    'Control planes that `levee detect` follows, tried in turn. `levee up` follows its own.',
  ),
  detectKey: setting(
    'detect.key',
    text,
    undefined,
    ['detect', 'up'],
    'Key of this detector, as `POST /v1/operator/detector` answered it; absent: the one in its state directory (`detector.key`).',
    { secret: true },
  ),
  detectWorkers: setting(
    'detect.workers',
    wholeNumber(1, 64),
    undefined,
    ['detect'],
    'Threads that receive and decode flow telemetry. An exporter stays with one of them.',
    { defaultText: 'one less than there are processors, from 1 to 4' },
  ),
  detectRole: setting(
    'detect.role',
    choice('all', 'collect', 'detect'),
    'all',
    ['detect', 'up'],
    '`all` receives and detects in one process. `collect` receives and counts alone, near the exporters; `detect` detects its share of what all collectors of one NATS tell. Those two need `detect.nats`, which `all` refuses; a collector needs neither key nor control plane. Each exporter sends to one collector: what it sends to two is counted twice.',
  ),
  detectNats: setting(
    'detect.nats',
    listOf(natsAddress),
    undefined,
    ['detect', 'up'],
    'The NATS servers, of one cluster, over which collectors and detectors speak.',
  ),
  detectNatsName: setting(
    'detect.nats_name',
    subjectName,
    'levee',
    ['detect'],
    'What subjects begin with: another one for each installation on the same NATS.',
  ),
  detectNatsUser: setting('detect.nats_user', text, undefined, ['detect'], 'The name at NATS, where it asks for one.'),
  detectNatsPassword: setting('detect.nats_password', text, undefined, ['detect'], 'The password to that name.', {
    secret: true,
  }),
  detectNatsToken: setting(
    'detect.nats_token',
    text,
    undefined,
    ['detect'],
    'The token, where NATS asks for one in place of name and password.',
    { secret: true },
  ),
  detectNatsCredentials: setting(
    'detect.nats_credentials',
    path,
    undefined,
    ['detect'],
    "A file with NATS' credentials (`.creds`), or with an nkey's seed.",
  ),
  detectNatsCa: setting(
    'detect.nats_ca',
    path,
    undefined,
    ['detect'],
    "Certificates (PEM) of those who may have signed NATS' own; without it those that Node knows. The connection is encrypted then.",
  ),
  detectNatsCertificate: setting(
    'detect.nats_certificate',
    path,
    undefined,
    ['detect'],
    'Our own certificate (PEM), where NATS asks for one.',
  ),
  detectNatsKey: setting('detect.nats_key', path, undefined, ['detect'], 'The file with the key to it (PEM).'),
  detectStateDirectory: setting(
    'detect.state_dir',
    path,
    undefined,
    ['detect', 'up'],
    'What a detector keeps: its key, and what it last knew, by which it detects while the control plane is away.',
    { defaultText: '`detector` in the data directory' },
  ),
} as const;

export type SettingName = keyof typeof settings;

type ValueOf<S> = S extends Setting<infer T, infer D, Reader> ? (D extends undefined ? T | undefined : T) : never;

/** The effective configuration: every setting with its parsed value, or its default. */
export type Config = { readonly [Name in SettingName]: ValueOf<(typeof settings)[Name]> };

/** What one program sees of it: no more than the table says that it reads. */
export type ConfigOf<R extends Reader> = {
  readonly [Name in SettingName as R extends (typeof settings)[Name]['readBy'][number] ? Name : never]: Config[Name];
};

/** In the order of the table, untyped: for loops over all of them. */
export const settingEntries = Object.entries(settings) as readonly [SettingName, Setting<unknown>][];
