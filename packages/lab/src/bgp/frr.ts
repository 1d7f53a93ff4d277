/**
 * A real FRR bgpd as a BGP peer of an experiment, without the rest of FRR: takes FlowSpec and unicast routes and tells
 * what it has, in FRR's own words.
 */
import { execFile } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type DaemonProcess, freePort, makeFolder, startProcess, untilServing } from './daemon.ts';

const run = promisify(execFile);

export interface FrrOptions {
  readonly neighbor: { readonly address: string; readonly port: number; readonly asn: number };
  readonly asn?: number;
  /** Its own; 127.0.0.3 when absent. */
  readonly address?: string;
  readonly port?: number;
  /** A configuration of the caller's own, instead of one made of the above. */
  readonly configuration?: string;
}

export interface Frr {
  readonly asn: number;
  readonly address: string;
  readonly port: number;
  /** A command of vtysh, such as `show bgp ipv4 flowspec detail`; its output. */
  ask(command: string): Promise<string>;
  established(): Promise<boolean>;
  output(): string;
  kill(): Promise<void>;
  remove(): Promise<void>;
}

/** Started and answering; its session comes up by itself. `frr` must be installed. */
export async function startFrr(options: FrrOptions): Promise<Frr> {
  const folder = makeFolder('frr');
  const address = options.address ?? '127.0.0.3';
  const asn = options.asn ?? 64500;
  const port = options.port ?? (await freePort(address));
  // bgpd gives up root, and writes its sockets here.
  chmodSync(folder.path, 0o777);
  const file = join(folder.path, 'bgpd.conf');
  writeFileSync(file, options.configuration ?? configurationText({ ...options, address, asn }));
  const ask = async (command: string) =>
    (await run('vtysh', ['--vty_socket', folder.path, '-d', 'bgpd', '-c', command])).stdout;
  const args = ['-f', file, '-n', '-Z', '-p', String(port), '-l', address, '-i', join(folder.path, 'bgpd.pid')];
  const daemon: DaemonProcess = startProcess('/usr/lib/frr/bgpd', [
    ...args,
    ...['--vty_socket', folder.path, '-P', '0', '-u', 'frr', '-g', 'frr', '--log', 'stdout'],
  ]);
  try {
    await untilServing(daemon, async () => (await ask('show bgp summary')) !== '', 'bgpd');
  } catch (error) {
    folder.remove();
    throw error;
  }
  return {
    asn,
    address,
    port,
    ask,
    async established() {
      const summary = await ask(`show bgp neighbors ${options.neighbor.address}`);
      return summary.includes('BGP state = Established');
    },
    output: () => daemon.output(),
    kill: () => daemon.kill(),
    async remove() {
      await daemon.kill();
      folder.remove();
    },
  };
}

function configurationText({ address, asn, neighbor }: FrrOptions & { address: string; asn: number }): string {
  const families = ['ipv4 unicast', 'ipv6 unicast', 'ipv4 flowspec', 'ipv6 flowspec'];
  return [
    `router bgp ${asn}`,
    ' bgp router-id 192.0.2.3',
    ' no bgp ebgp-requires-policy',
    ` neighbor ${neighbor.address} remote-as ${neighbor.asn}`,
    ` neighbor ${neighbor.address} port ${neighbor.port}`,
    ` neighbor ${neighbor.address} update-source ${address}`,
    ` neighbor ${neighbor.address} timers connect 1`,
    ...families.flatMap((family) => [
      ` address-family ${family}`,
      `  neighbor ${neighbor.address} activate`,
      ' exit-address-family',
    ]),
    '',
  ].join('\n');
}
