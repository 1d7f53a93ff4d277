/**
 * Guarantees to a client that was written against the given interface's page alone: each of its 23 operations works as
 * that page says, with its fields, types and bodies. What the page leaves open is not looked at here.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertError, type GivenClient, givenClient } from './given/client.ts';
import { type Installation, startInstallation } from './given/installation.ts';
import { until } from './running-levee.ts';

const dst = '203.0.113.7';
const uuidForm = /^[0-9a-f-]{36}$/;

/** The page's table. */
const protocols = `
  any ip hopopt icmp igmp ggp ipencap st tcp egp igp pup udp hmp xns-idp rdp iso-tp4 dccp xtp ddp idpr-cmtp ipv6
  ipv6-route ipv6-frag idrp rsvp gre esp ah skip ipv6-icmp ipv6-nonxt ipv6-opts rspf vmtp eigrp ospf ax.25 ipip etherip
  encap pim ipcomp vrrp l2tp isis sctp fc mobility-header udplite mpls-in-ip manet hip shim6 wesp rohc ethernet mptcp`
  .trim()
  .split(/\s+/);
const ipv6Only = new Set(['hopopt', 'ipv6-route', 'ipv6-frag', 'ipv6-opts', 'ipv6-icmp', 'mobility-header']);

let installation: Installation;
let provider: GivenClient;
let user: GivenClient;
let userUuid: string;

const alice = {
  username: 'alice',
  email: 'alice@example.net',
  password: 'correct horse 7 battery',
  ips: ['203.0.113.0/28', '2001:db8:7::/48'],
};

before(async () => {
  installation = await startInstallation();
  provider = givenClient(installation.baseUrl, installation.providerKey);
  const created = await provider.good('POST', '/user', alice);
  userUuid = created.uuid;
  user = givenClient(installation.baseUrl, await installation.keyOf(userUuid));
});
after(async () => {
  user?.close();
  provider?.close();
  await installation?.stop();
});

function assertArrayWith(list: unknown, uuid: string): void {
  assert.ok(Array.isArray(list));
  assert.ok(
    list.every((each) => typeof each === 'object' && each !== null),
    'objects',
  );
  assert.ok(
    list.some((each) => each.uuid === uuid),
    `${uuid} is listed`,
  );
}

/** Operations 2, 10 and 19: an array of objects. */
function assertReadOf(answer: unknown, uuid: string): void {
  assert.ok(Array.isArray(answer));
  assert.equal(answer.length, 1);
  assert.equal(answer[0].uuid, uuid);
}

function assertMarked(answer: unknown): void {
  assert.match(JSON.stringify(answer), /marked.for.deletion/i);
}

/** Wherever it stands, the object tells where: in force, or why not yet. */
function assertHonest(stored: { state?: unknown; state_reason?: unknown }): void {
  assert.equal(typeof stored.state, 'string');
  if (stored.state !== 'active' && stored.state !== 'disabled' && stored.state !== 'proposed') {
    assert.ok(String(stored.state_reason ?? '').length > 10, JSON.stringify(stored));
  }
}

