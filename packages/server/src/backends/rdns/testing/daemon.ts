/** Programs that tests start in the foreground, in a folder of their own on loopback; ended with the test. Test code only. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Daemon {
  /** Its end is waited for. */
  kill(): Promise<void>;
  /** What it wrote, for whoever looks into a failure. */
  readonly output: () => string;
}

export function makeFolder(name: string): { readonly path: string; readonly remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), `levee-${name}-${process.pid}-`));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

const daemons = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of daemons) child.kill('SIGKILL');
});

export function startDaemon(command: string, args: readonly string[]): Daemon {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  daemons.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-20_000);
    });
  }
  child.on('error', (error) => {
    output += error.message;
  });
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
    child.once('error', () => resolve());
  });
  return {
    output: () => output,
    async kill() {
      child.kill('SIGKILL');
      await ended;
      daemons.delete(child);
    },
  };
}

/** Free for TCP a moment ago; the programs under test cannot be told to take any. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
