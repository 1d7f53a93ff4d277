/**
 * Real QUIC and HTTP/3 programs, gtlsserver and gtlsclient (ngtcp2, Debian), at the server's port 443: files to fetch. Owns
 * its directory, with a certificate that the client does not ask about.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Family } from '@levee/core/net/prefix.ts';
import { type FilteredPath, families, server, until } from './filtered-path.ts';

export class Ngtcp2 {
  readonly #path: FilteredPath;
  readonly #directory = mkdtempSync(join(tmpdir(), 'levee-quic-'));
  #downloads = 0;

  private constructor(path: FilteredPath) {
    this.#path = path;
  }

  static async start(path: FilteredPath): Promise<Ngtcp2> {
    const quic = new Ngtcp2(path);
    const [key, certificate] = [quic.#file('key.pem'), quic.#file('certificate.pem')];
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=quic', '-days', '2'];
    execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', certificate], { stdio: 'pipe' });
    mkdirSync(quic.#file('files'));
    for (const family of families) {
      const program = path.start(path.server, 'gtlsserver', [
        '-q',
        ...['-d', quic.#file('files'), server[family], '443', key, certificate],
      ]);
      await until('gtlsserver to listen', () => {
        if (program.child.exitCode !== null) throw new Error(`gtlsserver ended: ${program.output}`);
        return path.server.run('ss', ['-Hlun', 'sport', '=', ':443']).includes(server[family]);
      });
    }
    return quic;
  }

  offer(name: string, content: Uint8Array): void {
    writeFileSync(join(this.#file('files'), name), content);
  }

  /** What arrived; undefined when nothing has within `seconds`. */
  async fetch(
    family: Family,
    name: string,
    options: readonly string[] = [],
    seconds = 10,
  ): Promise<Uint8Array | undefined> {
    this.#downloads += 1;
    const directory = this.#file(`download-${this.#downloads}`);
    mkdirSync(directory);
    const host = server[family];
    const uri = `https://${family === 4 ? host : `[${host}]`}/${name}`;
    const own = ['-q', '--exit-on-all-streams-close', `--download=${directory}`, ...options];
    const args = [String(seconds), 'gtlsclient', ...own, host, '443', uri];
    await this.#path.run(this.#path.client, 'timeout', args);
    const [file] = readdirSync(directory);
    return file === name ? readFileSync(join(directory, name)) : undefined;
  }

  /** For what the client keeps from one run to the next: a session to begin the next one with data at once. */
  sessionOptions(): string[] {
    return [`--session-file=${this.#file('session')}`, `--tp-file=${this.#file('parameters')}`];
  }

  #file(name: string): string {
    return join(this.#directory, name);
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