describe('firewall rules', () => {
  const everyField = {
    dst: '203.0.113.0/29',
    protocol: 'tcp',
    action: 'drop',
    priority: 1,
    descr: 'no odd handshakes',
    src: { start: '198.51.100.0', end: '198.51.100.255' },
    port: { src: { start: 1024, end: 65535 }, dst: { start: 80, end: 443 } },
    disabled: false,
    tcpflags: ['fin', 'syn', 'rst', 'psh', 'ack', 'urg', 'ece', 'cwr'],
    ratelimit: 4294967295,
    packetlength: 65535,
    packettype: 'host',
    statetype: 'new',
  };
  let uuid: string;

  test('1 POST /firewall/rule takes every field and gives the uuid', async () => {
    const created = await user.good('POST', '/firewall/rule', everyField);
    uuid = created.uuid;
    assert.match(uuid, uuidForm);
    assert.deepEqual({ ...created, ...everyField }, created, 'what was sent is what is stored');
    assertHonest(created);
  });

  test('1 every value that the page allows is taken', async () => {
    assert.equal(protocols.length, 58);
    const rules: object[] = [
      ...protocols.map((protocol) => ({
        protocol,
        action: 'drop',
        ...(ipv6Only.has(protocol) && { dst: '2001:db8:7::7' }),
      })),
      ...['accept', 'continue', 'drop', 'reject'].map((action) => ({ action })),
      ...['broadcast', 'host', 'multicast', 'other'].map((packettype) => ({ packettype })),
      ...['established', 'invalid', 'new', 'related'].map((statetype) => ({ statetype })),
      ...['fin', 'syn', 'rst', 'psh', 'ack', 'urg', 'ece', 'cwr'].map((flag) => ({
        protocol: 'tcp',
        tcpflags: [flag],
      })),
      ...[0, 1, 4294967295].map((ratelimit) => ({ ratelimit })),
      ...[1, 65535].map((packetlength) => ({ packetlength })),
      { disabled: true },
      { priority: 1 },
      { dst: '2001:db8:7::/64' },
    ];
    for (const rule of rules) {
      const { uuid } = await user.good('POST', '/firewall/rule', { dst, protocol: 'udp', action: 'drop', ...rule });
      assert.match(uuid, uuidForm);
    }
  });

  test('2 GET /firewall/rule/{uuid} gives an array with the rule', async () => {
    const answer = await user.good('GET', `/firewall/rule/${uuid}`);
    assertReadOf(answer, uuid);
    assert.deepEqual({ ...answer[0], ...everyField }, answer[0]);
  });

  test("4 GET /provider/firewall/rule gives an array with the users' rules", async () => {
    assertArrayWith(await provider.good('GET', '/provider/firewall/rule'), uuid);
  });

  test('3 DELETE /firewall/rule/{uuid} says that it is marked for deletion', async () => {
    assertMarked(await user.good('DELETE', `/firewall/rule/${uuid}`));
  });
});

describe('filters', () => {
  let uuid: string;

  test('5 POST /filter takes the fields of the page and gives the uuid', async () => {
    const { filterKind: filter } = installation;
    const created = await user.good('POST', '/filter', { dst, filter });
    assert.match(created.uuid, uuidForm);
    for (const ratelimit of [1, 25000]) {
      await user.good('POST', '/filter', { dst: '203.0.113.0/29', filter, ratelimit, priority: 1 });
    }
    const narrowed = { dst, filter, src: { start: '198.51.100.0', end: '198.51.100.9' } };
    uuid = (await user.good('POST', '/filter', narrowed)).uuid;
    assertHonest(created);
  });

  test('6 GET /filter gives an array with the filters', async () => {
    assertArrayWith(await user.good('GET', '/filter'), uuid);
  });

  test("8 GET /provider/filter gives an array with the users' filters", async () => {
    assertArrayWith(await provider.good('GET', '/provider/filter'), uuid);
  });

  test('7 DELETE /filter/{uuid} says that it is marked for deletion', async () => {
    assertMarked(await user.good('DELETE', `/filter/${uuid}`));
  });
});

describe('attacks and flowrules', () => {
  let flowrule: string;

  test('12 GET /attacks gives an array with the attacks', async () => {
    assert.deepEqual(await user.good('GET', '/attacks'), []);
    flowrule = (await installation.attacked(dst)).flowruleUuid;
    const attacks = await user.good('GET', '/attacks');
    assert.equal(attacks.length, 1);
    assert.equal(typeof attacks[0], 'object');
  });

  test('9 GET /flowrule gives an array with the flowrules', async () => {
    assertArrayWith(await user.good('GET', '/flowrule'), flowrule);
  });

  test('10 GET /flowrule/{uuid} gives an array with the flowrule', async () => {
    const answer = await user.good('GET', `/flowrule/${flowrule}`);
    assertReadOf(answer, flowrule);
    assertHonest(answer[0]);
  });

  test("11 GET /provider/flowrule gives an array with the users' flowrules", async () => {
    assertArrayWith(await provider.good('GET', '/provider/flowrule'), flowrule);
  });
});

