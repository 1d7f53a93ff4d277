/** Guarantees to standard secondaries, proved with Knot, NSD and BIND: they get the zone, and each change of it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { waitUntil } from '../../store/testing/wait-until.ts';
import type { DnsAddress } from './dns-server.ts';
import { memoryZones, zoneSettings } from './testing/memory-zones.ts';
import { dig, digShort, freePort, missingPrograms, startBind, startKnot, startNsd } from './testing/programs.ts';
import { serve } from './testing/test-server.ts';
import type { ZoneRecord } from './zone-source.ts';

const four = '113.0.203.in-addr.arpa';
const classless = '0/25.2.0.192.in-addr.arpa';

const programs = [
  ['knot', startKnot],
  ['nsd', startNsd],
  ['bind9', startBind],
] as const;

for (const [name, start] of programs) {
  describe(name, { skip: missingPrograms(name, 'bind9-dnsutils') }, () => {
    test('takes zones by transfer and follows each change by its notification', async (t) => {
      const port = await freePort();
      const secondaries = [{ address: '127.0.0.1', port }];
      const zones = memoryZones();
      // Close below the end of the circle: the second change goes over it (RFC 1982).
      zones.put(zoneSettings(four, { secondaries, serial: 0xffff_fffe }), [
        [`7.${four}`, 'mail.example.net'],
        [`9.${four}`, { alias: `9.8/29.${four}` }],
        [`8/29.${four}`, { nameservers: ['ns5.example.net'] }],
      ]);
      const many = Array.from(
        { length: 3_000 },
        (_, index): ZoneRecord => [`${index}.${classless}`, `h${index}.example.net`],
      );
      zones.put(zoneSettings(classless, { secondaries }), many);
      const server = await serve(t, zones);
      const secondary = start(port, { zones: [four, classless], primary: server.at });
      t.after(() => secondary.stop());
      const at: DnsAddress = { host: '127.0.0.1', port };
      const says = async (owner: string, type: string) =>
        (await digShort(at, '+norec', owner, type).catch(() => [])).join();

      await waitUntil(async () => (await says(`7.${four}`, 'PTR')) === 'mail.example.net.', 'the first zone', 30_000);
      await waitUntil(
        async () => (await says(`2999.${classless}`, 'PTR')) === 'h2999.example.net.',
        'the second zone',
        30_000,
      );
      assert.deepEqual((await digShort(at, '+norec', four, 'NS')).sort(), ['ns1.example.net.', 'ns2.example.net.']);
      assert.equal(await says(`9.${four}`, 'PTR'), `9.8/29.${four}.`);
      assert.match(
        await dig(at, '+norec', `9.8/29.${four}`, 'PTR'),
        /AUTHORITY: 1,[\s\S]*IN\s+NS\s+ns5\.example\.net\./,
      );
      await waitUntil(
        () => server.secondaries(four)[0]?.acknowledgedSerial === 0xffff_fffe,
        'the acknowledgement',
        30_000,
      );

      for (const target of ['one.example.net', 'two.example.net', 'three.example.net']) {
        const { serial } = zones.change(four, [[`8.${four}`, target]]);
        const changed = async () => (await says(`8.${four}`, 'PTR')) === `${target}.`;
        await waitUntil(changed, `${target} to be served`, 30_000);
        assert.match(await says(four, 'SOA'), new RegExp(` ${serial} `));
        await waitUntil(
          () => server.secondaries(four)[0]?.acknowledgedSerial === serial,
          'the acknowledgement',
          30_000,
        );
      }
      assert.equal(server.servedSerial(four), 1);
      zones.change(four, [], [`7.${four}`]);
      await waitUntil(async () => (await says(`7.${four}`, 'PTR')) === '', 'the removal', 30_000);
      assert.equal(server.counters.answers.format_error, 0);
      assert.deepEqual(server.warnings, []);
    });
  });
}
