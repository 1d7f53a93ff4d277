/** Guarantees of filter kind 20 with wireguard-go and wg(8) of Debian at both ends of the router. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { labObstacle, type Namespace } from '@levee/lab/namespace.ts';
import { FilteredPath, families, server, until } from './filtered-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 51_820;
const kindId = 20;

interface Peer {
  readonly device: string;
  readonly publicKey: string;
}

/**
 * WireGuard devices with the default MTU of 1420, and their keys. Their names are the machine's, not a namespace's: by them
 * wireguard-go names its sockets.
 */
class Peers {
  readonly #directory = mkdtempSync(join(tmpdir(), 'levee-wireguard-'));
  readonly #devices: string[] = [];

  async start(path: FilteredPath, namespace: Namespace, inner: string): Promise<Peer> {
    const device = `lvwg${process.pid}${'ab'[this.#devices.length]}`;
    this.#devices.push(device);
    const program = path.start(namespace, 'wireguard-go', ['-f', device]);
    await until(`wireguard-go to make ${device}`, () => {
      if (program.child.exitCode !== null) throw new Error(`wireguard-go ended: ${program.output}`);
      try {
        return namespace.run('wg', ['show', device]);
      } catch {
        return undefined;
      }
    });
    const privateKey = execFileSync('wg', ['genkey'], { encoding: 'utf8' });
    const file = join(this.#directory, device);
    writeFileSync(file, privateKey, { mode: 0o600 });
    namespace.run('wg', ['set', device, 'private-key', file]);
    namespace.ip([`addr add ${inner} dev ${device}`, `link set ${device} up`]);
    return { device, publicKey: execFileSync('wg', ['pubkey'], { input: privateKey, encoding: 'utf8' }).trim() };
  }

  [Symbol.dispose](): void {
    for (const device of this.#devices) rmSync(`/var/run/wireguard/${device}.sock`, { force: true });
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

test('a WireGuard tunnel carries packets of every size through the filter, junk beside it is discarded', {
  skip: labObstacle() ?? false,
}, async () => {
  using peers = new Peers();
  await using path = new FilteredPath('wireguard');
  using strangers = new Strangers(path);
  path.filter(kindId);
  const there = await peers.start(path, path.server, '10.9.0.1/24');
  const here = await peers.start(path, path.client, '10.9.0.2/24');
  path.server.run('wg', ['set', there.device, 'listen-port', `${port}`]);
  path.server.run('wg', ['set', there.device, 'peer', here.publicKey, 'allowed-ips', '10.9.0.2/32']);

  for (const family of families) {
    const endpoint = family === 4 ? `${server[4]}:${port}` : `[${server[6]}]:${port}`;
    const peerArgs = ['peer', there.publicKey, 'allowed-ips', '10.9.0.0/24', 'endpoint', endpoint];
    path.client.run('wg', ['set', here.device, ...peerArgs]);
    const before = path.discarded();
    // 1392 octets and two headers are the MTU; the least is padded to 16.
    for (const octets of [0, 1, 15, 16, 500, 1391, 1392]) {
      path.client.run('ping', ['-c', '1', '-W', '3', '-M', 'do', '-s', `${octets}`, '10.9.0.1']);
    }
    assert.equal(path.discarded(), before, `no packet of the tunnel over IPv${family} was discarded`);
    const shown = path.client.run('wg', ['show', here.device, 'latest-handshakes']);
    assert.match(shown, /\t[1-9]\d+\n$/, 'the handshake came about');
    path.client.run('wg', ['set', here.device, 'peer', there.publicKey, 'remove']);
  }

  const before = path.discarded();
  const unwanted = [
    ...junk(200, 148),
    ...junk(200, 148, '04000000'),
    ...junk(50, 149, '01000000'),
    ...junk(50, 31, '04000000'),
  ];
  assert.equal(await strangers.send(port, unwanted), 0);
  assert.equal(path.discarded() - before, unwanted.length);
  assert.equal(await strangers.send(port, junk(10, 148, '01000000')), 10, 'of the form of an initiation');
});