describe('users', () => {
  const bob = { username: 'bob', email: 'bob@example.net', password: 'ochre-meadow-tin-43', ips: ['203.0.113.32/28'] };

  test('13 POST /user works without `name`, and with it', async () => {
    const created = await provider.good('POST', '/user', bob);
    assert.match(created.uuid, uuidForm);
    const carol = { ...bob, username: 'carol', email: 'carol@example.net', ips: [], name: 'Carol' };
    assert.match((await provider.good('POST', '/user', carol)).uuid, uuidForm);
  });

  test('14 POST /user/add-ips lets the user act on more', async () => {
    const more = '203.0.113.64/28';
    const rule = { dst: '203.0.113.65', protocol: 'udp', action: 'drop' };
    assert.notEqual((await user.send('POST', '/firewall/rule', rule)).status, 200);
    const answer = await provider.good('POST', '/user/add-ips', { user_uuid: userUuid, ips: [more] });
    assert.equal(typeof answer, 'object');
    await user.good('POST', '/firewall/rule', rule);
  });

  test('15 POST /user/delete-ips takes it away again', async () => {
    const answer = await provider.good('POST', '/user/delete-ips', { user_uuid: userUuid, ips: ['203.0.113.64/28'] });
    assert.equal(typeof answer, 'object');
    const rule = { dst: '203.0.113.65', protocol: 'udp', action: 'drop' };
    assert.notEqual((await user.send('POST', '/firewall/rule', rule)).status, 200);
  });

  test('16 POST /user/reset-password takes email and password', async () => {
    const answer = await provider.good('POST', '/user/reset-password', {
      email: alice.email,
      password: 'ochre-meadow-tin-44',
    });
    assert.equal(typeof answer, 'object');
  });
});

describe('tunnels', () => {
  let uuid: string;
  const gre = { ips: ['203.0.113.8/29', '2001:db8:7:1::/64'], endpoint: '198.51.100.9', type: 'GRE' };

  test('17 POST /tunnel gives the tunnel with its information', async () => {
    const created = await user.good('POST', '/tunnel', gre);
    uuid = created.uuid;
    assert.match(uuid, uuidForm);
    assert.match(JSON.stringify(Object.keys(created)), /information/);
    assertHonest(created);
    const geneve = { ips: ['203.0.113.0/30'], endpoint: '198.51.100.10', type: 'Geneve', locations: ['fra1'] };
    assert.match((await user.good('POST', '/tunnel', geneve)).uuid, uuidForm);
  });

  test('18 GET /tunnel with an empty JSON object as body, and without any, gives an object that lists all', async () => {
    for (const body of [{}, undefined, {}]) {
      const answer = await user.good('GET', '/tunnel', body);
      assert.ok(typeof answer === 'object' && !Array.isArray(answer));
      const [list] = Object.values(answer).filter(Array.isArray);
      assertArrayWith(list, uuid);
      assert.equal(list?.length, 2);
    }
  });

  test('19 GET /tunnel/{uuid} gives an array with the tunnel', async () => {
    assertReadOf(await user.good('GET', `/tunnel/${uuid}`), uuid);
  });

  test('20 DELETE /tunnel/{uuid} says that it is marked for deletion', async () => {
    assertMarked(await user.good('DELETE', `/tunnel/${uuid}`));
  });
});

describe('reverse DNS', () => {
  const v6 = '2001:db8:7::7';
  const untilNamed = (address: string, name: string | undefined) =>
    until(`${address} to be called ${name ?? 'nothing'}`, 10_000, async () => {
      const names = await installation.namesOf(address);
      return name === undefined ? names.length === 0 : names.join() === name;
    });

  test('21 POST /rdns takes one address in `ips`, a string, and a record, which is served', async () => {
    for (const ips of [dst, v6]) {
      const created = await user.good('POST', '/rdns', { ips, record: 'mail.example.net' });
      assert.ok(typeof created === 'object' && !Array.isArray(created));
      assertHonest(created);
      await untilNamed(ips, 'mail.example.net');
    }
  });

  test('22 PUT /rdns changes the record', async () => {
    const answer = await user.good('PUT', '/rdns', { ips: dst, record: 'www.example.net' });
    assert.ok(typeof answer === 'object' && !Array.isArray(answer));
    await untilNamed(dst, 'www.example.net');
  });

  test('23 DELETE /rdns needs the address alone', async () => {
    const answer = await user.good('DELETE', '/rdns', { ips: dst });
    assert.ok(typeof answer === 'object' && !Array.isArray(answer));
    await untilNamed(dst, undefined);
    await untilNamed(v6, 'mail.example.net');
  });
});

