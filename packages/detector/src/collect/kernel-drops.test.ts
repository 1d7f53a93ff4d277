import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { closeSync } from 'node:fs';
import test from 'node:test';
import { BatchSockets } from './batch-sockets.ts';
import { parseUdpTable, readKernelDrops } from './kernel-drops.ts';
import type { TakeDatagram } from './receive-port.ts';

test('reads inode, port and drops of both tables, and leaves out what is no line of them', () => {
  const table = [
    '   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops',
    '  469: 0100007F:18C7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1234 2 00000000 17',
    ' 1024: 00000000000000000000000001000000:0807 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 99 2 0 5',
    'nonsense',
    '',
  ].join('\n');
  assert.deepEqual(
    [...parseUdpTable(table)],
    [
      [1234, { port: 6343, drops: 17 }],
      [99, { port: 2055, drops: 5 }],
    ],
  );
});

for (const host of ['127.0.0.1', '::1']) {
  test(`what a full buffer of ${host} did not take is told, and all else is received`, async () => {
    const sockets = new BatchSockets(256 * 1024);
    const sender = createSocket(host === '::1' ? 'udp6' : 'udp4');
    try {
      assert.equal(sockets.listen({ host, port: 0 }), undefined);
      const [socket] = sockets.open;
      assert.ok(socket !== undefined && socket.address.port > 0 && socket.receiveBufferOctets > 0);
      const inodes = [socket.inode];
      assert.equal(readKernelDrops(inodes), 0);
      const sent = 1_000;
      const payload = Buffer.alloc(1400, 7);
      for (let i = 0; i < sent; i++) {
        await new Promise((resolve) => sender.send(payload, socket.address.port, host, resolve));
      }
      const drops = readKernelDrops(inodes);
      assert.ok(drops > 0, 'a buffer of 256 KB does not hold 1.4 MB');
      let received = 0;
      for (let count = 1; count > 0; ) {
        const nowMs = Date.now();
        const take: TakeDatagram = (octets, length, family, a, _b, _c, d) => {
          assert.deepEqual([octets[length - 1], length, family], [7, 1400, host === '::1' ? 6 : 4]);
          assert.equal(family === 4 ? a : d, family === 4 ? 0x7f000001 : 1);
        };
        count = sockets.receive(take, Number.POSITIVE_INFINITY, nowMs);
        received += count;
      }
      assert.equal(received + drops, sent);
      assert.equal(readKernelDrops([]), 0);
    } finally {
      sender.close();
      for (const { descriptor } of sockets.open) closeSync(descriptor);
    }
  });
}
