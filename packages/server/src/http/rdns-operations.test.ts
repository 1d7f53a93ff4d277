import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ApiFixture, type Holder, type Reply, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;
let user: Holder;

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/28', '2001:db8:7::/48']);
});
after(() => api?.stop());

const call = (id: string, holder: Holder, body: object): Promise<Reply> => api.call(id, {}, { key: holder.key, body });
const zoneCall = (id: string, body?: object, uuid = ''): Promise<Reply> =>
  api.call(id, { uuid }, { key: api.operatorKey, ...(body && { body }) });
const list = async (holder: Holder, query = '') => (await api.call('listRdns', {}, { key: holder.key, query })).body;

test('a record is answered in its canonical form, and nothing that is not known is said of it', async () => {
  const { status, body } = await call('createRdns', user, { ips: '2001:DB8:7:0:0::1', record: 'Bücher.Example.' });
  assert.equal(status, 200);
  assert.equal(body.ips, '2001:db8:7::1');
  assert.equal(body.record, 'xn--bcher-kva.example');
  assert.equal(body.owner_uuid, user.uuid);
  assert.equal('forward_confirmed' in body, false);
});

test('a subnet is refused with a sentence that says what ips means', async () => {
  const { status, body } = await call('createRdns', user, { ips: '203.0.113.0/28', record: 'a.example.net' });
  assert.equal(status, 400);
  assert.match(body.message, /^ips: must be one address, not a subnet/);
});

test('a list is narrowed by address, subnet and state, comes in pages, and shows a provider whose records they are', async () => {
  for (const last of [1, 2, 3])
    await call('createRdns', user, { ips: `203.0.113.${last}`, record: `h${last}.example.net` });
  await call('createRdns', provider, { ips: '203.0.113.200', record: 'p.example.net' });
  assert.deepEqual(
    (await list(user, '?ip=203.0.113.2')).map((each: { record: string }) => each.record),
    ['h2.example.net'],
  );
  assert.equal((await list(user, '?ip=203.0.113.0/24')).length, 3);
  assert.equal((await list(user, '?ip=203.0.113.0/24&state=active')).length, 0);
  assert.equal((await list(user, '?ip=203.0.113.200')).length, 0);
  const owners = (await list(provider, '?ip=203.0.113.0/24')).map((each: { owner_uuid: string }) => each.owner_uuid);
  assert.deepEqual(owners, [user.uuid, user.uuid, user.uuid, provider.uuid]);
  const seen: string[] = [];
  for (let path: string | undefined = '/v1/rdns?ip=203.0.113.0/24&limit=2'; path !== undefined; ) {
    const page: Reply = await api.raw('GET', path, { key: provider.key });
    seen.push(...page.body.map((each: { record: string }) => each.record));
    path = /<(.*)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1];
  }
  assert.deepEqual(seen, ['h1.example.net', 'h2.example.net', 'h3.example.net', 'p.example.net']);
});

test('whoever holds the address now changes its record, whoever made it', async () => {
  const ips = '203.0.113.33';
  await call('createRdns', provider, { ips, record: 'old.example.net' });
  const later = await api.user(provider, ['203.0.113.32/28']);
  const taken = await call('createRdns', later, { ips, record: 'new.example.net' });
  assert.equal(taken.status, 409);
  const changed = await call('updateRdns', later, { ips, record: 'new.example.net' });
  assert.equal(changed.status, 200, changed.text);
  assert.equal(changed.body.owner_uuid, later.uuid);
  assert.equal((await call('updateRdns', provider, { ips, record: 'x.example.net' })).status, 403);
  assert.equal((await call('deleteRdns', provider, { ips })).status, 200);
  assert.equal((await call('createRdns', later, { ips, record: 'again.example.net' })).status, 200, 'free at once');
});

test("a record that is taken over counts for its new owner, whose quota it needs; its provider's holds it already", async () => {
  const [first, second] = ['203.0.113.64', '203.0.113.65'];
  for (const ips of [first, second]) await call('createRdns', provider, { ips, record: 'old.example.net' });
  const later = await api.user(provider, ['203.0.113.64/28']);
  const put = (ips: string, record: string) => call('updateRdns', later, { ips, record });
  const limit = (holder: Holder, rdns: number | null) =>
    api.call('setQuota', { account_uuid: holder.uuid }, { key: api.operatorKey, body: { rdns } });
  await limit(provider, 1);
  await limit(later, 1);
  assert.equal((await put(first, 'new.example.net')).status, 200);
  const refused = await put(second, 'new.example.net');
  assert.equal(refused.status, 429, refused.text);
  assert.deepEqual(refused.body.details[0].quota, { kind: 'rdns', maximum: 1, used: 1 });
  const [kept] = await list(provider, `?ip=${second}`);
  assert.deepEqual([kept.owner_uuid, kept.record], [provider.uuid, 'old.example.net']);
  assert.equal((await put(first, 'newer.example.net')).status, 200, 'its own may always be changed');
  await limit(provider, null);
});

