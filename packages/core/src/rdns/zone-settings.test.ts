import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatHostPort, mailboxName, parseHostPort, parseZoneSettings, type ZoneFields } from './zone-settings.ts';

const tsig = { name: 'Levee.', algorithm: 'hmac-sha256', secret: 'c2VjcmV0' } as const;

for (const [what, fields, settings] of [
  ['embedded with nothing else', { driver: 'embedded' }, { ttl: 300 }],
  [
    'embedded with everything',
    {
      driver: 'embedded',
      nameservers: ['NS1.Example.net.', 'ns2.example.net'],
      admin: 'Host.Master@Example.net',
      secondaries: ['192.0.2.54', '[2001:DB8::54]:5353', '2001:db8::55'],
      ttl: 60,
    },
    {
      nameservers: ['ns1.example.net', 'ns2.example.net'],
      admin: 'Host.Master@example.net',
      secondaries: ['192.0.2.54:53', '[2001:db8::54]:5353', '[2001:db8::55]:53'],
      ttl: 60,
    },
  ],
  ['rfc2136 without a port', { driver: 'rfc2136', server: '192.0.2.53' }, { server: '192.0.2.53:53', ttl: 300 }],
  [
    'rfc2136 with a key',
    { driver: 'rfc2136', server: 'NS1.example.net:5353', tsig },
    { server: 'ns1.example.net:5353', tsig: { ...tsig, name: 'levee' }, ttl: 300 },
  ],
  [
    'powerdns',
    { driver: 'powerdns', server: 'http://[::1]:8081/', api_key: 'k', nameservers: ['ns1.example.net'] },
    { server: 'http://[::1]:8081', api_key: 'k', nameservers: ['ns1.example.net'], ttl: 300 },
  ],
] as const satisfies readonly (readonly [string, ZoneFields, object])[]) {
  test(`${what} is read`, () => assert.deepEqual(parseZoneSettings(fields), { ok: true, settings }));
}

for (const [what, fields, field, code] of [
  ['rfc2136 without a server', { driver: 'rfc2136' }, '/server', 'required'],
  ['powerdns without a key', { driver: 'powerdns', server: 'http://192.0.2.1' }, '/api_key', 'required'],
  ['powerdns with a host', { driver: 'powerdns', server: '192.0.2.1:8081', api_key: 'k' }, '/server', 'invalid_url'],
  [
    'powerdns with a password',
    { driver: 'powerdns', server: 'http://u:p@192.0.2.1', api_key: 'k' },
    '/server',
    'invalid_url',
  ],
  ['rfc2136 with a URL', { driver: 'rfc2136', server: 'http://192.0.2.1' }, '/server', 'invalid_server'],
  ['rfc2136 at port 0', { driver: 'rfc2136', server: '192.0.2.1:0' }, '/server', 'invalid_server'],
  ['a key for powerdns', { driver: 'rfc2136', server: '192.0.2.1', api_key: 'k' }, '/api_key', 'not_used'],
  ['a server for embedded', { driver: 'embedded', server: '192.0.2.1' }, '/server', 'not_used'],
  [
    'a secret that is none',
    { driver: 'rfc2136', server: '192.0.2.1', tsig: { ...tsig, secret: 'sesam?' } },
    '/tsig/secret',
    'malformed',
  ],
  [
    'a key name that is none',
    { driver: 'rfc2136', server: '192.0.2.1', tsig: { ...tsig, name: 'a b' } },
    '/tsig/name',
    'malformed',
  ],
  [
    'a name server that is an address',
    { driver: 'embedded', nameservers: ['192.0.2.1'] },
    '/nameservers/0',
    'numeric_top_label',
  ],
  ['a name server twice', { driver: 'embedded', nameservers: ['a.b', 'A.b.'] }, '/nameservers/1', 'duplicate'],
  ['a secondary by name', { driver: 'embedded', secondaries: ['ns2.example.net'] }, '/secondaries/0', 'malformed'],
  [
    'a secondary twice',
    { driver: 'embedded', secondaries: ['192.0.2.1', '192.0.2.1:53'] },
    '/secondaries/1',
    'duplicate',
  ],
  [
    'an admin too long for the SOA record once its host is in the form of the DNS',
    { driver: 'embedded', admin: `${'a'.repeat(63)}@${'é.'.repeat(25)}example` },
    '/admin',
    'malformed',
  ],
  ['an admin without @', { driver: 'embedded', admin: 'hostmaster.example.net' }, '/admin', 'malformed'],
] as const satisfies readonly (readonly [string, ZoneFields, string, string])[]) {
  test(`${what} is refused as ${code} at ${field}, and no secret is repeated`, () => {
    const read = parseZoneSettings(fields);
    assert.ok(!read.ok);
    assert.deepEqual(
      read.problems.map((problem) => [problem.field, problem.code]),
      [[field, code]],
    );
    assert.doesNotMatch(JSON.stringify(read), /sesam|u:p/);
  });
}

test('all that is wrong is told at once', () => {
  const read = parseZoneSettings({ driver: 'powerdns', secondaries: ['x'], nameservers: ['_'], admin: 'a@b' });
  assert.ok(!read.ok);
  assert.deepEqual(read.problems.map(({ field }) => field).sort(), [
    '/admin',
    '/api_key',
    '/nameservers/0',
    '/secondaries',
    '/server',
  ]);
});

test('a change keeps what is not given, drops what another driver had, and takes away what is null', () => {
  const before = { server: '192.0.2.1:53', tsig: { ...tsig, name: 'levee' }, ttl: 60 };
  assert.deepEqual(parseZoneSettings({ driver: 'rfc2136', ttl: 90 }, before), {
    ok: true,
    settings: { ...before, ttl: 90 },
  });
  assert.deepEqual(parseZoneSettings({ driver: 'rfc2136', tsig: null, ttl: null }, before), {
    ok: true,
    settings: { server: '192.0.2.1:53', ttl: 300 },
  });
  assert.deepEqual(parseZoneSettings({ driver: 'embedded' }, before), { ok: true, settings: { ttl: 60 } });
});

test('a place is written back as it is read', () => {
  const host = fc.oneof(
    fc.constantFrom('192.0.2.1', '2001:db8::1', 'ns1.example.net'),
    fc.ipV4().filter((text) => !/^(.*\.)?0[0-9]/.test(text)),
  );
  fc.assert(
    fc.property(host, fc.integer({ min: 1, max: 65_535 }), (of, port) => {
      const text = formatHostPort({ host: of, port });
      assert.deepEqual(parseHostPort(text, 53), { host: of, port });
    }),
  );
});

for (const [admin, name] of [
  ['hostmaster@example.net', 'hostmaster.example.net'],
  ['host.master@example.net', 'host\\046master.example.net'],
  ['Dns+Ops@example.net', 'dns\\043ops.example.net'],
] as const) {
  test(`the mailbox ${admin} stands in the zone as ${name}`, () => assert.equal(mailboxName(admin), name));
}
