/** What a collector says to its workers and hears of them, besides what goes over the bus. Owns no behaviour. */
import type { MessagePort } from 'node:worker_threads';
import type { FromCollector, ToCollector } from '../bus/port.ts';
import type { ListenAddress, OpenSocket, RefusedAddress } from './receive-port.ts';

export interface WorkerOrder {
  readonly collector: string;
  readonly listen: readonly ListenAddress[];
  /** How many workers listen on the same addresses. */
  readonly sharing: number;
  readonly sampleOctets: number;
  /** `auto`: recvmmsg where the FFI works. */
  readonly receive: 'auto' | 'recvmmsg' | 'dgram';
  readonly port: MessagePort;
}

/** Sent at the start, and again when an address that was refused is listened on. */
export interface WorkerListening {
  readonly type: 'listening';
  readonly receive: 'recvmmsg' | 'dgram';
  /** Datagrams of one source all come to one worker, whatever port they are sent from. */
  readonly isBySource: boolean;
  /** As many as in the order, in its order, with their real ports; undefined where refused. */
  readonly open: readonly (OpenSocket | undefined)[];
  readonly refused: readonly RefusedAddress[];
}

export interface WorkerWarning {
  readonly type: 'warning';
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

export type FromWorker = FromCollector | WorkerListening | WorkerWarning;
export type ToWorker = ToCollector | { readonly type: 'stop' };
