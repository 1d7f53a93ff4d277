/**
 * A real gobgpd for an experiment: configured with its neighbours, its interface on a unix socket. Started again it has
 * the same addresses and nothing that it knew before. Never announces anything by itself.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type DaemonProcess, freePort, makeFolder, startProcess, untilServing } from './daemon.ts';

export interface BgpNeighbor {
  readonly address: string;
  /** 179 when absent. */
  readonly port?: number;
  readonly asn: number;
}

export interface GobgpdOptions {
  readonly neighbors: readonly BgpNeighbor[];
  /** 64500 when absent. */
  readonly asn?: number;
  /** Of this end; 127.0.0.1 when absent. */
  readonly address?: string;
  /** 192.0.2.10 when absent; peers need different ones. */
  readonly routerId?: string;
  /** A free one when absent. */
  readonly port?: number;
  /** Where the interface is served; in a folder of its own when absent. Beside `tcp`. */
  readonly socketPath?: string;
  /** `host:port` of the interface, beside the unix socket. */
  readonly tcp?: string;
  /** The peers' sessions, and whether it waits for them: it does when absent. */
  readonly passive?: boolean;
  /** Seconds for which a peer that can do so keeps the routes; 120 when absent. */
  readonly restartTimeSeconds?: number;
  /** Seconds for which it waits for other peers before it tells one anything; 2 when absent. */
  readonly deferralTimeSeconds?: number;
  /** A configuration of the caller's own, instead of one made of the above. */
  readonly configuration?: string;
  readonly namespace?: string;
}

export interface Gobgpd {
  readonly asn: number;
  readonly address: string;
  readonly port: number;
  readonly socketPath: string;
  /** `unix:///…`, as Levee and the program `gobgp` take it. */
  readonly target: string;
  readonly running: boolean;
  output(): string;
  /** Again, with `-r`: it says to its peers that it restarts. Resolves when it is asked for its interface and answers. */
  start(): Promise<void>;
  /** SIGKILL when absent. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  remove(): Promise<void>;
}

const families = ['ipv4-unicast', 'ipv6-unicast', 'ipv4-flowspec', 'ipv6-flowspec'];

/** Started and answering. `gobgpd` must be installed. */
export async function startGobgpd(options: GobgpdOptions): Promise<Gobgpd> {
  const folder = makeFolder('gobgpd');
  const address = options.address ?? '127.0.0.1';
  const port = options.port ?? (await freePort(options.namespace === undefined ? address : '127.0.0.1'));
  const asn = options.asn ?? 64500;
  const socketPath = options.socketPath ?? join(folder.path, 'gobgp.sock');
  const configuration = join(folder.path, 'gobgpd.toml');
  mkdirSync(folder.path, { recursive: true });
  writeFileSync(configuration, options.configuration ?? configurationText({ ...options, address, port, asn }));
  const hosts = [`unix://${socketPath}`, ...(options.tcp === undefined ? [] : [options.tcp])].join(',');
  const args = ['-f', configuration, '-r', '-p', '-l', 'info', '--pprof-disable', '--api-hosts', hosts];
  let daemon: DaemonProcess | undefined;
  const gobgpd: Gobgpd = {
    asn,
    address,
    port,
    socketPath,
    target: `unix://${socketPath}`,
    get running() {
      return daemon?.running === true;
    },
    output: () => daemon?.output() ?? '',
    async start() {
      // One that was killed leaves it, and gobgpd does not take it over.
      rmSync(socketPath, { force: true });
      const started = startProcess('gobgpd', args, options.namespace);
      daemon = started;
      await untilServing(started, () => canConnect(socketPath), 'gobgpd');
    },
    async kill(signal) {
      await daemon?.kill(signal);
    },
    async remove() {
      await daemon?.kill();
      folder.remove();
    },
  };
  try {
    await gobgpd.start();
  } catch (error) {
    folder.remove();
    throw error;
  }
  return gobgpd;
}

function canConnect(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

function configurationText(options: GobgpdOptions & { address: string; port: number; asn: number }): string {
  const { address, port, asn, neighbors, passive = true, restartTimeSeconds = 120, deferralTimeSeconds = 2 } = options;
  const head = [
    '[global.config]',
    `as = ${asn}`,
    `router-id = "${options.routerId ?? '192.0.2.10'}"`,
    `port = ${port}`,
    `local-address-list = ["${address}"]`,
  ];
  const each = neighbors.flatMap((neighbor) => [
    '[[neighbors]]',
    '[neighbors.config]',
    `neighbor-address = "${neighbor.address}"`,
    `peer-as = ${neighbor.asn}`,
    '[neighbors.transport.config]',
    `local-address = "${address}"`,
    `remote-port = ${neighbor.port ?? 179}`,
    `passive-mode = ${passive}`,
    ...(neighbor.asn === asn ? [] : ['[neighbors.ebgp-multihop.config]', 'enabled = true', 'multihop-ttl = 10']),
    '[neighbors.graceful-restart.config]',
    'enabled = true',
    `restart-time = ${restartTimeSeconds}`,
    // Started with -r, it tells a peer nothing until all have said what they have, or for so many seconds.
    `deferral-time = ${deferralTimeSeconds}`,
    ...families.flatMap((family) => [
      '[[neighbors.afi-safis]]',
      '[neighbors.afi-safis.config]',
      `afi-safi-name = "${family}"`,
      '[neighbors.afi-safis.mp-graceful-restart.config]',
      'enabled = true',
    ]),
  ]);
  return [...head, ...each, ''].join('\n');
}
