// One table, a row an operation: it is long because there are many, and is read by its rows.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ApiFixture, type Ask, type Holder, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;
let rule: string;
let zone: string;

before(async () => {
  api = await startApi();
  await api.call('createLocation', {}, { key: api.operatorKey, body: { name: 'fra1' } });
  provider = await api.provider(['203.0.113.0/24']);
  user = await api.user(provider, ['203.0.113.0/28']);
  const body = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
  const reverse = { zone: '113.0.203.in-addr.arpa', driver: 'embedded' };
  zone = (await api.call('createRdnsZone', {}, { key: api.operatorKey, body: reverse })).body.uuid;
  rule = (await api.call('createFirewallRule', {}, { key: user.key, body })).body.uuid;
});
after(() => api.stop());

interface Case {
  readonly id: string;
  readonly params?: () => Record<string, string>;
  readonly key: () => string;
  readonly ask: Ask;
  /** Every field that is wrong. */
  readonly wrong: readonly string[];
}

const past = '2001-01-01T00:00:00Z';
const byUser = () => user.key;
const byProvider = () => provider.key;
const byOperator = () => api.operatorKey;
const cases: readonly Case[] = [
  {
    id: 'createFirewallRule',
    key: byUser,
    ask: {
      body: { dst: '203.0.113.7/24', protocol: 'udpx', expires_at: null, confirm_within: 1, colour: 1 },
      headers: { 'idempotency-key': 'a b' },
    },
    wrong: ['/dst', '/protocol', '/action', '/expires_at', '/confirm_within', '/colour', 'Idempotency-Key'],
  },
  {
    id: 'changeFirewallRule',
    params: () => ({ uuid: rule }),
    key: byUser,
    ask: { body: { priority: 0, action: 'allow', expires_at: past, confirm_within: 'x', colour: 1 } },
    wrong: ['/priority', '/action', '/expires_at', '/confirm_within', '/colour'],
  },
  {
    id: 'replaceFirewallRules',
    key: byUser,
    ask: {
      query: '?dst=203.0.113.7&page=1',
      body: {
        rules: [
          { protocol: 'udp', action: 'x', dst: '203.0.113.8', confirm_within: 60, expires_at: past },
          { protocol: 'tcp', action: 'drop', expires_at: null },
        ],
        confirm_within: 2,
      },
    },
    wrong: [
      '?page',
      '/confirm_within',
      '/rules/0/action',
      '/rules/0/dst',
      '/rules/0/confirm_within',
      '/rules/0/expires_at',
      '/rules/1/expires_at',
    ],
  },
  {
    id: 'replaceFirewallRules',
    key: byUser,
    ask: { query: '?dst=203.0.113.7/24', body: { rules: [{ protocol: 'udp', action: 'x' }, 7], surplus: 1 } },
    wrong: ['?dst', '/surplus', '/rules/0/action', '/rules/1'],
  },
  {
    id: 'listFirewallRules',
    key: byUser,
    ask: { query: '?limit=0&state=on&dst=203.0.113.7/24&cursor=-&page=2' },
    wrong: ['?limit', '?state', '?dst', '?cursor', '?page'],
  },
  {
    id: 'listProviderFirewallRules',
    key: byProvider,
    ask: { query: '?limit=x&user_uuid=me&dst=nowhere&cursor=-' },
    wrong: ['?limit', '?user_uuid', '?dst', '?cursor'],
  },
  {
    id: 'createFilter',
    key: byUser,
    ask: {
      body: { dst: '2001:db8::/129', filter: 5, port: {}, ratelimit: 0, expires_at: past, action: 'drop' },
      headers: { 'idempotency-key': 'a b' },
    },
    wrong: ['/dst', '/filter', '/port', '/ratelimit', '/expires_at', '/action', 'Idempotency-Key'],
  },
  {
    id: 'createFilter',
    key: byUser,
    ask: { body: { dst: '2001:db8::7', filter: 16, src: { start: '192.0.2.1' }, port: { dst: { start: 9, end: 3 } } } },
    wrong: ['/dst', '/src', '/port/dst'],
  },
  {
    id: 'listFilters',
    key: byUser,
    ask: { query: '?limit=0&state=disabled&dst=203.0.113.7/24&cursor=-&page=2' },
    wrong: ['?limit', '?state', '?dst', '?cursor', '?page'],
  },
  {
    id: 'listProviderFilters',
    key: byProvider,
    ask: { query: '?limit=x&user_uuid=me&dst=nowhere&cursor=-' },
    wrong: ['?limit', '?user_uuid', '?dst', '?cursor'],
  },
  {
    id: 'explainPacket',
    key: byUser,
    ask: { body: { dst: 'x', protocol: 'x', port: { src: -1 }, tcpflags: ['x'], payload: '?', colour: 1 } },
    wrong: ['/dst', '/src', '/protocol', '/port/src', '/tcpflags/0', '/payload', '/colour'],
  },
  {
    id: 'previewFirewallRule',
    key: byUser,
    ask: {
      body: { dst: '203.0.113.7/24', protocol: 'udpx', expires_at: null, confirm_within: 1, colour: 1 },
      headers: { 'idempotency-key': 'a b' },
    },
    wrong: ['/dst', '/protocol', '/action', '/expires_at', '/confirm_within', '/colour', 'Idempotency-Key'],
  },
  {
    id: 'createTunnel',
    key: byUser,
    ask: {
      body: {
        ips: ['203.0.113.1/28', '203.0.113.3', '203.0.113.3'],
        endpoint: '192.168.0.1',
        type: 'ipip',
        keyed: 'no',
        locations: ['fra1', 'fra1'],
        expires_at: past,
        colour: 1,
      },
      headers: { 'idempotency-key': 'a b' },
    },
    wrong: [
      '/ips/0',
      '/ips/2',
      '/endpoint',
      '/type',
      '/keyed',
      '/locations/1',
      '/expires_at',
      '/colour',
      'Idempotency-Key',
    ],
  },
  {
    id: 'createTunnel',
    key: byUser,
    ask: { body: { ips: ['203.0.113.0/28'], endpoint: '203.0.113.3', type: 'GENEVE', keyed: false } },
    wrong: ['/endpoint', '/keyed'],
  },
  {
    id: 'changeTunnel',
    params: () => ({ uuid: rule }),
    key: byUser,
    ask: { body: { ips: ['x'], endpoint: '::1', locations: [7, ''], type: 'GRE', expires_at: past } },
    wrong: ['/ips/0', '/endpoint', '/locations/0', '/locations/1', '/type', '/expires_at'],
  },
  {
    id: 'listTunnels',
    key: byUser,
    ask: { query: '?limit=0&state=disabled&dst=203.0.113.7/24&cursor=-&page=2' },
    wrong: ['?limit', '?state', '?dst', '?cursor', '?page'],
  },
  {
    id: 'listProviderTunnels',
    key: byProvider,
    ask: { query: '?limit=0&state=disabled&dst=203.0.113.7/24&cursor=-&user_uuid=x&page=2' },
    wrong: ['?limit', '?state', '?dst', '?cursor', '?user_uuid', '?page'],
  },
  {
    id: 'readTunnelConfig',
    params: () => ({ uuid: rule }),
    key: byUser,
    ask: { query: `?format=bash&location=${'x'.repeat(65)}&router=1` },
    wrong: ['?format', '?location', '?router'],
  },
  {
    id: 'listUsers',
    key: byProvider,
    ask: { query: `?limit=0&dst=203.0.113.7/24&cursor=-&username=${'x'.repeat(65)}&page=2` },
    wrong: ['?limit', '?dst', '?cursor', '?username', '?page'],
  },
  ...['listAttacks', 'listFlowrules'].map((id) => ({
    id,
    key: byUser,
    ask: { query: '?limit=0&state=on&dst=203.0.113.7/24&cursor=-&page=2' },
    wrong: ['?limit', '?state', '?dst', '?cursor', '?page'],
  })),
  ...['listProviderAttacks', 'listProviderFlowrules'].map((id) => ({
    id,
    key: byProvider,
    ask: { query: '?limit=x&user_uuid=me&dst=nowhere&cursor=-&state=disabled' },
    wrong: ['?limit', '?user_uuid', '?dst', '?cursor', '?state'],
  })),
  ...['listAllAttacks', 'listAllFlowrules'].map((id) => ({
    id,
    key: byOperator,
    ask: { query: '?limit=x&user_uuid=me&dst=nowhere&cursor=-&state=disabled' },
    wrong: ['?limit', '?user_uuid', '?dst', '?cursor', '?state'],
  })),
  {
    id: 'announceFlowrule',
    params: () => ({ uuid: rule }),
    key: byOperator,
    ask: { body: { override_accept: 'yes', force: true } },
    wrong: ['/override_accept', '/force'],
  },
  {
    id: 'recordAttack',
    key: byOperator,
    ask: {
      body: {
        source: 'Ärger',
        external_id: 'a b',
        dst: '203.0.113.7/24',
        state: 'begun',
        started_at: '2999-01-01T00:00:00Z',
        at: 'now',
        vectors: ['UDP'],
        pps: -1,
        mitigation: 'hope',
        top_sources: [{ source: 'x' }, { port: 1 }],
        top_ports: { src: [{ port: 65536 }] },
        actions: [{ action: 'a\nb', at: '2999-01-01T00:00:00Z' }],
        colour: 1,
      },
    },
    wrong: [
      '/source',
      '/external_id',
      '/dst',
      '/state',
      '/started_at',
      '/at',
      '/vectors/0',
      '/pps',
      '/mitigation',
      '/top_sources/0/source',
      '/top_sources/1/source',
      '/top_sources/1/port',
      '/top_ports/src/0/port',
      '/actions/0/action',
      '/actions/0/at',
      '/colour',
    ],
  },
  {
    id: 'recordAttack',
    key: byOperator,
    ask: {
      body: {
        source: 'levee',
        dst: '203.0.113.7',
        started_at: '2026-01-02T00:00:00Z',
        ended_at: '2026-01-01T00:00:00Z',
      },
    },
    wrong: ['/source', '/ended_at'],
  },
  {
    id: 'recordFastnetmonAttack',
    key: byOperator,
    ask: { body: { ip: '203.0.113.0/24', action: '', attack_details: { peak_attack_power: -1 }, pps: 'x' } },
    wrong: ['/ip', '/action', '/attack_details/peak_attack_power', '/pps'],
  },
  {
    id: 'recordFastnetmonAttack',
    key: byOperator,
    ask: {
      body: { ip: 'x', action: 'ban', alert_scope: 'hostgroup', attack_details: { attack_direction: 'outgoing' } },
    },
    wrong: ['/ip', '/alert_scope', '/attack_details/attack_direction'],
  },
  {
    id: 'changeProvider',
    params: () => ({ uuid: provider.uuid }),
    key: byOperator,
    ask: {
      body: {
        name: '\n',
        add_prefixes: ['x', '203.0.113.1/24', '10.0.0.0/8'],
        remove_prefixes: ['10.1.0.0/16', ''],
        colour: 1,
      },
    },
    wrong: ['/name', '/add_prefixes/0', '/add_prefixes/1', '/remove_prefixes/1', '/colour'],
  },
  {
    id: 'changeProvider',
    params: () => ({ uuid: provider.uuid }),
    key: byOperator,
    ask: { body: { add_prefixes: ['10.0.0.0/8'], remove_prefixes: ['10.1.0.0/16'] } },
    wrong: ['/add_prefixes/0'],
  },
  {
    id: 'createUser',
    key: byProvider,
    ask: {
      body: { username: 'A', email: 'nobody', password: 'passwordpassword', ips: ['x', '203.0.113.1/24'], colour: 1 },
    },
    wrong: ['/username', '/email', '/password', '/ips/0', '/ips/1', '/colour'],
  },
  {
    id: 'createUser',
    key: byProvider,
    ask: { body: { username: 7, ips: [7, '203.0.113.64', '203.0.113.64'], password: 'short' } },
    wrong: ['/username', '/email', '/password', '/ips/0', '/ips/2'],
  },
  {
    id: 'addUserIps',
    key: byProvider,
    ask: { body: { user_uuid: 'me', ips: ['x', '203.0.113.1/24'] } },
    wrong: ['/user_uuid', '/ips/0', '/ips/1'],
  },
  {
    id: 'deleteUserIps',
    key: byProvider,
    ask: { body: { user_uuid: 'me', ips: ['x'], all: true } },
    wrong: ['/user_uuid', '/ips/0', '/all'],
  },
  {
    id: 'resetUserPassword',
    key: byProvider,
    ask: { body: { email: 'nobody', password: '123456789012' } },
    wrong: ['/email', '/password'],
  },
  {
    id: 'createApiKey',
    key: byUser,
    ask: { body: { name: '', expires_at: past, sources: ['x', '192.0.2.1/24'], account_uuid: 'me', rate_limit: 0 } },
    wrong: ['/name', '/expires_at', '/sources/0', '/sources/1', '/account_uuid', '/rate_limit'],
  },
  {
    id: 'listAudit',
    key: byUser,
    ask: { query: '?kind=cat&order=up&since=yesterday&until=2&object_uuid=x&actor_uuid=me&cursor=%21&limit=0&page=1' },
    wrong: ['?kind', '?order', '?since', '?until', '?object_uuid', '?actor_uuid', '?cursor', '?limit', '?page'],
  },
  {
    id: 'setQuota',
    params: () => ({ account_uuid: provider.uuid }),
    key: byOperator,
    ask: { body: { filters: -1, tunnels: '7', rdns: 1.5, users: 2147483648, cats: 1 } },
    wrong: ['/filters', '/tunnels', '/rdns', '/users', '/cats'],
  },
  {
    id: 'createRdns',
    key: byUser,
    ask: { body: { ips: '203.0.113.0/28', record: 'mail_1.example.net', ttl: 60 } },
    wrong: ['/ips', '/record', '/ttl'],
  },
  {
    id: 'updateRdns',
    key: byUser,
    ask: { body: { ips: ['203.0.113.7'], record: '203.0.113.7' } },
    wrong: ['/ips', '/record'],
  },
  { id: 'deleteRdns', key: byUser, ask: { body: { ips: 'x', record: 'a.b' } }, wrong: ['/ips', '/record'] },
  {
    id: 'listRdns',
    key: byUser,
    ask: { query: '?ip=x&state=disabled&limit=0&cursor=%21&user_uuid=me' },
    wrong: ['?ip', '?state', '?limit', '?cursor', '?user_uuid'],
  },
  {
    id: 'createRdnsZone',
    key: byOperator,
    ask: {
      body: {
        zone: 'example.net',
        driver: 'rfc2136',
        tsig: { name: 'a b', algorithm: 'hmac-sha256', secret: '?????' },
        api_key: 'k',
        nameservers: [],
        ttl: 0,
      },
    },
    wrong: ['/zone', '/server', '/tsig/name', '/tsig/secret', '/api_key', '/nameservers', '/ttl'],
  },
  {
    id: 'changeRdnsZone',
    params: () => ({ uuid: zone }),
    key: byOperator,
    ask: {
      body: { zone: 'x', driver: 'embedded', server: '192.0.2.1', secondaries: ['x'], admin: 'nobody', ttl: 'long' },
    },
    wrong: ['/zone', '/server', '/secondaries/0', '/admin', '/ttl'],
  },
  {
    id: 'createProvider',
    key: byOperator,
    ask: { body: { name: '\n', prefixes: ['x', '203.0.113.1/24'] } },
    wrong: ['/name', '/prefixes/0', '/prefixes/1'],
  },
  {
    id: 'createLocation',
    key: byOperator,
    ask: { body: { name: '-', colour: 1 } },
    wrong: ['/name', '/colour'],
  },
  {
    id: 'createRouter',
    key: byOperator,
    ask: { body: { name: '-', tunnel_addresses: ['x', '192.0.2.1/24'] } },
    wrong: ['/name', '/location', '/tunnel_addresses/0', '/tunnel_addresses/1'],
  },
  {
    id: 'changeRouter',
    params: () => ({ uuid: rule }),
    key: byOperator,
    ask: { body: { name: '-', location: 5, tunnel_addresses: ['10.0.0.1', '192.0.2.1', '192.0.2.2'] } },
    wrong: ['/name', '/location', '/tunnel_addresses', '/tunnel_addresses/0', '/tunnel_addresses/2'],
  },
  {
    id: 'readEvents',
    key: byUser,
    ask: { query: '?after=yesterday&events=attack.*,attack.begun&limit=1' },
    wrong: ['?after', '?events', '?limit'],
  },
  {
    id: 'createWebhook',
    key: byUser,
    ask: {
      body: {
        url: 'ftp://hooks.example.net/',
        events: ['attack.begun'],
        description: 'a\tb',
        disabled: 'no',
        name: 'x',
      },
      headers: { 'idempotency-key': 'a b' },
    },
    wrong: ['/url', '/events/0', '/description', '/disabled', '/name', 'Idempotency-Key'],
  },
  {
    id: 'changeWebhook',
    params: () => ({ uuid: rule }),
    key: byUser,
    ask: { body: { url: 'https://me:secret@hooks.example.net/', events: [], secret: 'whsec_x' } },
    wrong: ['/url', '/events', '/secret'],
  },
  {
    id: 'listWebhookDeliveries',
    params: () => ({ uuid: rule }),
    key: byUser,
    ask: { query: '?state=lost&limit=0&cursor=-&page=1' },
    wrong: ['?state', '?limit', '?cursor', '?page'],
  },
  {
    id: 'createDetectionPolicy',
    key: byOperator,
    ask: {
      body: {
        scope: '203.0.113.7/24',
        thresholds: { 'tcp-syn': { pps: 1 }, total: { bps: '1' }, everything: {} },
        mitigation: 'drop',
        hold_s: 1,
        allow_rtbh: 'yes',
        colour: 1,
      },
      headers: { 'idempotency-key': 'a b' },
    },
    wrong: [
      '/scope',
      '/thresholds/tcp-syn/pps',
      '/thresholds/total/bps',
      '/thresholds/everything',
      '/mitigation',
      '/hold_s',
      '/allow_rtbh',
      '/colour',
      'Idempotency-Key',
    ],
  },
  {
    id: 'changeDetectionPolicy',
    params: () => ({ uuid: zone }),
    key: byOperator,
    ask: { body: { scope: 'installation', baseline_factor: 0, mitigation_hold_s: -1, aggregate_thresholds: 1 } },
    wrong: ['/scope', '/baseline_factor', '/mitigation_hold_s', '/aggregate_thresholds'],
  },
  { id: 'readEffectiveDetectionPolicy', key: byUser, ask: { query: '?dst=x&page=1' }, wrong: ['?dst', '?page'] },
  {
    id: 'createExporter',
    key: byOperator,
    ask: { body: { name: 'a b', source: '192.0.2.0/24', interfaces: [-1], colour: 1 } },
    wrong: ['/name', '/source', '/interfaces/0', '/colour'],
  },
  {
    id: 'changeExporter',
    params: () => ({ uuid: zone }),
    key: byOperator,
    ask: { body: { name: '', source: 'edge1', interfaces: [], colour: 1 } },
    wrong: ['/name', '/source', '/interfaces', '/colour'],
  },
  { id: 'createDetector', key: byOperator, ask: { body: { name: '-', colour: 1 } }, wrong: ['/name', '/colour'] },
];

