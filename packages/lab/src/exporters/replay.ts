/**
 * Sends a capture file out of a device as it is timed (tcpreplay), and tells when each attack of labelled traffic really began:
 * by the kernel's time of its marker at the other end of the wire (tcpdump). Must never change a packet.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, startProcess, untilServing } from '../bgp/daemon.ts';
import type { Namespace } from '../namespace.ts';
import { markedAttack, markerEthertype } from '../traffic/labelled-traffic.ts';
import { readPcap } from '../traffic/pcap-file.ts';

/**
 * In which steps captures for a replay are to be timed. Its precise way of waiting takes a whole processor, and the one that
 * sleeps is late by some 80 µs each time and never makes up for it: it is to sleep seldom.
 */
export const replayStepMs = 5;

export interface ReplayOptions {
  /** A capture file timed in such steps. */
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

export async function startReplay({ file, sender, receiver }: ReplayOptions): Promise<Replay> {
  const folder = makeFolder('replay');
  const marks = join(folder.path, 'markers.pcap');
  const watching = startProcess(
    'tcpdump',
    [...['-i', receiver.device, '-w', marks, '-U', '--immediate-mode', '-Z', 'root'], `ether proto ${markerEthertype}`],
    receiver.namespace.name,
  );
  try {
    await untilServing(watching, async () => watching.output().includes('listening on'), 'tcpdump');
  } catch (error) {
    folder.remove();
    throw error;
  }
  const sending = startProcess(
    'tcpreplay',
    ['--intf1', sender.device, '--timer=nano', '--preload-pcap', '--no-flow-stats', '--quiet', file],
    sender.namespace.name,
  );
  const finished = sending.ended.then((code) => {
    const sent = Number(/Successful packets:\s+(\d+)/.exec(sending.output())?.[1]);
    const failed = Number(/Failed packets:\s+(\d+)/.exec(sending.output())?.[1]);
    if (code !== 0 || !(sent > 0) || failed !== 0) throw new Error(`tcpreplay ended with ${code}: ${sending.output()}`);
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
      await sending.kill();
      await watching.kill();
      folder.remove();
    },
  };
}
