/** Guarantees of filter kind 21 with Debian's OpenVPN at both ends of the router. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath, server, until } from './filtered-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 1194;
const kindId = 21;

/** What the control channel is wrapped in. */
const wrappings = ['nothing', 'tls-auth', 'tls-crypt', 'tls-crypt-v2'] as const;
type Wrapping = (typeof wrappings)[number];

/** An authority and a certificate for each side, made for this test. */
class Certificates {
  readonly #directory = mkdtempSync(join(tmpdir(), 'levee-openvpn-'));

  constructor() {
    const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe', cwd: this.#directory });
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    openssl('req', '-x509', ...key, '-subj', '/CN=authority', '-keyout', 'ca.key', '-out', 'ca.crt');
    for (const name of ['server', 'client']) {
      const usage = `extendedKeyUsage=${name}Auth`;
      const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-addext', usage, '-addext', 'keyUsage=digitalSignature'];
      openssl(
        'req',
        '-x509',
        ...key,
        '-subj',
        `/CN=${name}`,
        ...signed,
        '-keyout',
        `${name}.key`,
        '-out',
        `${name}.crt`,
      );
    }
    const file = (name: string) => join(this.#directory, name);
    execFileSync('openvpn', ['--genkey', 'tls-crypt', file('shared.key')]);
    execFileSync('openvpn', ['--genkey', 'tls-crypt-v2-server', file('server.v2')]);
    execFileSync('openvpn', [
      '--tls-crypt-v2',
      file('server.v2'),
      '--genkey',
      'tls-crypt-v2-client',
      file('client.v2'),
    ]);
  }

  options(side: 'server' | 'client', wrapping: Wrapping): string[] {
    const file = (name: string) => join(this.#directory, name);
    const own = ['--ca', file('ca.crt'), '--cert', file(`${side}.crt`), '--key', file(`${side}.key`)];
    switch (wrapping) {
      case 'nothing':
        return own;
      case 'tls-auth':
        return [...own, '--tls-auth', file('shared.key'), side === 'server' ? '0' : '1'];
      case 'tls-crypt':
        return [...own, '--tls-crypt', file('shared.key')];
      case 'tls-crypt-v2':
        return [...own, '--tls-crypt-v2', file(`${side}.v2`)];
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** P_DATA_V2 of peer 0, its first packet. */
const data = '4800000000000001';

for (const wrapping of wrappings) {
  test(`OpenVPN with ${wrapping} around its control channel connects, carries packets and reconnects through the filter`, {
    skip: labObstacle() ?? false,
  }, async () => {
    using certificates = new Certificates();
    await using path = new FilteredPath('openvpn');
    using strangers = new Strangers(path);
    path.filter(kindId);
    const serving = path.start(path.server, 'openvpn', [
      ...['--dev', 'tun', '--server', '10.8.0.0', '255.255.255.0', '--topology', 'subnet', '--dh', 'none'],
      ...['--proto', 'udp4', '--local', server[4], '--lport', `${port}`, ...certificates.options('server', wrapping)],
    ]);
    await until('the server to serve', () => /Initialization Sequence Completed/.test(serving.output));

    const before = path.discarded();
    const early = [...junk(100, 60, data), ...junk(100, 60, '20'), ...junk(50, 14, '38'), ...junk(50, 53, '50')];
    assert.equal(await strangers.send(port, early), 0, 'nothing but a reset opens anything');
    const started = path.discarded();
    assert.equal(started - before, early.length);

    const connect = async () => {
      const program = path.start(path.client, 'openvpn', [
        ...['--dev', 'tun', '--client', '--nobind', '--remote-cert-tls', 'server', '--auth-nocache'],
        ...['--proto', 'udp4', '--remote', server[4], `${port}`, ...certificates.options('client', wrapping)],
      ]);
      await until('the client to connect', () => {
        if (program.child.exitCode !== null) throw new Error(`openvpn ended: ${program.output}`);
        return /Initialization Sequence Completed/.test(program.output);
      });
      return program;
    };
    const first = await connect();
    path.client.run('ping', ['-c', '2', '-i', '0.01', '-W', '3', '-s', '1300', '10.8.0.1']);
    path.server.run('ping', ['-c', '2', '-i', '0.01', '-W', '3', '10.8.0.2']);
    const ended = once(first.child, 'close');
    first.child.kill('SIGTERM');
    await ended;
    const second = await connect();
    path.client.run('ping', ['-c', '1', '-W', '3', '10.8.0.1']);
    assert.equal(path.discarded(), started, `no packet of a session was discarded:\n${second.output}`);
    assert.equal(await strangers.send(port, junk(50, 60, data)), 0, 'what one source has opened is its own');

    path.filter(kindId, {}, { settling: true });
    path.client.run('ping', ['-c', '1', '-W', '3', '10.8.0.1']);
    path.settle();
    path.client.run('ping', ['-c', '1', '-W', '3', '10.8.0.1']);
    assert.equal(path.discarded(), 0, 'a filter that comes later learns the session while it settles');
  });
}