test('zones nest or are apart, and each counts its own records', async () => {
  const put = (zone: string) => zoneCall('createRdnsZone', { zone, driver: 'rfc2136', server: '127.0.0.1:9' });
  const wide = await put('113.0.203.in-addr.arpa');
  assert.equal(wide.status, 200, wide.text);
  assert.deepEqual(wide.body.covers, ['203.0.113.0/24']);
  const all = wide.body.status.records_pending;
  assert.ok(all >= 4);
  const inner = await put('0/30.113.0.203.in-addr.arpa');
  assert.equal(inner.body.status.records_pending, 3);
  assert.equal((await zoneCall('readRdnsZone', undefined, wide.body.uuid)).body.status.records_pending, all - 3);
  for (const [zone, code] of [
    ['113.0.203.IN-ADDR.ARPA.', 'already_exists'],
    ['0-3.113.0.203.in-addr.arpa', 'same_addresses'],
    ['2-9.113.0.203.in-addr.arpa', 'overlap'],
  ] as const) {
    const { status, body } = await put(zone);
    assert.equal(status, 409, zone);
    assert.equal(body.details[0].code, code);
  }
  const [record] = await list(user, '?ip=203.0.113.1');
  assert.equal(record.applied[0].zone, '0/30.113.0.203.in-addr.arpa');
  await zoneCall('deleteRdnsZone', undefined, inner.body.uuid);
  assert.equal((await list(user, '?ip=203.0.113.1'))[0].applied[0].zone, '113.0.203.in-addr.arpa');
  await zoneCall('deleteRdnsZone', undefined, wide.body.uuid);
});

test('a zone says what the one around it must hold, and what keeps resolvers from finding it', async () => {
  const put = async (body: object) => (await zoneCall('createRdnsZone', body)).body;
  const read = async (uuid: string) => (await zoneCall('readRdnsZone', undefined, uuid)).body;
  const wide = await put({ zone: '9.0.10.in-addr.arpa', driver: 'rfc2136', server: '127.0.0.1:9' });
  assert.deepEqual([wide.delegation, wide.warning], [undefined, undefined]);
  const half = await put({ zone: '0/25.9.0.10.in-addr.arpa', driver: 'embedded' });
  const aliases = '$GENERATE 0-127 $.9.0.10.in-addr.arpa. CNAME $.0/25.9.0.10.in-addr.arpa.';
  assert.deepEqual(half.delegation, { zone: '9.0.10.in-addr.arpa', made_by: 'operator', records: [aliases] });
  assert.match(half.warning, /localhost/);
  const named = await zoneCall('changeRdnsZone', { nameservers: ['ns1.example.net'] }, half.uuid);
  assert.equal(named.body.warning, undefined);
  assert.deepEqual(named.body.delegation.records, ['0/25.9.0.10.in-addr.arpa. IN NS ns1.example.net.', aliases]);
  await zoneCall('changeRdnsZone', { driver: 'embedded', nameservers: ['ns2.example.net'] }, wide.uuid);
  assert.equal((await read(half.uuid)).delegation.made_by, 'levee');
  const away = { zone: '128/25.9.0.10.in-addr.arpa', driver: 'powerdns', server: 'http://127.0.0.1:9', api_key: 'k' };
  const other = await put(away);
  assert.equal(other.delegation.made_by, 'levee');
  assert.match(other.warning, /^Levee serves 9\.0\.10\.in-addr\.arpa, .* cannot delegate it without nameservers/);
  assert.deepEqual((await read(wide.uuid)).status.secondaries, []);
  for (const { uuid } of [other, half, wide]) await zoneCall('deleteRdnsZone', undefined, uuid);
});

