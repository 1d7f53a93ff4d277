/** One contract for every driver: the fake, dynamic updates to BIND, Knot and PowerDNS, and PowerDNS' own interface. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { PtrChange, ZoneServer } from './port.ts';
import { createPowerDns } from './powerdns.ts';
import { createRfc2136 } from './rfc2136.ts';
import { digPointers, digStatus } from './testing/dig.ts';
import { createFakeServer } from './testing/fake-server.ts';
import { bindPrimary, knotPrimary, type Primary, powerDnsPrimary, testKey } from './testing/primaries.ts';

const zone = '113.0.203.in-addr.arpa';
const classless = '0/25.2.0.192.in-addr.arpa';
const ipv6 = '8.b.d.0.1.0.0.2.ip6.arpa';
const zones = [zone, classless, ipv6];
const records = ['77 IN PTR foreign.example.net.', '50 IN CNAME 50.0/25'];

interface Driver {
  readonly name: string;
  /** Absent: nothing to start. */
  readonly primary?: () => Promise<Primary>;
  readonly server: (of: string, primary: Primary | undefined) => ZoneServer;
}

const updates = (of: string, primary: Primary | undefined) =>
  createRfc2136({ zone: of, server: `127.0.0.1:${primary?.port}`, tsig: testKey, ttlSeconds: 300 });

const drivers: readonly Driver[] = [
  { name: 'the fake', server: (of) => createFakeServer(of) },
  { name: 'updates to BIND', primary: () => bindPrimary(zones, records), server: updates },
  { name: 'updates to Knot', primary: () => knotPrimary(zones, records), server: updates },
  { name: 'updates to PowerDNS', primary: () => powerDnsPrimary(zones, records), server: updates },
  {
    name: 'the HTTP API of PowerDNS',
    primary: () => powerDnsPrimary(zones, records),
    server: (of, primary) =>
      createPowerDns({ zone: of, server: primary?.url ?? '', apiKey: primary?.apiKey ?? '', ttlSeconds: 300 }),
  },
];

for (const driver of drivers) {
  describe(driver.name, () => {
    let primary: Primary | undefined;
    const opened: ZoneServer[] = [];
    const open = (of: string) => {
      const server = driver.server(of, primary);
      opened.push(server);
      return server;
    };
    let server: ZoneServer;
    before(async () => {
      primary = await driver.primary?.();
      await primary?.start();
      server = open(zone);
    });
    after(async () => {
      for (const each of opened) each.close();
      await primary?.remove();
    });

    const served = async (owner: string, of = server) => {
      const read = await of.readBack([owner]);
      assert.ok(read.ok, JSON.stringify(read));
      if (primary !== undefined) assert.deepEqual(await digPointers(primary.port, owner), read.targets.get(owner));
      return read.targets.get(owner);
    };
    const applied = async (changes: readonly PtrChange[], of = server) => {
      const outcome = await of.apply(changes, { left: 50 });
      assert.ok(outcome.ok, JSON.stringify(outcome));
      return outcome.refused;
    };

    test('is there', async () => assert.deepEqual(await server.probe(), { ok: true }));

    test('creates, replaces and removes, and does so again without harm', async () => {
      const owner = `7.${zone}`;
      for (const target of ['a.example.net', 'a.example.net', 'b.example.net']) {
        assert.equal((await applied([{ owner, target }])).size, 0);
        assert.deepEqual(await served(owner), [target]);
      }
      for (let round = 0; round < 2; round++) {
        assert.equal((await applied([{ owner, target: undefined }])).size, 0);
        assert.deepEqual(await served(owner), []);
      }
    });

    test('takes many changes at once, of both kinds', async () => {
      const many = Array.from({ length: 40 }, (_, index) => ({
        owner: `${100 + index}.${zone}`,
        target: `h${index}.example.net`,
      }));
      assert.equal((await applied(many)).size, 0);
      const turned = many.map(({ owner, target }, index) => ({
        owner,
        target: index % 2 === 0 ? undefined : `new-${target}`,
      }));
      assert.equal((await applied(turned)).size, 0);
      const read = await server.readBack(many.map(({ owner }) => owner));
      assert.ok(read.ok);
      for (const { owner, target } of turned) {
        assert.deepEqual(read.targets.get(owner), target === undefined ? [] : [target]);
      }
      // More names than are read one by one.
      const more = await server.readBack(Array.from({ length: 60 }, (_, index) => `${100 + index}.${zone}`));
      assert.ok(more.ok);
      assert.deepEqual(more.targets.get(`101.${zone}`), ['new-h1.example.net']);
      assert.deepEqual(more.targets.get(`159.${zone}`), []);
    });

    test('tells which of many changes was refused, and carries out the others', async () => {
      const outside = '1.114.0.203.in-addr.arpa';
      const changes = [3, 4, 5, 6, 8, 9, 10, 11, 12].map((octet) => ({
        owner: `${octet}.${zone}`,
        target: 'x.example.net',
      }));
      const refused = await applied([
        ...changes.slice(0, 3),
        { owner: outside, target: 'x.example.net' },
        ...changes.slice(3),
      ]);
      assert.deepEqual([...refused.keys()], [outside]);
      assert.match(refused.get(outside) ?? '', /^(?:The|PowerDNS) .*\.$/);
      for (const { owner } of changes) assert.deepEqual(await served(owner), ['x.example.net']);
    });

    if (driver.primary !== undefined) {
      test('leaves every other record of the zone as it is', async () => {
        assert.deepEqual(await served(`77.${zone}`), ['foreign.example.net']);
        assert.equal(await digStatus(primary?.port ?? 0, zone, 'SOA'), 'NOERROR');
      });

      test('does not believe a record that an alias hides', async () => {
        const owner = `50.${zone}`;
        const refused = await applied([{ owner, target: 'x.example.net' }]);
        assert.match(refused.get(owner) ?? '', /alias|Conflicts|REFUSED/);
        assert.deepEqual(await digPointers(primary?.port ?? 0, owner), [`50.0/25.${zone}`], 'the alias stands');
      });

      test('keeps classless and IPv6 zones', async () => {
        for (const [of, owner] of [
          [classless, `9.${classless}`],
          [ipv6, `1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.7.0.0.0.${ipv6}`],
        ] as const) {
          const other = open(of);
          assert.equal((await applied([{ owner, target: 'z.example.net' }], other)).size, 0);
          assert.deepEqual(await served(owner, other), ['z.example.net']);
        }
      });

      test('is told that a zone is not there', async () => {
        const missing = open('100.51.198.in-addr.arpa');
        const outcome = await missing.apply([{ owner: '1.100.51.198.in-addr.arpa', target: 'x.example.net' }], {
          left: 50,
        });
        assert.ok(!outcome.ok);
        assert.equal(outcome.trouble, 'refused');
        assert.match(outcome.reason, /NOTAUTH|no such zone/);
      });

      test('is away while the server is dead, and goes on with the same connection when it is back', async () => {
        const change = { owner: `7.${zone}`, target: 'back.example.net' };
        await primary?.kill();
        for (const outcome of [
          await server.apply([change], { left: 50 }),
          await server.probe(),
          await server.readBack([change.owner]),
        ]) {
          assert.ok(!outcome.ok);
          assert.equal(outcome.trouble, 'away');
          assert.equal(outcome.reason, 'connection refused');
        }
        await primary?.start();
        assert.equal((await applied([change])).size, 0);
        assert.deepEqual(await served(change.owner), ['back.example.net']);
      });
    }

    test('gives up what is asked after it was closed', async () => {
      const closed = open(zone);
      closed.close();
      const outcome = await closed.apply([{ owner: `7.${zone}`, target: 'x.example.net' }], { left: 50 });
      assert.ok(!outcome.ok);
    });
  });
}

