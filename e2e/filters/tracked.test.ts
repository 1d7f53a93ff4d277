/** Guarantee: what filters let through of a flood leaves nothing in conntrack that no filter asks about. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterKinds } from '@levee/core/filter/catalogue.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { device } from '@levee/lab/router-path.ts';
import { FilteredPath, families, server, until } from './filtered-path.ts';
import { frameOf, RawClient, serverAddress, strangersAddress } from './raw-client.ts';

const skip = labObstacle() ?? false;
const sources = 150;
const port = 64_738;

/** Mumble's ping, sent back. */
const answering = `const { createSocket } = require('node:dgram');
  let left = ${Object.keys(server).length};
  for (const address of ${JSON.stringify(Object.values(server))}) {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
    socket.on('message', (message, from) => socket.send(message, from.port, from.address));
    socket.bind(${port}, address, () => { left -= 1; if (left === 0) console.log('ready'); });
  }`;
const ping = Buffer.from('000000000123456789abcdef', 'hex');

test('datagrams that filters let through, and their answers, fill no conntrack', { skip }, async (t) => {
  await using path = new FilteredPath('tracked');
  const echo = path.start(path.server, process.execPath, ['-e', answering]);
  await until('the server to listen', () => echo.output.includes('ready'));
  using raw = new RawClient(path);
  const kinds = filterKinds.filter(({ enforcement }) => enforcement.tracking !== 'nothing');
  /** From sources that share no limit, each kind's from ports of its own: none belongs to a flow of before. */
  const framesFor = (kindId: number) =>
    families.flatMap((family) =>
      Array.from({ length: sources }, (_, index) =>
        frameOf({
          family,
          source: strangersAddress(family, index),
          destination: serverAddress(family),
          transport: { kind: 'udp', sourcePort: 20_000 + kindId, destinationPort: port },
          payload: ping,
          totalLength: (family === 4 ? 28 : 48) + ping.length,
        }),
      ),
    );
  const answered = () => path.client.deviceCounters(device.attacker).receivedPackets;
  for (const { id, name } of kinds) {
    await t.test(name, async () => {
      path.filter(id);
      const frames = framesFor(id);
      const before = { answered: answered(), tracked: path.tracked() };
      await raw.send(...frames);
      await until('the answers', () => answered() >= before.answered + frames.length);
      const more = path.tracked() - before.tracked;
      assert.ok(more < 10, `${more} flows are tracked`);
    });
  }
});