test('whatever is done to a zone, the embedded ones that nest with it are given another serial', async () => {
  const serials = async () => {
    const { body } = await zoneCall('listRdnsZones');
    return new Map(body.map((each: { zone: string; serial?: number }) => [each.zone, each.serial]));
  };
  const [wide, apart, inner] = ['8.0.10.in-addr.arpa', '7.0.10.in-addr.arpa', '0/25.8.0.10.in-addr.arpa'];
  const made = new Map<string, string>();
  for (const zone of [wide, apart])
    made.set(zone, (await zoneCall('createRdnsZone', { zone, driver: 'embedded' })).body.uuid);
  let before = await serials();
  const raised = async (what: string) => {
    const now = await serials();
    assert.ok((now.get(wide) as number) > (before.get(wide) as number), what);
    assert.equal(now.get(apart), before.get(apart), what);
    before = now;
  };
  const { uuid } = (await zoneCall('createRdnsZone', { zone: inner, driver: 'rfc2136', server: '127.0.0.1:9' })).body;
  await raised('one is made inside');
  await zoneCall('changeRdnsZone', { nameservers: ['ns1.example.net'] }, uuid);
  await raised('its name servers change');
  await zoneCall('deleteRdnsZone', undefined, uuid);
  await raised('it goes');
  for (const each of made.values()) await zoneCall('deleteRdnsZone', undefined, each);
});

test('a secret goes in and never comes out: not in an answer, an error, the audit log', async () => {
  const secret = Buffer.from('never to be seen').toString('base64');
  const apiKey = 'never-to-be-answered';
  const texts: string[] = [];
  const keep = (reply: Reply) => {
    texts.push(reply.text);
    return reply;
  };
  const tsig = { name: 'levee', algorithm: 'hmac-sha256', secret };
  const updates = { zone: '1.0.10.in-addr.arpa', driver: 'rfc2136', server: '127.0.0.1:9', tsig };
  const made = keep(await zoneCall('createRdnsZone', updates));
  assert.deepEqual(made.body.tsig, { name: 'levee', algorithm: 'hmac-sha256' });
  const web = { zone: '2.0.10.in-addr.arpa', driver: 'powerdns', server: 'http://127.0.0.1:9', api_key: apiKey };
  const second = keep(await zoneCall('createRdnsZone', web));
  assert.equal(second.body.api_key_set, true);
  keep(await zoneCall('createRdnsZone', updates));
  keep(await zoneCall('changeRdnsZone', { ttl: 60 }, made.body.uuid));
  keep(await zoneCall('changeRdnsZone', { ttl: 60, nameservers: ['ns1.example.net'] }, second.body.uuid));
  keep(
    await zoneCall('createRdnsZone', {
      ...updates,
      zone: '3.0.10.in-addr.arpa',
      tsig: { ...tsig, secret: `${secret}!` },
    }),
  );
  keep(await zoneCall('createRdnsZone', { ...web, zone: '4.0.10.in-addr.arpa', api_key: `${apiKey} ` }));
  keep(await zoneCall('createRdnsZone', { ...web, zone: '4.0.10.in-addr.arpa', api_key: [apiKey] }));
  keep(await zoneCall('listRdnsZones'));
  keep(await zoneCall('readRdnsZone', undefined, made.body.uuid));
  keep(await zoneCall('deleteRdnsZone', undefined, made.body.uuid));
  const audit = keep(await zoneCall('listAudit'));
  assert.ok(audit.body.length > 0);
  for (const text of texts) {
    assert.ok(!text.includes(secret) && !text.includes(apiKey), text);
  }
});

test('a change to another driver drops what the former used, and an embedded zone needs more than one name', async () => {
  const single = { zone: '7.9.0.10.in-addr.arpa', driver: 'embedded' };
  assert.match((await zoneCall('createRdnsZone', single)).body.message, /is one address/);
  const made = await zoneCall('createRdnsZone', { ...single, driver: 'rfc2136', server: '127.0.0.1:9', ttl: 60 });
  const { uuid } = made.body;
  const refused = await zoneCall('changeRdnsZone', { driver: 'embedded' }, uuid);
  assert.equal(refused.status, 400);
  const needed = await zoneCall('changeRdnsZone', { driver: 'powerdns', server: 'http://127.0.0.1:9' }, uuid);
  assert.match(needed.body.message, /^api_key: is required by the driver powerdns/);
  const changed = await zoneCall(
    'changeRdnsZone',
    { driver: 'powerdns', server: 'http://127.0.0.1:9', api_key: 'k' },
    uuid,
  );
  assert.equal(changed.body.ttl, 60);
  assert.equal(changed.body.server, 'http://127.0.0.1:9');
});