/** Every row of every table that an operation writes. */
async function stored(): Promise<string> {
  const tables = [
    'account',
    'subnet',
    'firewall_rule',
    'tunnel',
    'tunnel_subnet',
    'tunnel_end',
    'filter',
    'attack',
    'attack_sample',
    'flowrule',
    'rdns_record',
    'rdns_zone',
    'change',
    'location',
    'router',
    'confirmation',
    'idempotency',
    'quota',
    'audit',
    'webhook',
    'webhook_delivery',
    'detector',
    'detection_policy',
    'exporter',
  ];
  const counts = tables.map(
    (table) => `(select md5(coalesce(string_agg(t::text, '|' order by t::text), '')) from ${table} t)`,
  );
  const { rows } = await api.database.pool.query(
    `select array[${counts.join(',')}, (select count(*)::text from api_key)] as all`,
  );
  return JSON.stringify(rows);
}

for (const { id, params, key, ask, wrong } of cases) {
  test(`${id} tells at once that ${wrong.join(', ')} are wrong, and stores nothing`, async () => {
    const before = await stored();
    const reply = await api.call(id, params?.(), { key: key(), ...ask });
    assert.deepEqual([reply.status, reply.body.error], [400, 'validation_failed'], reply.text);
    const fields = reply.body.details.map((problem: { field: string }) => problem.field);
    assert.deepEqual([...new Set(fields)].sort(), wrong.toSorted(), reply.text);
    assert.equal(await stored(), before);
  });
}

test('every served operation that takes a body or a query is among the cases', () => {
  const judged = api.api.operations.filter(({ body, query }) => body !== undefined || query !== undefined);
  const covered = new Set([...cases.map(({ id }) => id), 'listApiKeys']);
  assert.deepEqual(
    judged.map(({ id }) => id).filter((id) => !covered.has(id)),
    [],
  );
});
