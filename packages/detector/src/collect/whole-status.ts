/**
 * Owns what a collector says of all of its workers together: counts go on where a worker dies, as its own began anew. Pure.
 */
import type { CollectorStatus } from '../bus/port.ts';
import type { RunningCollectorStatus } from './collector.ts';

type Overflow = CollectorStatus['overflow'];

const nothing: Overflow = { unknownDatagrams: 0, samples: 0, unspread: 0, unprofiled: 0 };
/** Workers that live, and some that died a moment ago. */
const mostWorkers = 256;

export class WholeStatus {
  readonly #workers = new Map<string, CollectorStatus>();
  #former: Overflow = nothing;

  /** What a worker said. */
  take(status: CollectorStatus): void {
    this.#workers.delete(status.collector);
    this.#workers.set(status.collector, status);
    if (this.#workers.size <= mostWorkers) return;
    const [name, oldest] = this.#workers.entries().next().value as [string, CollectorStatus];
    this.#workers.delete(name);
    this.#former = sum(this.#former, oldest.overflow);
  }

  get overflow(): Overflow {
    let whole = this.#former;
    for (const { overflow } of this.#workers.values()) whole = sum(whole, overflow);
    return whole;
  }

  /** In the name of the collector. */
  of(
    collector: string,
    run: string,
    settingsRevision: number,
    { exporters, workers, kernelDrops, listening, refused }: RunningCollectorStatus,
    unsent: number,
  ): CollectorStatus {
    const buffers = workers.map(({ receiveBuffer }) => receiveBuffer);
    const [first = { bytes: 0, wanted: 0 }] = buffers;
    return {
      type: 'status',
      collector,
      run,
      settingsRevision,
      exporters: exporters.slice(0, 1_000),
      receiveBuffer: { bytes: Math.min(first.bytes, ...buffers.map(({ bytes }) => bytes)), wanted: first.wanted },
      kernelDrops,
      overflow: this.overflow,
      listening,
      refused,
      unsent,
    };
  }
}

function sum(one: Overflow, other: Overflow): Overflow {
  return {
    unknownDatagrams: one.unknownDatagrams + other.unknownDatagrams,
    samples: one.samples + other.samples,
    unspread: one.unspread + other.unspread,
    unprofiled: one.unprofiled + other.unprofiled,
  };
}
