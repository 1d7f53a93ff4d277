/**
 * Guarantees of filter kind 24 with OpenSSL at both ends of the router: DTLS 1.0 and 1.2. No program of Debian 12 speaks
 * DTLS 1.3 or connection ids: those are held to the kind's vectors alone.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath, families, server, until } from './filtered-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 4433;
const kindId = 24;
const filterFields = { port: { dst: { start: port } } };

class Certificate {
  readonly #directory = mkdtempSync(join(tmpdir(), 'levee-dtls-'));
  readonly options = ['-key', join(this.#directory, 'key'), '-cert', join(this.#directory, 'crt')];

  constructor() {
    const key = ['-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=dtls'];
    const files = ['-keyout', join(this.#directory, 'key'), '-out', join(this.#directory, 'crt')];
    execFileSync('openssl', ['req', '-x509', ...key, ...files], { stdio: 'pipe' });
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

test('sessions of OpenSSL come about and carry data; records of strangers are discarded', {
  skip: labObstacle() ?? false,
}, async () => {
  using certificate = new Certificate();
  await using path = new FilteredPath('dtls');
  using strangers = new Strangers(path);
  path.filter(kindId, filterFields);
  // DTLS 1.0 needs digests that OpenSSL 3 allows at the lowest level of security alone.
  const ciphers = ['-cipher', 'DEFAULT@SECLEVEL=0'];
  const unwanted = [
    ...junk(100, 61, '17fefd00010000000000010030'),
    ...junk(50, 61, '16fefd00010000000000010030'),
    ...junk(50, 61, '2e'),
    ...junk(50, 100),
  ];
  for (const family of families) {
    const address = family === 4 ? `${server[4]}:${port}` : `[${server[6]}]:${port}`;
    for (const version of ['-dtls1_2', '-dtls1']) {
      // Serves one session, of whoever answers from its address (`-listen`).
      const serving = path.start(path.server, 'openssl', [
        ...['s_server', version, '-listen', '-accept', address, ...ciphers, ...certificate.options],
      ]);
      await until('openssl to listen', () => {
        if (serving.child.exitCode !== null) throw new Error(`s_server ended: ${serving.output}`);
        return path.server.run('ss', ['-Hlun', 'sport', '=', `:${port}`]).includes(server[family]);
      });
      const before = path.discarded();
      const client = path.start(path.client, 'openssl', ['s_client', version, '-connect', address, ...ciphers]);
      await until('the session', () => serving.output.includes('CIPHER is'));
      const sent = strangers.send(port, unwanted);
      client.child.stdin?.write(`there ${version}\n`);
      await until('what the client says', () => serving.output.includes(`there ${version}\n`));
      serving.child.stdin?.write(`and back ${version}\n`);
      await until('what the server says', () => client.output.includes(`and back ${version}\n`));
      assert.equal(await sent, 0);
      assert.equal(path.discarded() - before, unwanted.length, 'of the session nothing');
      const ended = Promise.all([once(serving.child, 'close'), once(client.child, 'close')]);
      client.child.kill('SIGTERM');
      serving.child.kill('SIGTERM');
      await ended;
    }
  }
  const hello = `16fefd0000000000000000003601000030${'0000000000000030'}fefd`;
  assert.equal(await strangers.send(port, junk(10, 67, hello)), 10, 'of the form of a first flight');
});
