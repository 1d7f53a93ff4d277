/** An authority of the tests' own and certificates of servers by it, made by OpenSSL's command. Test code only. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface Authority {
  /** PEM. */
  readonly cert: string;
  /** Of a server with this DNS name. `days` below zero: it is over already. */
  issue(name: string, days?: number): Promise<Certificate>;
}

const run = promisify(execFile);
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

export async function withAuthority<T>(work: (authority: Authority) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), `levee-tls-${process.pid}-`));
  const at = (name: string) => join(directory, name);
  const openssl = (...args: string[]) => run('openssl', args);
  try {
    await openssl(
      'req',
      '-x509',
      ...newKey,
      '-keyout',
      at('ca.key'),
      '-out',
      at('ca.pem'),
      '-subj',
      '/CN=test authority',
    );
    return await work({
      cert: await readFile(at('ca.pem'), 'utf8'),
      async issue(name, days = 30) {
        await writeFile(at('names'), `subjectAltName=DNS:${name}\n`);
        await openssl('req', ...newKey, '-keyout', at('key'), '-out', at('request'), '-subj', `/CN=${name}`);
        const by = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial', '-extfile', at('names')];
        await openssl('x509', '-req', '-in', at('request'), ...by, '-days', String(days), '-out', at('cert'));
        return { cert: await readFile(at('cert'), 'utf8'), key: await readFile(at('key'), 'utf8') };
      },
    });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
