/** Real DNS programs: dig as a client, Knot, NSD and BIND as secondaries, each in a folder of its own. Test code only. */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { DnsAddress } from '../dns-server.ts';

const run = promisify(execFile);

/** Why these cannot be run here; false when they can. */
export function missingPrograms(...packages: readonly (keyof typeof probes)[]): string | false {
  const missing = packages.filter((name) => spawnSync(probes[name], ['-h']).error !== undefined);
  return missing.length > 0 && `needs the Debian packages ${missing.join(', ')}`;
}

const probes = {
  'bind9-dnsutils': 'dig',
  'bind9-utils': 'named-checkzone',
  knot: 'knotd',
  nsd: 'nsd',
  bind9: 'named',
} as const;

/** What dig prints; each call asks once and waits 5 s at most. */
export async function dig(server: DnsAddress, ...args: readonly string[]): Promise<string> {
  const to = [`@${server.host}`, '-p', String(server.port), '+tries=1', '+time=5', '+nobadcookie'];
  const { stdout } = await run('dig', [...to, ...args], { maxBuffer: 1 << 28 });
  return stdout;
}

/** The lines of `dig +short`. */
export async function digShort(server: DnsAddress, ...args: readonly string[]): Promise<string[]> {
  const text = await dig(server, '+short', ...args);
  return text.split('\n').filter((line) => line !== '');
}

/** `NOERROR`, `NXDOMAIN` …, and what follows `flags:`. */
export async function digStatus(
  server: DnsAddress,
  ...args: readonly string[]
): Promise<{ status: string; flags: string[] }> {
  const text = await dig(server, ...args);
  const status = /status: ([A-Z]+)/.exec(text)?.[1] ?? text;
  return { status, flags: /flags: ([a-z ]*);/.exec(text)?.[1]?.split(' ') ?? [] };
}

export interface RunningProgram {
  readonly port: number;
  stop(): Promise<void>;
}

export interface SecondaryOf {
  readonly zones: readonly string[];
  readonly primary: DnsAddress;
}

/** A port that was free a moment ago, for UDP and TCP. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** @param port given beforehand, because the primary is told it */
export function startKnot(port: number, { zones, primary }: SecondaryOf): RunningProgram {
  const folder = newFolder('knot');
  mkdirSync(join(folder, 'zones'));
  const config = [
    'server:',
    `  listen: 127.0.0.1@${port}`,
    `  rundir: ${folder}`,
    'log:',
    `  - target: ${join(folder, 'knot.log')}`,
    '    any: info',
    'database:',
    `  storage: ${folder}`,
    'remote:',
    '  - id: primary',
    `    address: ${primary.host}@${primary.port}`,
    'acl:',
    '  - id: notified',
    `    address: ${primary.host}`,
    '    action: notify',
    'zone:',
    ...zones.flatMap((zone) => [
      `  - domain: "${zone}."`,
      `    storage: ${join(folder, 'zones')}`,
      '    file: "%s.zone"',
      '    master: primary',
      '    acl: notified',
    ]),
  ].join('\n');
  const path = join(folder, 'knot.conf');
  writeFileSync(path, `${config}\n`);
  return running(port, folder, 'knotd', ['-c', path]);
}

export function startNsd(port: number, { zones, primary }: SecondaryOf): RunningProgram {
  const folder = newFolder('nsd');
  const config = [
    'server:',
    `  ip-address: 127.0.0.1@${port}`,
    '  username: ""',
    '  chroot: ""',
    `  zonesdir: "${folder}"`,
    `  database: ""`,
    `  pidfile: "${join(folder, 'nsd.pid')}"`,
    `  logfile: "${join(folder, 'nsd.log')}"`,
    `  xfrdfile: "${join(folder, 'xfrd.state')}"`,
    `  xfrdir: "${folder}"`,
    `  zonelistfile: "${join(folder, 'zone.list')}"`,
    '  server-count: 1',
    'remote-control:',
    '  control-enable: no',
    ...zones.flatMap((zone) => [
      'zone:',
      `  name: "${zone}"`,
      `  request-xfr: AXFR ${primary.host}@${primary.port} NOKEY`,
      `  allow-notify: ${primary.host} NOKEY`,
    ]),
  ].join('\n');
  const path = join(folder, 'nsd.conf');
  writeFileSync(path, `${config}\n`);
  return running(port, folder, 'nsd', ['-d', '-c', path]);
}

export function startBind(port: number, { zones, primary }: SecondaryOf): RunningProgram {
  const folder = newFolder('bind');
  const config = [
    'options {',
    `  directory "${folder}";`,
    `  pid-file "${join(folder, 'named.pid')}";`,
    `  session-keyfile "${join(folder, 'session.key')}";`,
    `  listen-on port ${port} { 127.0.0.1; };`,
    '  listen-on-v6 { none; };',
    '  recursion no;',
    '  notify no;',
    '  dnssec-validation no;',
    '  empty-zones-enable no;',
    '};',
    'controls { };',
    ...zones.map(
      (zone, index) =>
        `zone "${zone}" { type secondary; primaries { ${primary.host} port ${primary.port}; }; file "${index}.zone"; };`,
    ),
  ].join('\n');
  const path = join(folder, 'named.conf');
  writeFileSync(path, `${config}\n`);
  return running(port, folder, 'named', ['-f', '-c', path, '-n', '1', '-L', join(folder, 'named.log')]);
}

function newFolder(name: string): string {
  return mkdtempSync(join(tmpdir(), `levee-${name}-${process.pid}-`));
}

/** Dies with this process, however that ends (setpriv(1), util-linux). */
function running(port: number, folder: string, program: string, args: readonly string[]): RunningProgram {
  const child: ChildProcess = spawn('setpriv', ['--pdeathsig', 'KILL', program, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return {
    port,
    async stop() {
      child.kill('SIGTERM');
      const kill = setTimeout(() => child.kill('SIGKILL'), 5_000);
      await gone;
      clearTimeout(kill);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
