/**
 * Sends the same datagrams to a port of 127.0.0.1 over and over, at a rate, from one socket and a thread of its own. Must never send
 * to another host.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

export interface DatagramFlood {
  readonly datagrams: readonly Uint8Array[];
  readonly port: number;
  readonly perSecond: number;
  readonly seconds: number;
}

/** How many were sent, and within how long. */
export async function sendDatagrams(flood: DatagramFlood): Promise<{ sent: number; seconds: number }> {
  const worker = new Worker(new URL('./datagram-flood-worker.ts', import.meta.url), { workerData: flood });
  const [result] = (await once(worker, 'message')) as [{ sent: number; seconds: number }];
  await worker.terminate();
  return result;
}
