import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { connect, createServer, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { enterOwnNamespace, nft } from '../../testing/own-namespace.ts';
import { until } from '../../testing/until.ts';
import { forgetWindows } from './forget-windows.ts';

const skip = enterOwnNamespace() ?? false;
const addresses = { 4: '127.0.0.9', 6: '::9' } as const;
/** More than any window. */
const untrackedOctets = 24 << 20;

const open: { close(): void }[] = [];
before(() => {
  if (!skip) execFileSync('ip', ['address', 'add', '::9/128', 'dev', 'lo', 'nodad']);
});
after(() => {
  for (const each of open) each.close();
});

/** Conntrack sees the server's connections, or none; packets of them that are invalid are counted. */
function track(sees: boolean): void {
  nft(`add table inet t
    delete table inet t
    table inet t {
      chain before { type filter hook output priority -450; ${sees ? '' : 'tcp dport 4000 notrack; tcp sport 4000 notrack;'} }
      chain after { type filter hook output priority 0; tcp dport 4000 ct state invalid counter; ct state new; }
    }
  `);
}

function invalidPackets(): number {
  return Number(/counter packets (\d+)/.exec(nft('list chain inet t after'))?.[1]);
}

for (const family of [4, 6] as const) {
  const address = addresses[family];
  test(`IPv${family}: a connection that went on out of sight is a known one again, and only that of the prefixes`, {
    skip,
  }, async () => {
    track(true);
    let received = 0;
    const server = createServer((socket) =>
      socket
        .on('data', (data) => {
          received += data.length;
        })
        .on('error', () => {}),
    );
    await new Promise<void>((done) => server.listen(4000, address, done));
    const socket: Socket = connect({ host: address, port: 4000 });
    open.push({ close: () => server.close() }, { close: () => socket.destroy() });
    let sent = 0;
    const send = async (octets: number): Promise<void> => {
      socket.write(Buffer.alloc(octets));
      sent += octets;
      await until('all octets have arrived', () => received === sent);
    };
    await send(1000);
    assert.equal(invalidPackets(), 0);
    track(false);
    await send(untrackedOctets);
    track(true);
    await send(1000);
    assert.ok(invalidPackets() > 0);
    const other = prefixFromTrusted(family === 4 ? '127.0.0.10' : '::10');
    assert.equal(await forgetWindows([other]), 0);
    assert.equal(await forgetWindows([prefixFromTrusted(family === 4 ? '127.0.0.8/30' : '::8/125'), other]), 1);
    track(true);
    await send(1000);
    assert.equal(invalidPackets(), 0);
    socket.destroy();
  });
}
