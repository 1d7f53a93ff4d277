/** Guarantees of filter kind 4 with ping (Debian's iputils) at the client, errors of the router's own, and forged messages. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Family } from '@levee/core/net/prefix.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { client, FilteredPath, families, server } from './filtered-path.ts';
import { frameOf, RawClient, serverAddress, strangersAddress } from './raw-client.ts';

const skip = labObstacle() ?? false;
const kindId = 4;
const echo = { 4: 8, 6: 128 } as const;
const tooBig = { 4: { type: 3, code: 4 }, 6: { type: 2, code: 0 } } as const;

/** The beginning of a packet that `source` has sent. */
function quoteOf(family: Family, source: bigint): Uint8Array {
  const transport = { kind: 'tcp', sourcePort: 443, destinationPort: 40_000, flags: 0x10 } as const;
  const spec = { family, source, destination: strangersAddress(family, 1), transport, id: 7 };
  const hardware = { sourceHardware: '02:00:00:00:00:01', destinationHardware: '02:00:00:00:00:02' };
  return buildFrame({ ...spec, ...hardware }).subarray(14);
}

test('ping works, floods are held, and errors are of use to the destination alone', { skip }, async (t) => {
  await using path = new FilteredPath('icmp');
  for (const family of families) {
    const message = (number: number, icmp: { type: number; code: number }, payload: Uint8Array = new Uint8Array(8)) =>
      frameOf({
        family,
        source: strangersAddress(family, number),
        destination: serverAddress(family),
        transport: { kind: 'icmp', ...icmp },
        payload,
        totalLength: (family === 4 ? 28 : 48) + payload.length,
      });

    await t.test(`IPv${family}: ping gets its answers, while another source sends more than its share`, async () => {
      path.filter(kindId);
      using raw = new RawClient(path);
      await raw.send(...Array.from({ length: 300 }, () => message(1, { type: echo[family], code: 0 })));
      const arrived = raw.others.length;
      assert.ok(arrived >= 50 && arrived <= 80, `${arrived} of 300 at once`);
      assert.equal(path.discarded(), 300 - arrived);
      const { output } = await path.run(path.client, 'ping', ['-c', '5', '-i', '0.01', '-W', '5', server[family]]);
      assert.match(output, /5 received, 0% packet loss/);
    });

    await t.test(`IPv${family}: the destination's own pings are answered`, async () => {
      const args = ['-c', '3', '-i', '0.01', '-W', '5', '-I', server[family], client[family]];
      assert.match((await path.run(path.server, 'ping', args)).output, /3 received, 0% packet loss/);
    });

    await t.test(`IPv${family}: from many sources together 1000 get through at once`, async () => {
      path.unfilter();
      path.filter(kindId);
      using raw = new RawClient(path);
      for (let round = 0; round < 10; round++) {
        const frames = Array.from({ length: 200 }, (_, index) =>
          message(1000 + round * 200 + index, { type: echo[family], code: 0 }),
        );
        await raw.send(...frames);
      }
      // A second's worth, and what has come to it in the meantime.
      assert.ok(raw.others.length >= 1000 && raw.others.length < 1800, `${raw.others.length} of 2000`);
      assert.equal(path.discarded(), 2000 - raw.others.length);
    });

    await t.test(`IPv${family}: errors about the destination's packets arrive, others do not`, async () => {
      using raw = new RawClient(path);
      const before = path.discarded();
      const own = quoteOf(family, serverAddress(family));
      const foreign = quoteOf(family, strangersAddress(family, 5));
      await raw.send(message(2, tooBig[family], own), message(3, tooBig[family], foreign), message(4, tooBig[family]));
      assert.equal(raw.others.length, 1);
      assert.equal(path.discarded() - before, 2);
    });

    await t.test(`IPv${family}: what hosts need not hear is discarded`, async () => {
      using raw = new RawClient(path);
      const types = family === 4 ? [4, 5, 9, 10, 13, 15, 17, 42] : [130, 133, 134, 135, 136, 137, 139, 160];
      await raw.send(
        ...types.map((type, index) => message(10 + index, { type, code: 0 }, quoteOf(family, serverAddress(family)))),
      );
      assert.equal(raw.others.length, 0);
    });
  }
});
