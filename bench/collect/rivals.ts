/**
 * Starts the programs that the collector is measured beside, each on a port of its own of 127.0.0.1 and with its files in a folder that
 * goes with it: nfcapd and sfcapd (Debian package nfdump), nfacctd and sfacctd (pmacct), ours. Must never leave one running.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readUdpSockets } from '@levee/detector/collect/kernel-drops.ts';
import { type DaemonProcess, freePort, makeFolder, startProcess, untilServing } from '@levee/lab/bgp/daemon.ts';

export interface Receiver {
  readonly port: number;
  readonly pid: number;
  readonly daemon: DaemonProcess | undefined;
  stop(): Promise<void>;
}

export type Format = 'sflow' | 'netflow';

/** Writes what it receives to files: no sums. */
export function startCapture(format: Format): Promise<Receiver> {
  return start(format === 'sflow' ? 'sfcapd' : 'nfcapd', (port, folder) => {
    mkdirSync(join(folder, 'flows'));
    return ['-w', join(folder, 'flows'), '-b', '127.0.0.1', '-p', String(port), '-t', '3600', '-B', String(4 << 20)];
  });
}

/** Sums by destination and protocol in memory, as near to what ours does as it can be told. */
export function startPmacct(format: Format): Promise<Receiver> {
  const program = format === 'sflow' ? 'sfacctd' : 'nfacctd';
  return start(program, (port, folder) => {
    const settings = {
      daemonize: 'false',
      [`${program}_ip`]: '127.0.0.1',
      [`${program}_port`]: port,
      [`${program}_pipe_size`]: 4 << 20,
      [`${program}_renormalize`]: 'true',
      plugins: 'memory[sums]',
      'aggregate[sums]': 'dst_host,proto,src_port,tcpflags',
      'imt_path[sums]': join(folder, 'sums'),
      'imt_mem_pools_number[sums]': 0,
      plugin_buffer_size: 102_400,
      plugin_pipe_size: 10_240_000,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name}: ${value}`);
    writeFileSync(join(folder, 'configuration'), `${lines.join('\n')}\n`);
    return ['-f', join(folder, 'configuration')];
  });
}

export async function startOurs(receive: 'recvmmsg' | 'dgram', prefixes: readonly string[]): Promise<Receiver> {
  const script = new URL('./serve.ts', import.meta.url).pathname;
  const daemon = startProcess(process.execPath, [script, receive, '1', prefixes.join(',')]);
  await untilServing(daemon, async () => /listening /.test(daemon.output()), 'our collector');
  const port = Number(/listening .*:(\d+)/.exec(daemon.output())?.[1]);
  return { port, pid: daemon.pid ?? 0, daemon, stop: () => daemon.kill() };
}

async function start(program: string, prepare: (port: number, folder: string) => string[]): Promise<Receiver> {
  const folder = makeFolder(program);
  const port = await freePort();
  const daemon = startProcess(program, prepare(port, folder.path));
  const stop = async (): Promise<void> => {
    await daemon.kill('SIGINT');
    folder.remove();
  };
  const listens = async () => [...readUdpSockets().values()].some((socket) => socket.port === port);
  try {
    await untilServing(daemon, listens, program);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, pid: daemon.pid ?? 0, daemon, stop };
}
