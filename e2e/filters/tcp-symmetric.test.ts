/** Guarantees of filter kind 2 with nginx and curl at both ends of the router, and with segments of no connection. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { downloading, origin, showBrowsing } from './behind-proxy.ts';
import { client, FilteredPath, families, server } from './filtered-path.ts';
import { Nginx } from './nginx.ts';
import { RawClient, segmentFrame, strangersAddress } from './raw-client.ts';

const skip = labObstacle() ?? false;
const kindId = 2;
const [syn, synAck] = [0x02, 0x12];

test('connections work as without the filter, and stray segments are discarded', { skip }, async (t) => {
  await using path = new FilteredPath('symmetric');
  using nginx = await Nginx.start(path);
  path.filter(kindId);
  for (const family of families) {
    await t.test(`IPv${family}: curl fetches and puts`, () => showBrowsing(path, nginx, family));

    await t.test(`IPv${family}: of strangers' segments, SYNs alone get through`, async () => {
      using raw = new RawClient(path);
      const before = path.discarded();
      const flags = [0x10, 0x18, synAck, 0x04, 0x14, 0x11, 0x00, 0x01, 0x03, 0x06, 0x29, 0x3f];
      const from = (number: number) => ({ family, source: strangersAddress(family, number), sourcePort: 5000 });
      await raw.send(
        ...flags.map((each, index) => segmentFrame({ ...from(index), destinationPort: 80, flags: each })),
        segmentFrame({ ...from(100), destinationPort: 80, flags: syn }),
      );
      assert.deepEqual(
        raw.arrivals.map((seen) => [seen.source, seen.flags]),
        [[strangersAddress(family, 100), syn]],
      );
      assert.equal(path.discarded() - before, flags.length);
    });

    await t.test(`IPv${family}: the server's own connections work`, async () => {
      const listening = `import { createServer } from 'node:net';
        createServer((socket) => socket.end('hello')).listen(7777, '${client[family]}', () => console.log('ready'));`;
      const program = path.start(path.client, process.execPath, ['--input-type=module', '-e', listening]);
      while (!program.output.includes('ready')) await new Promise((done) => program.child.stdout?.once('data', done));
      const host = family === 4 ? client[4] : `[${client[6]}]`;
      const args = ['-sS', '--http0.9', '-m', '5', '--interface', server[family], `http://${host}:7777/`];
      assert.equal((await path.run(path.server, 'curl', args)).output, 'hello');
      program.child.kill();
    });
  }
});

test('a connection that ran before goes on', { skip }, async () => {
  await using path = new FilteredPath('symmsettling');
  using nginx = await Nginx.start(path);
  nginx.offer('slow', Buffer.alloc(6_000_000, 'slow'));
  path.slow(24);
  const running = path.run(path.client, 'curl', [...downloading, `${origin(4)}/slow`]);
  await path.packetsToServer(20);
  path.filter(kindId, {}, { settling: true });
  await path.packetsToServer(20);
  path.settle();
  await path.packetsToServer(20);
  assert.deepEqual(await running, { code: 0, output: '6000000' });
});