describe('what is refused', () => {
  const nobody = '01890a5d-ac96-774b-bcce-b302099a8057';
  const every: readonly [method: string, path: string, body?: object][] = [
    ['POST', '/firewall/rule', { dst, protocol: 'udp', action: 'drop' }],
    ['GET', `/firewall/rule/${nobody}`],
    ['DELETE', `/firewall/rule/${nobody}`],
    ['GET', '/provider/firewall/rule'],
    ['POST', '/filter', { dst, filter: 1 }],
    ['GET', '/filter'],
    ['DELETE', `/filter/${nobody}`],
    ['GET', '/provider/filter'],
    ['GET', '/flowrule'],
    ['GET', `/flowrule/${nobody}`],
    ['GET', '/provider/flowrule'],
    ['GET', '/attacks'],
    ['POST', '/user', alice],
    ['POST', '/user/add-ips', { user_uuid: nobody, ips: [dst] }],
    ['POST', '/user/delete-ips', { user_uuid: nobody, ips: [dst] }],
    ['POST', '/user/reset-password', { email: alice.email, password: alice.password }],
    ['POST', '/tunnel', { ips: [dst], endpoint: '198.51.100.9', type: 'GRE' }],
    ['GET', '/tunnel', {}],
    ['GET', `/tunnel/${nobody}`],
    ['DELETE', `/tunnel/${nobody}`],
    ['POST', '/rdns', { ips: dst, record: 'mail.example.net' }],
    ['PUT', '/rdns', { ips: dst, record: 'mail.example.net' }],
    ['DELETE', '/rdns', { ips: dst }],
  ];

  test('each of the 23 needs x-api-key, and says so with `error` and `message`', async () => {
    assert.equal(every.length, 23);
    const stranger = givenClient(installation.baseUrl, undefined);
    const forger = givenClient(installation.baseUrl, 'not-a-key');
    for (const [method, path, body] of every) {
      assertError(await stranger.send(method, path, body), 401, `${method} ${path}`);
      assertError(await forger.send(method, path, body), 401, `${method} ${path}`);
    }
    stranger.close();
    forger.close();
  });

  test('an object that does not exist, a body that is wrong and one that is no JSON object are told alike', async () => {
    for (const [method, path, body] of every) {
      const client = path.startsWith('/user') ? provider : user;
      const isMissing = path.includes(nobody);
      const wrong = isMissing ? [body] : method === 'GET' ? [] : [{ ...body, nonsense: true }, [], 'text', null];
      for (const each of wrong) {
        assertError(await client.send(method, path, each), isMissing ? 404 : 400, `${method} ${path}`);
      }
    }
  });

  test('a user that cannot be created is refused with 400', async () => {
    for (const without of ['username', 'email', 'password', 'ips']) {
      const body = { ...alice, username: 'dave', email: 'dave@example.net', ips: [], [without]: undefined };
      assertError(await provider.send('POST', '/user', body), 400, `without ${without}`);
    }
  });

  test('values beyond the limits of the page are refused', async () => {
    const rule = { dst, protocol: 'udp', action: 'drop' };
    for (const wrong of [
      { ratelimit: -1 },
      { ratelimit: 4294967296 },
      { packetlength: 0 },
      { packetlength: 65536 },
      { priority: 0 },
      { protocol: 'tpc' },
      { action: 'allow' },
      { packettype: 'anycast' },
      { statetype: 'open' },
      { disabled: 'no' },
      { protocol: 'tcp', tcpflags: ['xyz'] },
      { port: { src: { start: '80' } } },
    ]) {
      assertError(await user.send('POST', '/firewall/rule', { ...rule, ...wrong }), 400, JSON.stringify(wrong));
    }
    for (const wrong of [{ ratelimit: 0 }, { ratelimit: 25001 }, { priority: 0 }, { filter: 'dns' }]) {
      const filter = { dst, filter: installation.filterKind, ...wrong };
      assertError(await user.send('POST', '/filter', filter), 400, JSON.stringify(wrong));
    }
  });
});
