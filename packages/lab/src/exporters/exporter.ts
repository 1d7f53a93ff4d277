/**
 * Starts real exporters of flow telemetry on a device of a namespace, and ends them: pmacctd (sFlow v5, NetFlow v9) and softflowd
 * (IPFIX, NetFlow v5). Owns their settings. Must never read what they send.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Namespace } from '../namespace.ts';

export interface ExporterOptions {
  readonly namespace: Namespace;
  /** What it watches; packets that leave by it count as well as those that come. */
  readonly device: string;
  /** `address:port`, reachable from the namespace. */
  readonly collector: string;
  /** One packet of so many is looked at. */
  readonly sampling: number;
}

const readyWithinMs = 10_000;
const living = new Set<Exporter>();
process.on('exit', () => {
  for (const each of living) each.kill();
});

export class Exporter {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #ended: Promise<unknown>;
  /** What it said, both streams. */
  said = '';

  private constructor(namespace: Namespace, folder: string, command: string, args: readonly string[]) {
    this.#folder = folder;
    // A group of its own: pmacctd's plugins are processes too.
    this.#child = spawn('ip', ['netns', 'exec', namespace.name, command, ...args], {
      cwd: folder,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    living.add(this);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.said += text;
      });
    }
    this.#ended = new Promise((resolve) => this.#child.once('close', resolve));
  }

  /** pmacctd with its plugin for sFlow v5: raw headers of 128 octets, each sample within a second. */
  static sflow(options: ExporterOptions): Promise<Exporter> {
    return Exporter.#pmacctd(options, 'sfprobe', [
      `sfprobe_receiver: ${options.collector}`,
      'sfprobe_agentip: 127.0.0.1',
      'sfprobe_direction[lab]: in',
      'sfprobe_ifindex[lab]: 1',
    ]);
  }

  /** pmacctd with its plugin for NetFlow v9, each flow told after a second. */
  static netflow9(options: ExporterOptions): Promise<Exporter> {
    return Exporter.#pmacctd(options, 'nfprobe', [
      `nfprobe_receiver: ${options.collector}`,
      'nfprobe_version: 9',
      'nfprobe_timeouts: tcp=1:tcp.rst=1:tcp.fin=1:udp=1:icmp=1:general=1:maxlife=1:expint=1',
      'nfprobe_maxflows: 65535',
      'aggregate: src_host, dst_host, src_port, dst_port, proto, tos, tcpflags, in_iface',
    ]);
  }

  static async #pmacctd(options: ExporterOptions, plugin: string, lines: readonly string[]): Promise<Exporter> {
    const folder = mkdtempSync(join(tmpdir(), `levee-pmacctd-${process.pid}-`));
    const settings = [
      'daemonize: false',
      'debug: false',
      `pidfile: ${join(folder, 'pid')}`,
      `pcap_interface: ${options.device}`,
      `plugins: ${plugin}[lab]`,
      // Room for a burst while the plugin waits for a processor.
      'plugin_pipe_size: 33554432',
      `sampling_rate: ${options.sampling}`,
      ...lines,
    ];
    writeFileSync(join(folder, 'pmacctd.conf'), `${settings.join('\n')}\n`);
    const made = new Exporter(options.namespace, folder, 'pmacctd', ['-f', join(folder, 'pmacctd.conf')]);
    // The plugin is a process of its own, which may come up later than the one that watches.
    return made.#ready(options, /Exporting flows to/);
  }

  /** softflowd: 10 is IPFIX. Flows are told after a second, at the earliest. */
  static async softflowd(options: ExporterOptions & { readonly version: 5 | 9 | 10 }): Promise<Exporter> {
    const folder = mkdtempSync(join(tmpdir(), `levee-softflowd-${process.pid}-`));
    const second = ['tcp', 'tcp.rst', 'tcp.fin', 'udp', 'icmp', 'general', 'maxlife', 'expint'];
    const made = new Exporter(options.namespace, folder, 'softflowd', [
      '-d',
      ...['-i', options.device],
      ...['-n', options.collector],
      ...['-v', String(options.version)],
      ...['-s', String(options.sampling)],
      ...['-m', '65535'],
      ...['-p', join(folder, 'pid')],
      ...['-c', join(folder, 'control')],
      ...second.flatMap((timeout) => ['-t', `${timeout}=1`]),
      '-6',
    ]);
    return made.#ready(options);
  }

  /** Its processes, the first one and plugins. */
  get pids(): number[] {
    const group = this.#child.pid;
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && groupOf(pid) === group);
  }

  /** Asks it to end, so that it tells what it still holds; without asking if it does not. */
  async stop(): Promise<void> {
    if (this.#running) this.#child.kill('SIGINT');
    await Promise.race([this.#ended, delay(3000, undefined, { ref: false })]);
    this.kill();
    await this.#ended;
    living.delete(this);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  kill(): void {
    try {
      if (this.#child.pid !== undefined) process.kill(-this.#child.pid, 'SIGKILL');
    } catch {
      // Nothing of it runs any more.
    }
  }

  get #running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** It watches when one of its processes has a packet socket bound to the device, and it has said what it should. */
  async #ready(options: ExporterOptions, says = /^/): Promise<Exporter> {
    const index = execFileSync('ip', ['-n', options.namespace.name, '-o', 'link', 'show', options.device], {
      encoding: 'utf8',
    }).split(':', 1)[0];
    const deadline = Date.now() + readyWithinMs;
    try {
      for (;;) {
        if (!this.#running) throw new Error(`the exporter ended: ${this.said}`);
        const sockets = options.namespace.enter(() => readFileSync('/proc/thread-self/net/packet', 'utf8'));
        const inodes = sockets
          .split('\n')
          .slice(1)
          .map((line) => line.trim().split(/\s+/))
          .filter((columns) => columns[4] === index)
          .map((columns) => `socket:[${columns[8]}]`);
        if (says.test(this.said) && this.pids.some((pid) => hasAny(pid, inodes))) return this;
        if (Date.now() > deadline) throw new Error(`the exporter does not watch ${options.device}: ${this.said}`);
        await delay(20);
      }
    } catch (error) {
      await this.stop();
      throw error;
    }
  }
}

function groupOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2]);
  } catch {
    return undefined; // it ended between the listing and the look
  }
}

function hasAny(pid: number, sockets: readonly string[]): boolean {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).some((name) => sockets.includes(readlinkSync(join(folder, name))));
  } catch {
    return false;
  }
}
