/** Guarantees of filter kind 3 with dig and named (Debian's BIND) and with what reflectors send unasked, cut into fragments too. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { buildFragments } from '@levee/lab/packet-build.ts';
import { hardwareAddress } from '@levee/lab/router-path.ts';
import { client, FilteredPath, families, server, until } from './filtered-path.ts';
import { frameOf, RawClient, serverAddress, strangersAddress } from './raw-client.ts';

const skip = labObstacle() ?? false;
const kindId = 3;
const reflectors = [19, 53, 123, 161, 389, 1900, 11211];

/** An answer that takes several packets. */
const zone = `$TTL 60
@ SOA ns.example. host.example. 1 2 3 4 5
@ NS ns.example.
ns A 192.0.2.2
large TXT ${Array.from({ length: 12 }, (_, index) => `"${String.fromCharCode(97 + index).repeat(250)}"`).join(' ')}
small TXT "small"
`;

/** A DNS server on the internet's side. */
async function startNamed(path: FilteredPath): Promise<Disposable> {
  const directory = mkdtempSync(join(tmpdir(), 'levee-named-'));
  writeFileSync(join(directory, 'example.zone'), zone);
  writeFileSync(
    join(directory, 'named.conf'),
    `options { directory "${directory}"; pid-file none; recursion no; max-udp-size 4096; edns-udp-size 4096;
       listen-on { ${client[4]}; }; listen-on-v6 { ${client[6]}; }; session-keyfile none; };
     controls { };
     zone "example" { type primary; file "example.zone"; };\n`,
  );
  const program = path.start(path.client, 'named', ['-g', '-c', join(directory, 'named.conf')]);
  await until('named to run', () => {
    if (program.child.exitCode !== null) throw new Error(`named ended: ${program.output}`);
    return / running$/m.test(program.output);
  });
  return { [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }) };
}

test('what the destination asked for arrives, what reflectors send unasked does not', { skip }, async (t) => {
  await using path = new FilteredPath('amplified');
  using _named = await startNamed(path);
  path.filter(kindId);

  for (const family of families) {
    await t.test(`IPv${family}: dig gets its answers, one of them in fragments`, async () => {
      for (const [name, length] of [
        ['small', 5],
        ['large', 3000],
      ] as const) {
        const options = [
          '+short',
          '+notcp',
          '+ignore',
          '+bufsize=4096',
          '+tries=1',
          '+time=5',
          'TXT',
          `${name}.example`,
        ];
        const args = ['-b', server[family], `@${client[family]}`, ...options];
        const { output } = await path.run(path.server, 'dig', args);
        assert.equal(output.replace(/[" \n]/g, '').length, length, output);
      }
      assert.equal(path.discarded(), 0);
    });
  }

  for (const family of families) {
    await t.test(`IPv${family}: unasked answers are discarded, other traffic is not`, async () => {
      using raw = new RawClient(path);
      const datagram = (number: number, sourcePort: number) =>
        frameOf({
          family,
          source: strangersAddress(family, number),
          destination: serverAddress(family),
          transport: { kind: 'udp', sourcePort, destinationPort: 40_000 },
          totalLength: 468,
        });
      const before = path.discarded();
      await raw.send(...reflectors.flatMap((port) => [1, 2, 3].map((number) => datagram(number, port))));
      assert.equal(raw.others.length, 0);
      assert.equal(path.discarded() - before, 3 * reflectors.length);
      await raw.send(...[1, 2, 3].map((number) => datagram(number, 40_000)));
      assert.equal(raw.others.length, 3);
    });
  }

  for (const family of families) {
    await t.test(`IPv${family}: fragments arrive as a whole datagram or not at all`, async () => {
      using raw = new RawClient(path);
      const datagram = (number: number, sourcePort: number) =>
        buildFragments(
          {
            family,
            source: strangersAddress(family, number),
            destination: serverAddress(family),
            id: 700 + number,
            sourceHardware: hardwareAddress.attacker,
            destinationHardware: hardwareAddress.routerOutside,
            transport: { kind: 'udp', sourcePort, destinationPort: 40_000 },
            totalLength: 2000,
          },
          [800, 800],
        );
      const before = path.discarded();
      const [, ...withoutFirst] = datagram(1, 40_000);
      const stray = frameOf({
        family,
        source: strangersAddress(family, 3),
        destination: serverAddress(family),
        fragment: { offset: 1480, more: true },
        transport: { kind: 'udp', sourcePort: 53, destinationPort: 40_000 },
        totalLength: 1000,
      });
      await raw.send(...withoutFirst, stray, ...datagram(2, 53));
      assert.equal(raw.others.length, 0, 'a part of what had no beginning, or of an unasked answer, arrived');
      assert.equal(path.discarded() - before, 1, 'the answer counts once, whole');
      await raw.send(...datagram(4, 40_000));
      assert.ok(raw.others.length >= 2, 'what does not come from a reflector arrives, in fragments of the router');
    });
  }
});
