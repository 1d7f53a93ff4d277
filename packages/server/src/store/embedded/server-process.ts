/**
 * Runs initdb and one postmaster as child processes. Knows nothing of supervision or ownership.
 *
 * A child sees the data folder as descriptor 3 and the socket folder as 4, leaves our session (a terminal's Ctrl-C is
 * ours to handle), and is told by the kernel when we die (PR_SET_PDEATHSIG, prctl(2)): SIGINT is PostgreSQL's fast
 * shutdown. setpriv sets it after the change of user, which would otherwise clear it.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresBinaries } from './binaries.ts';
import type { EmbeddedLayout, OpenFolders } from './directory.ts';
import type { Identity } from './identity.ts';

const DATA = '/proc/self/fd/3';
const SOCKET = '/proc/self/fd/4';
export const SUPERUSER = 'levee';

const LOG_LIMIT_BYTES = 10 * 1024 * 1024;

export interface ServerPlace {
  readonly binaries: PostgresBinaries;
  readonly layout: EmbeddedLayout;
  readonly folders: OpenFolders;
  readonly identity: Identity;
}

/** For a machine with little memory that does other work too; durability stays as PostgreSQL ships it. */
const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '',
  unix_socket_directories: SOCKET,
  unix_socket_permissions: '0700',
  port: '5432',
  max_connections: '100',
  shared_buffers: '128MB',
  max_wal_size: '512MB',
  // Statements here are short: compiling them costs more than running them.
  jit: 'off',
  random_page_cost: '1.1',
  max_parallel_workers_per_gather: '0',
  log_min_messages: 'warning',
  log_checkpoints: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
};

function command(place: ServerPlace, program: string, args: readonly string[]): [string, string[]] {
  const { uid, gid, drop } = place.identity;
  const user = drop ? ['--reuid', String(uid), '--regid', String(gid), '--clear-groups', '--bounding-set', '-all'] : [];
  const guard = ['--no-new-privs', '--pdeathsig', 'INT', ...user];
  return ['setpriv', [...guard, join(place.binaries.folder, program), ...args]];
}

/** A leaked PG* variable of ours must not reach the server; the libraries' path may be needed to start it. */
function environment(): NodeJS.ProcessEnv {
  const { PATH, LD_LIBRARY_PATH } = process.env;
  return { PATH, LC_ALL: 'C', ...(LD_LIBRARY_PATH === undefined ? {} : { LD_LIBRARY_PATH }) };
}

/** Makes an empty data folder into a database; throws with initdb's own words when it cannot. */
export async function initialise(place: ServerPlace, durable: boolean): Promise<void> {
  const args = ['-D', DATA, '-U', SUPERUSER, '--auth=trust', '-E', 'UTF8', '--locale=C', '--data-checksums'];
  const [file, argv] = command(place, 'initdb', durable ? args : [...args, '--no-sync']);
  const child = spawn(file, argv, {
    cwd: '/',
    env: environment(),
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', place.folders.data, place.folders.socket],
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const [code] = await exitOf(child);
  if (code !== 0) throw new Error(`initdb failed in ${place.layout.data}: ${said.trim() || `exit code ${code}`}`);
}

export interface ServerProcess {
  readonly pid: number;
  /** Resolves, never rejects. */
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  kill(signal: NodeJS.Signals): void;
}

export function startServer(place: ServerPlace, extra: Readonly<Record<string, string>>): ServerProcess {
  if ((statSync(place.layout.log, { throwIfNoEntry: false })?.size ?? 0) > LOG_LIMIT_BYTES)
    truncateSync(place.layout.log);
  const settings = Object.entries({ ...SETTINGS, ...extra }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const [file, argv] = command(place, 'postgres', ['-D', DATA, ...settings]);
  const log = openSync(place.layout.log, 'a', 0o600);
  const child = spawn(file, argv, {
    cwd: '/',
    env: environment(),
    detached: true,
    stdio: ['ignore', log, log, place.folders.data, place.folders.socket],
  });
  closeSync(log);
  const exited = exitOf(child).then(
    ([code, signal]) => ({ code, signal }),
    () => ({ code: null, signal: null }),
  );
  return {
    pid: child.pid ?? -1,
    exited,
    kill: (signal) => void child.kill(signal),
  };
}

async function exitOf(child: ChildProcess): Promise<[number | null, NodeJS.Signals | null]> {
  return (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
}

/** The end of the server's log, for a message that says why it does not start. */
export function logTail(layout: EmbeddedLayout, lines = 5): string {
  try {
    const size = statSync(layout.log).size;
    const buffer = Buffer.alloc(Math.min(size, 8192));
    const file = openSync(layout.log, 'r');
    readSync(file, buffer, 0, buffer.length, size - buffer.length);
    closeSync(file);
    return buffer.toString('utf8').trim().split('\n').slice(-lines).join('\n');
  } catch {
    return '';
  }
}

/** False when setpriv (util-linux) is missing. */
export function canGuardChildren(): Promise<boolean> {
  return new Promise((resolve) => execFile('setpriv', ['--version'], (error) => resolve(error === null)));
}