describe('keys', () => {
  let primary: Primary;
  let powerDns: Primary;
  before(async () => {
    [primary, powerDns] = await Promise.all([bindPrimary([zone]), powerDnsPrimary([zone])]);
    await Promise.all([primary.start(), powerDns.start()]);
  });
  after(async () => {
    await Promise.all([primary?.remove(), powerDns?.remove()]);
  });
  const change = { owner: `7.${zone}`, target: 'evil.example.net' };
  const hour = 3_600_000;

  for (const [what, more, reason] of [
    ['a name that is not known', { tsig: { ...testKey, name: 'other' } }, /does not know the key other .*BADKEY/],
    ['another algorithm', { tsig: { ...testKey, algorithm: 'hmac-sha512' } }, /hmac-sha512 \(BADKEY\)/],
    ['another secret', { tsig: { ...testKey, secret: 'AAAAAAAA' } }, /another secret .*BADSIG/],
    ['a clock that is off', { nowMilliseconds: () => Date.now() + hour }, /too far apart, by 3\d\d\d s \(BADTIME\)/],
  ] as const) {
    test(`${what} is told, changes nothing and shows no secret`, async () => {
      const server = createRfc2136({
        zone,
        server: `127.0.0.1:${primary.port}`,
        tsig: testKey,
        ttlSeconds: 300,
        ...more,
      });
      const outcome = await server.apply([change], { left: 50 });
      server.close();
      assert.ok(!outcome.ok);
      assert.equal(outcome.trouble, 'refused');
      assert.match(outcome.reason, reason);
      assert.ok(!outcome.reason.includes(testKey.secret));
      assert.deepEqual(await digPointers(primary.port, change.owner), []);
    });
  }

  test('without a key an update is refused as what it is', async () => {
    const server = createRfc2136({ zone, server: `127.0.0.1:${primary.port}`, ttlSeconds: 300 });
    const outcome = await server.apply([change], { left: 50 });
    server.close();
    assert.ok(outcome.ok);
    assert.match(outcome.refused.get(change.owner) ?? '', /from this address, without a key \(REFUSED\)/);
  });

  test('a wrong API key is told and not shown', async () => {
    const server = createPowerDns({ zone, server: powerDns.url ?? '', apiKey: 'not-this-one', ttlSeconds: 300 });
    const outcome = await server.apply([change], { left: 50 });
    server.close();
    assert.deepEqual(outcome, { ok: false, trouble: 'refused', reason: 'it does not accept the API key' });
  });

  test('PowerDNS is given a zone that it lacks when name servers are known', async () => {
    const made = '3.0.10.in-addr.arpa';
    const nameservers = ['ns1.example.net'];
    const options = {
      zone: made,
      server: powerDns.url ?? '',
      apiKey: powerDns.apiKey ?? '',
      ttlSeconds: 300,
      nameservers,
    };
    const server = createPowerDns(options);
    const outcome = await server.apply([{ owner: `5.${made}`, target: 'made.example.net' }], { left: 50 });
    server.close();
    assert.ok(outcome.ok && outcome.refused.size === 0, JSON.stringify(outcome));
    assert.deepEqual(await digPointers(powerDns.port, `5.${made}`), ['made.example.net']);
    assert.equal(await digStatus(powerDns.port, made, 'SOA'), 'NOERROR');
  });
});
