/**
 * The bus inside one process: between collector and detector a call, between a worker and the collector's thread a message port, over
 * which columns are handed over and not copied. Keeps nothing: what is said before somebody listens is lost, as between machines.
 */
import type { MessagePort, Transferable } from 'node:worker_threads';
import type { CollectorBus, DetectorBus, FromCollector, ToCollector } from './port.ts';

export interface LocalBus {
  readonly detector: DetectorBus;
  readonly collector: CollectorBus;
}

/** Both ends. A message is heard before `send` returns. */
export function createLocalBus(): LocalBus {
  const detectors = new Set<(message: FromCollector) => void>();
  const collectors = new Set<(message: ToCollector) => void>();
  return {
    detector: {
      send: (message) => {
        for (const heard of collectors) heard(message);
      },
      onMessage: (heard) => void detectors.add(heard),
      close: async () => detectors.clear(),
    },
    collector: {
      send: (message) => {
        for (const heard of detectors) heard(message);
      },
      onMessage: (heard) => void collectors.add(heard),
      close: async () => collectors.clear(),
    },
  };
}

/** Whoever sends a slot has no columns any more afterwards. */
export function sendFromWorker(port: MessagePort, message: { readonly type: string }): void {
  port.postMessage(message, message.type === 'slot' ? columnsOf(message as FromCollector & { type: 'slot' }) : []);
}

function columnsOf({
  families,
  addresses,
  vectors,
  packets,
  bytes,
  samples,
}: FromCollector & { type: 'slot' }): Transferable[] {
  return [families, addresses, vectors, packets, bytes, samples].map((column) => column.buffer as ArrayBuffer);
}
