/**
 * Receives what exporters send: owns the workers, and carries what they say to the bus and what the bus says to them. Never sees
 * a datagram itself.
 */
import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import type { ExporterStatus } from '@levee/contract/detector.ts';
import type { CollectorBus, ToCollector } from '../bus/port.ts';
import { type CollectorLog, refusalSentence } from './collector-log.ts';
import { mergeExporters } from './merge-exporters.ts';
import { addressOfListening, type ListenAddress, RECEIVE_BUFFER_OCTETS } from './receive-port.ts';
import { WorkerHandle } from './worker-handle.ts';
import type { WorkerOrder } from './worker-messages.ts';

export interface CollectorOptions {
  /** Any format on any of them. */
  readonly listen: readonly ListenAddress[];
  /** Absent: one less than there are processors, 1 … 4. */
  readonly workers?: number;
  readonly bus: CollectorBus;
  readonly log: CollectorLog;
  /** For recent samples, of all workers together; absent: 64 MB. */
  readonly sampleOctets?: number;
  /** Absent: recvmmsg where the FFI works, else node:dgram. */
  readonly receive?: WorkerOrder['receive'];
}

export interface RunningCollector {
  /** `host:port`, IPv6 in brackets, with their real ports; without those that `status().refused` tells of. */
  readonly listening: readonly string[];
  status(): RunningCollectorStatus;
  /** Ends the workers; what a slot that is not over yet holds is lost. */
  stop(): Promise<void>;
}

export interface RunningCollectorStatus {
  readonly listening: readonly string[];
  /** A sentence for each address that is not listened on. They are tried again every second. */
  readonly refused: readonly string[];
  readonly receive: 'recvmmsg' | 'dgram';
  readonly workers: readonly {
    readonly alive: boolean;
    readonly restarts: number;
    /** The smallest of its sockets. */
    readonly receiveBuffer: { readonly bytes: number; readonly wanted: number };
  }[];
  /** Since the collector's start, also of workers that died. */
  readonly kernelDrops: number;
  readonly exporters: readonly ExporterStatus[];
}

const mostWorkers = 4;
/** Detectors whose last word on hot destinations a new worker is told. */
const mostDetectors = 16;
export const defaultSampleOctets = 64 * 1024 * 1024;

/** Resolves when every worker listens or has been refused; it never throws for an address. */
export async function startCollector(options: CollectorOptions): Promise<RunningCollector> {
  const { bus, log, receive = 'auto', sampleOctets = defaultSampleOctets } = options;
  const count = options.workers ?? Math.min(Math.max(availableParallelism() - 1, 1), mostWorkers);
  const run = randomUUID();
  let settings: ToCollector | undefined;
  const hot = new Map<string, ToCollector>();
  const handles: WorkerHandle[] = [];

  bus.onMessage((message) => {
    if (message.type === 'settings') settings = message;
    if (message.type === 'hot') {
      hot.delete(message.detector);
      hot.set(message.detector, message);
      if (hot.size > mostDetectors) hot.delete(hot.keys().next().value as string);
    }
    for (const handle of handles) handle.send(message);
  });

  let { listen } = options;
  for (let i = 0; i < count; i++) {
    const handle = new WorkerHandle({
      name: `${run}.${i}`,
      listen,
      sharing: count,
      sampleOctets: Math.floor(sampleOctets / count),
      receive,
      log,
      send: (message) => bus.send(message),
      greeting: () => [...(settings === undefined ? [] : [settings]), ...hot.values()],
    });
    handles.push(handle);
    // One after the other: with port 0 the others take the port that the first was given.
    await handle.start();
    if (count > 1 && handle.listening?.isBySource === false) {
      // Among several an exporter's templates might come to one and its data to another.
      log.warn({}, 'one worker receives alone, as exporters cannot be divided by their addresses here');
      break;
    }
    listen = listen.map((address, index) => handle.listening?.open[index]?.address ?? address);
  }

  const listening = (): string[] => {
    const texts = handles.flatMap(({ listening }) => listening?.open ?? []);
    return [...new Set(texts.filter((each) => each !== undefined).map(({ address }) => addressOfListening(address)))];
  };
  const started = listening();
  log.info(
    { listening: started, workers: handles.length, receive: handles[0]?.listening?.receive },
    'collector listens',
  );
  return {
    listening: started,
    status: () => ({
      listening: listening(),
      refused: [...new Set(handles.flatMap(({ listening }) => listening?.refused.map(refusalSentence) ?? []))],
      receive: handles.find(({ listening }) => listening !== undefined)?.listening?.receive ?? 'recvmmsg',
      workers: handles.map(({ listening, restarts }) => ({
        alive: listening !== undefined,
        restarts,
        receiveBuffer: {
          bytes: Math.min(
            ...(listening?.open ?? []).map((each) => each?.receiveBufferOctets ?? 0),
            RECEIVE_BUFFER_OCTETS,
          ),
          wanted: RECEIVE_BUFFER_OCTETS,
        },
      })),
      kernelDrops: handles.reduce((sum, { kernelDrops }) => sum + kernelDrops, 0),
      exporters: mergeExporters(handles.map(({ exporters }) => exporters)),
    }),
    stop: async () => {
      await Promise.all(handles.map((handle) => handle.stop()));
    },
  };
}
