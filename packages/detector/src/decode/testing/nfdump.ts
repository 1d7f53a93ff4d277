/**
 * Owns the reference of the decoder's tests: the same datagrams over loopback to Debian's nfcapd or sfcapd, and what nfdump
 * reads from the file that they wrote. Test code only.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface NfdumpFlow {
  readonly source: string;
  readonly destination: string;
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly protocol: string;
  readonly flags: string;
  readonly packets: number;
  readonly bytes: number;
  readonly input: number;
  readonly output: number;
  readonly seconds: number;
}

type Program = 'nfcapd' | 'sfcapd';

/** The flows that a collector writes down of the datagrams. */
export async function collectWith(program: Program, datagrams: readonly Buffer[]): Promise<NfdumpFlow[]> {
  return await collect(program, datagrams, 1, (files) => files.flatMap(readFlows));
}

/** CPU seconds of a collector for one flow, the datagrams sent so many times: it receives, decodes, and writes to a file. */
export async function collectorCost(program: Program, datagrams: readonly Buffer[], times: number): Promise<number> {
  return await collect(program, datagrams, times, (files, cpuSeconds) => {
    const texts = files.map((file) => execFileSync('nfdump', ['-I', '-r', file], { encoding: 'utf8' }));
    const flows = texts.map((text) => Number(/^Flows: (\d+)$/m.exec(text)?.[1]));
    return cpuSeconds / flows.reduce((sum, each) => sum + each, 0);
  });
}

async function collect<Result>(
  program: Program,
  datagrams: readonly Buffer[],
  times: number,
  read: (files: readonly string[], cpuSeconds: number) => Result,
): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'levee-nfdump-'));
  const port = await freePort();
  const args = ['-b', '127.0.0.1', '-p', String(port), '-w', folder, '-B', '4000000', '-t', '86400'];
  const collector = spawn(program, args, { stdio: 'ignore' });
  const exited = once(collector, 'exit');
  try {
    await until(collector, () => queuedOctets(port) !== undefined);
    const before = cpuSeconds(collector);
    for (let time = 0; time < times; time += 1) await send(collector, port, datagrams);
    const spent = cpuSeconds(collector) - before;
    collector.kill('SIGTERM');
    await exited;
    const names = readdirSync(folder).filter((name) => name.startsWith('nfcapd.'));
    return read(
      names.map((name) => join(folder, name)),
      spent,
    );
  } finally {
    if (collector.exitCode === null) collector.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What all threads of a process have run. */
function cpuSeconds({ pid }: ChildProcess): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const ran = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return ran.reduce((sum, each) => sum + each, 0) / 1e9;
}

async function send(collector: ChildProcess, port: number, datagrams: readonly Buffer[]): Promise<void> {
  const socket = createSocket('udp4');
  try {
    // Few at a time: none may be lost in the collector's buffer, however small it is here.
    for (let first = 0; first < datagrams.length; first += 20) {
      for (const datagram of datagrams.slice(first, first + 20)) {
        await new Promise<void>((resolve, reject) => {
          socket.send(datagram, port, '127.0.0.1', (error) => (error === null ? resolve() : reject(error)));
        });
      }
      await until(collector, () => queuedOctets(port) === 0);
    }
  } finally {
    socket.close();
  }
}

async function freePort(): Promise<number> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  return port;
}

/** Octets that wait in the socket bound to a port of 127.0.0.1; undefined: there is none. */
function queuedOctets(port: number): number | undefined {
  const wanted = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  for (const line of readFileSync('/proc/net/udp', 'utf8').split('\n')) {
    const fields = line.trim().split(/\s+/);
    if (fields[1] === wanted) return Number.parseInt((fields[4] ?? '').split(':')[1] ?? '', 16);
  }
  return undefined;
}

async function until(collector: ChildProcess, isMet: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!isMet()) {
    if (collector.exitCode !== null) throw new Error(`the collector ended with ${collector.exitCode}`);
    if (performance.now() > deadline) throw new Error('the collector did not read on for 20 s');
    await delay(2);
  }
}

function readFlows(file: string): NfdumpFlow[] {
  const text = execFileSync('nfdump', ['-6', '-N', '-r', file, '-o', 'csv'], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const [header = '', ...lines] = text.trim().split('\n');
  const columns = header.split(',');
  return lines
    .map((line) => line.split(','))
    .filter((cells) => cells.length === columns.length)
    .map((cells) => {
      const cell = (name: string) => cells[columns.indexOf(name)] ?? '';
      // ICMP's type and code stand as `type.code` in place of the port.
      const [type = '', code] = cell('dp').split('.');
      return {
        source: cell('sa'),
        destination: cell('da'),
        sourcePort: Number(cell('sp')),
        destinationPort: code === undefined ? Number(type) : Number(type) * 256 + Number(code),
        protocol: cell('pr'),
        flags: cell('flg'),
        packets: Number(cell('ipkt')),
        bytes: Number(cell('ibyt')),
        input: Number(cell('in')),
        output: Number(cell('out')),
        seconds: Number(cell('td')),
      };
    });
}
