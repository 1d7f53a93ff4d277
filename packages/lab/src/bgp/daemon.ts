/**
 * Routing daemons that an experiment starts in the foreground, each in a folder of its own: their ends, their output, free
 * addresses and ports. Never touches a process that it did not start.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface DaemonProcess {
  readonly pid: number | undefined;
  readonly running: boolean;
  /** Its exit status when it has ended; null: by a signal, or it never began. */
  readonly ended: Promise<number | null>;
  /** What it wrote of late, for whoever looks into a failure. */
  output(): string;
  /** Its end is waited for. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

const living = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});

/** `namespace`: of `ip netns`; absent: this process's own. */
export function startProcess(command: string, args: readonly string[], namespace?: string): DaemonProcess {
  const [file, all] =
    namespace === undefined ? [command, [...args]] : ['ip', ['netns', 'exec', namespace, command, ...args]];
  const child = spawn(file, all, { stdio: ['ignore', 'pipe', 'pipe'] });
  living.add(child);
  let output = '';
  let running = true;
  const note = (chunk: Buffer | string) => {
    output = (output + chunk.toString()).slice(-20_000);
  };
  child.stdout.on('data', note);
  child.stderr.on('data', note);
  const ended = new Promise<number | null>((resolve) => {
    const end = () => {
      running = false;
      living.delete(child);
      resolve(child.exitCode);
    };
    child.once('close', end);
    child.once('error', (error) => {
      note(error.message);
      end();
    });
  });
  return {
    pid: child.pid,
    get running() {
      return running;
    },
    ended,
    output: () => output,
    async kill(signal = 'SIGKILL') {
      child.kill(signal);
      await ended;
    },
  };
}

export interface Folder {
  readonly path: string;
  readonly remove: () => void;
}

export function makeFolder(name: string): Folder {
  const path = mkdtempSync(join(tmpdir(), `levee-${name}-${process.pid}-`));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Free a moment ago; the daemons cannot be told to take any. */
export async function freePort(address = '127.0.0.1'): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, address, resolve);
  });
  const taken = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (taken === null || typeof taken === 'string') throw new Error('no port');
  return taken.port;
}

/** Throws with the daemon's output when it ended, or when the deadline has passed. */
export async function untilServing(
  daemon: DaemonProcess,
  serves: () => Promise<boolean>,
  what: string,
  deadlineMilliseconds = 15_000,
): Promise<void> {
  const deadline = Date.now() + deadlineMilliseconds;
  for (;;) {
    if (await serves().catch(() => false)) return;
    if (!daemon.running || Date.now() > deadline) {
      const output = daemon.output();
      await daemon.kill();
      throw new Error(`${what} does not serve:\n${output}`);
    }
    await delay(10);
  }
}
