/** Guarantees of filter kind 29 with nginx and curl, ngtcp2's programs, and a client that opens too much. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { assertSurvived, floodWithSyns, origin, showHandshake, showStrangersDiscarded } from './behind-proxy.ts';
import { client, FilteredPath } from './filtered-path.ts';
import { Nginx } from './nginx.ts';
import { Ngtcp2 } from './ngtcp2.ts';
import { RawClient, segmentFrame } from './raw-client.ts';
import { junk, Strangers } from './strangers.ts';

const skip = labObstacle() ?? false;
const kindId = 29;
/** Of the kind's meter `connections`. */
const [burst, perSecond] = [1000, 200];

/** Opens connections from one address as fast as it can, asks on each, and tells how many were answered and reset. */
const greedy = (address: string, host: string, count: number) => `
  import { connect } from 'node:net';
  const found = { answered: 0, reset: 0, other: 0 };
  let open = ${count};
  for (let number = 0; number < ${count}; number += 1) {
    const socket = connect({ host: '${host}', port: 80, localAddress: '${address}' });
    let over = false;
    const end = (what) => {
      if (over) return;
      over = true;
      found[what] += 1;
      socket.destroy();
      open -= 1;
      if (open === 0) console.log(JSON.stringify(found));
    };
    socket.on('connect', () => socket.write('HEAD /small HTTP/1.1\\r\\nHost: web\\r\\n\\r\\n'));
    socket.on('data', () => end('answered'));
    socket.on('error', (error) => end(error.code === 'ECONNRESET' ? 'reset' : 'other'));
    socket.on('close', () => end('other'));
    socket.setTimeout(20_000, () => end('other'));
    if (number % 50 === 49) await new Promise((done) => setImmediate(done));
  }
`;

test('a web server is protected on TCP and on QUIC', { skip }, async (t) => {
  await using path = new FilteredPath('web');
  using nginx = await Nginx.start(path);
  using quic = await Ngtcp2.start(path);
  nginx.offer('small', Buffer.from('small\n'));
  quic.offer('small', Buffer.from('small\n'));
  path.filter(kindId);

  await t.test('handshakes are completed by the router', () => showHandshake(path, 4));
  await t.test('what belongs to no connection is discarded', () => showStrangersDiscarded(path, 6));

  await t.test('files are fetched by QUIC, and what is not QUIC is discarded', async () => {
    for (const family of [4, 6] as const) assert.deepEqual(await quic.fetch(family, 'small'), Buffer.from('small\n'));
    using strangers = new Strangers(path);
    assert.equal(await strangers.send(443, junk(200, 60, '4d')), 0);
  });

  await t.test('it goes on answering in a flood of SYNs', async (each) => {
    const flooded = await floodWithSyns(path, nginx, 4, { seconds: 1.5 });
    each.diagnostic(JSON.stringify(flooded));
    assertSurvived(flooded);
  });

  const neighbour = '192.0.2.130';
  const ask = async (from: string) => {
    const args = ['-sS', '-m', '5', '--interface', from, `${origin(4)}/small`];
    return (await path.run(path.client, 'curl', args)).output;
  };

  await t.test('SYNs and ACKs that bear the address of a client do not count against it', async () => {
    using raw = new RawClient(path);
    const source = 0xc0000202n;
    for (let round = 0; round < 6; round++) {
      const frames = Array.from({ length: 200 }, (_, index) => {
        const ports = { sourcePort: 10_000 + round * 200 + index, destinationPort: 80 };
        const flags = index % 2 === 0 ? 0x02 : 0x10;
        return segmentFrame({ family: 4, source, ...ports, flags, sequence: index, acknowledgement: 77 });
      });
      await raw.send(...frames);
    }
    assert.equal(await ask(client[4]), 'small\n');
  });

  await t.test('a source that opens too many connections is refused with a reset, others are not', async () => {
    path.client.ip([`addr add ${neighbour}/32 dev lo`]);
    const count = burst + 500;
    const begun = performance.now();
    const program = ['--input-type=module', '-e', greedy(client[4], '203.0.113.7', count)];
    const { output } = await path.run(path.client, process.execPath, program);
    const seconds = (performance.now() - begun) / 1000;
    const found = JSON.parse(output);
    assert.equal(found.other, 0, output);
    assert.ok(found.reset > 0 && found.answered >= burst - 50, output);
    assert.ok(found.answered <= burst + perSecond * seconds, `${output} in ${seconds} s`);
    assert.match(await ask(client[4]), /reset|Couldn't connect/i);
    assert.equal(await ask(neighbour), 'small\n');
  });
});
