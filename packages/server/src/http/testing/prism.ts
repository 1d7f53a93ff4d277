/**
 * A validating proxy (Stoplight's prism) in front of a served interface: a foreign reading of the OpenAPI document. What
 * breaks the document is answered by the proxy itself, as a problem (RFC 9457). Owns its process. Test code only.
 */
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { waitUntil } from '../../store/testing/wait-until.ts';

export interface ValidatingProxy {
  readonly url: string;
  stop(): Promise<void>;
}

const program = createRequire(import.meta.url).resolve('@stoplight/prism-cli/dist/index.js');

/** `upstream` ends in the base path. `requests`: whether these are held to the document too, or answers only. */
export async function startProxy(file: string, upstream: string, requests: boolean): Promise<ValidatingProxy> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const args = ['proxy', file, upstream, '--errors', '--port', String(port), '--validate-request', String(requests)];
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const ended = new Promise((resolve) => child.once('close', resolve));
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  const stop = async () => {
    kill();
    await ended;
    process.off('exit', kill);
  };
  try {
    await waitUntil(
      () => {
        if (child.exitCode !== null) throw new Error(`prism ended with ${child.exitCode}: ${said}`);
        return said.includes('Prism is listening');
      },
      'prism to listen',
      60_000,
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, stop };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
