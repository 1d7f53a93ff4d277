import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ApiFixture, type Ask, type Holder, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;
let rule: string;

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24']);
  user = await api.user(provider, ['203.0.113.0/28']);
  const body = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
  rule = (await api.call('createFirewallRule', {}, { key: user.key, body })).body.uuid;
});
after(() => api.stop());

const ruleFields =
  'dst, protocol, action, priority, descr, src, port, disabled, tcpflags, ratelimit, packetlength, packettype, statetype';
const good = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
const tooLong = 'n'.repeat(70);

const cases: readonly [id: string, by: 'user' | 'provider' | 'operator', ask: Ask, messages: readonly string[]][] = [
  [
    'createFirewallRule',
    'user',
    { body: { ...good, colour: 1 } },
    [`colour: is not a known field; allowed are ${ruleFields}, expires_at, confirm_within`],
  ],
  [
    'changeFirewallRule',
    'user',
    { body: { 'a b': 1 } },
    [`"a b": is not a known field; allowed are ${ruleFields}, expires_at, confirm_within`],
  ],
  [
    'replaceFirewallRules',
    'user',
    { query: '?dst=203.0.113.7', body: { rules: [{ ...good, colour: 1, port: { x: 1 } }, 7] } },
    [
      `rules.0.colour: is not a known field; allowed are ${ruleFields}, expires_at`,
      'rules.0.port.x: is not a known field; allowed are src, dst',
      'rules.1: must be a JSON object, received 7',
    ],
  ],
  ['createFirewallRule', 'user', { body: null }, ['The body must be a JSON object, received null']],
  ['createUser', 'provider', { body: null }, ['The body must be an object, received null.']],
  [
    'replaceFirewallRules',
    'user',
    { query: '?dst=203.0.113.7', body: null },
    ['The body must be an object, received null.'],
  ],
  [
    'createFirewallRule',
    'user',
    {
      body: {
        ...good,
        protocol: 'tcp',
        dst: null,
        tcpflags: null,
        src: { start: '192.0.2.1', end: null },
        port: { src: null },
        expires_at: null,
      },
    },
    [
      'dst: must be an IPv4 or IPv6 address or a subnet, such as 203.0.113.7 or 2001:db8::/48, received null',
      'src.end: must be one IPv4 or IPv6 address, such as 203.0.113.7 or 2001:db8::7, received null; leave the field out instead',
      'port.src: must be a JSON object, received null; leave the field out instead',
      'tcpflags: must be an array of up to 8 of fin, syn, rst, psh, ack, urg, ece, cwr, received null; leave the field out instead',
      'expires_at: must be a string, received null; leave the field out instead',
    ],
  ],
  [
    'createUser',
    'provider',
    { body: { username: 'alice', email: null, password: 'ochre-meadow-tin-81', ips: [], name: null } },
    ['email: must be a string, received null', 'name: must be a string, received null; leave the field out instead'],
  ],
  ['createFirewallRule', 'user', { body: [] }, ['The body must be a JSON object, received an empty array']],
  [
    'createFirewallRule',
    'user',
    { body: { ...good, [tooLong]: 1 } },
    [
      `The body has no field with a name of 70 characters, "${'n'.repeat(64)}…"; allowed are ${ruleFields}, expires_at, confirm_within`,
    ],
  ],
  [
    'createUser',
    'provider',
    { body: { username: 'Älice', email: 'nobody', password: 'ochre-meadow-tin-81', ips: [], name: 'a\tb' } },
    [
      `username: must be 3 to 64 of a–z, 0–9, '.', '_' and '-', received the string "Älice"`,
      'email: must be an email address such as alice@example.net, without spaces, quotes and brackets, received the string "nobody"',
      'name: must be 1 to 128 characters without control characters, received the string "a\\tb"',
    ],
  ],
  [
    'createFilter',
    'user',
    { body: { dst: '203.0.113.7', filter: 28, action: 'drop' } },
    [
      'action: is not a known field; allowed are dst, filter, priority, src, port, ratelimit, expires_at',
      "port.dst: is required by rtp (28), which has no port of its own: the destination's ports to look at",
    ],
  ],
  [
    'createTunnel',
    'user',
    { body: { ips: ['203.0.113.0/28'], endpoint: '100.64.1.1', type: 'ipip' } },
    [
      'type: must be GRE or Geneve, received the string "ipip"',
      'endpoint: 100.64.1.1 is an address behind carrier-grade NAT (100.64.0.0/10); it must be a public unicast address that the routers reach',
    ],
  ],
  [
    'createLocation',
    'operator',
    { body: { name: '-fra' } },
    [
      `name: must be 1 to 64 of a–z, A–Z, 0–9, '.', '_' and '-', with a letter or a digit first and last, received the string "-fra"`,
    ],
  ],
];

for (const [id, by, ask, messages] of cases) {
  test(`${id} says in words: ${messages[0]?.slice(0, 90)}`, async () => {
    const key = { user: user.key, provider: provider.key, operator: api.operatorKey }[by];
    const reply = await api.call(id, { uuid: rule }, { key, ...ask });
    assert.equal(reply.status, 400, reply.text);
    assert.deepEqual(
      reply.body.details.map((problem: { message: string }) => problem.message),
      messages,
    );
  });
}

test('what is said of a packet reads as a sentence', async () => {
  const body = { dst: '203.0.113.7', src: '192.0.2.1', protocol: 'udp' };
  const reply = await api.call('explainPacket', {}, { key: user.key, body });
  assert.deepEqual(
    reply.body.trail.map((entry: { message: string }) => entry.message),
    ['the packet matches and is dropped'],
  );
});
