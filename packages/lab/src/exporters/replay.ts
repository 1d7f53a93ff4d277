/**
 * Sends a capture file out of a device as it is timed (tcpreplay), and tells when each attack of labelled traffic really began:
 * by the kernel's time of its marker at the other end of the wire (tcpdump). Must never change a packet.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Namespace } from '../namespace.ts';
import { markedAttack, markerEthertype } from '../traffic/labelled-traffic.ts';
import { readPcap } from '../traffic/pcap-file.ts';

export interface ReplayOptions {
  readonly file: string;
  readonly sender: { readonly namespace: Namespace; readonly device: string };
  readonly receiver: { readonly namespace: Namespace; readonly device: string };
}

export interface Replay {
  /** Milliseconds since 1970 at which the attack's first packet was on the wire; undefined: not yet. */
  begun(attack: number): number | undefined;
  /** Resolves when all packets have gone, to how many. Rejects with what tcpreplay said if some could not. */
  readonly finished: Promise<number>;
  /** Ends it, done or not. */
  stop(): Promise<void>;
}

const readyWithinMs = 10_000;
const living = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});

export async function startReplay(options: ReplayOptions): Promise<Replay> {
  const folder = mkdtempSync(join(tmpdir(), `levee-replay-${process.pid}-`));
  const marks = join(folder, 'markers.pcap');
  const watching = start(options.receiver.namespace, 'tcpdump', [
    ...['-i', options.receiver.device, '-w', marks, '-U', '--immediate-mode', '-Z', 'root'],
    `ether proto ${markerEthertype}`,
  ]);
  try {
    const deadline = Date.now() + readyWithinMs;
    while (!watching.said().includes('listening on')) {
      if (watching.child.exitCode !== null) throw new Error(`tcpdump ended: ${watching.said()}`);
      if (Date.now() > deadline) throw new Error(`tcpdump does not listen: ${watching.said()}`);
      await delay(10);
    }
  } catch (error) {
    await watching.end();
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  const sending = start(options.sender.namespace, 'tcpreplay', [
    ...['--intf1', options.sender.device, '--preload-pcap', '--no-flow-stats', '--quiet'],
    options.file,
  ]);
  const finished = sending.ended.then((code) => {
    const sent = Number(/Successful packets:\s+(\d+)/.exec(sending.said())?.[1]);
    const failed = Number(/Failed packets:\s+(\d+)/.exec(sending.said())?.[1]);
    if (code !== 0 || !(sent > 0) || failed !== 0) throw new Error(`tcpreplay ended with ${code}: ${sending.said()}`);
    return sent;
  });
  // Whoever stops it early has not asked.
  finished.catch(() => undefined);
  const known = new Map<number, number>();
  return {
    begun: (attack) => {
      if (!known.has(attack)) {
        for (const { atMs, frame } of readPcap(readFileSync(marks))) known.set(markedAttack(frame) ?? -1, atMs);
      }
      return known.get(attack);
    },
    finished,
    stop: async () => {
      await sending.end();
      await watching.end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  said(): string;
  end(): Promise<void>;
}

function start(namespace: Namespace, command: string, args: readonly string[]): Running {
  const child = spawn('ip', ['netns', 'exec', namespace.name, command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  living.add(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  return {
    child,
    ended,
    said: () => said,
    end: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      const forced = setTimeout(() => child.kill('SIGKILL'), 3000);
      await ended;
      clearTimeout(forced);
      living.delete(child);
    },
  };
}
