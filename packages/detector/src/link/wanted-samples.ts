/**
 * Puts together what collectors answer when the control plane wants samples of a destination. Owns how long is waited for them:
 * whoever asked waits too.
 */
import type { PacketSample, SamplesAnswer, SamplesWanted } from '@levee/contract/detector.ts';
import type { CollectedSamples, ToCollector } from '../bus/port.ts';

export interface WantedSamples {
  ask(wanted: SamplesWanted): void;
  /** Of another request: passed over. */
  heard(samples: CollectedSamples): void;
  stop(): void;
}

export interface WantedOptions {
  readonly send: (message: ToCollector) => void;
  readonly answer: (answer: SamplesAnswer) => void;
  /** How many collectors there are; more or fewer may answer. */
  readonly collectors: () => number;
  readonly patienceMilliseconds?: number;
  readonly now: () => number;
}

const PATIENCE_MILLISECONDS = 500;
/** Requests that are waited for at once; beyond it the oldest is answered with what there is. */
const MOST_REQUESTS = 64;

interface Gathering {
  readonly wanted: SamplesWanted;
  readonly timer: NodeJS.Timeout;
  readonly collectors: Set<string>;
  held: number;
  packets: PacketSample[];
}

export function createWantedSamples(options: WantedOptions): WantedSamples {
  const gathering = new Map<string, Gathering>();

  const finish = (request: string): void => {
    const each = gathering.get(request);
    if (each === undefined) return;
    gathering.delete(request);
    clearTimeout(each.timer);
    options.answer({ request, held: each.held, packets: each.packets });
  };
  return {
    ask(wanted) {
      const { request, dst, seconds, most } = wanted;
      if (gathering.has(request)) return;
      const [oldest] = gathering.keys();
      if (gathering.size >= MOST_REQUESTS && oldest !== undefined) finish(oldest);
      const timer = setTimeout(() => finish(request), options.patienceMilliseconds ?? PATIENCE_MILLISECONDS);
      gathering.set(request, { wanted, timer, collectors: new Set(), held: 0, packets: [] });
      options.send({ type: 'samples_wanted', request, dst, sinceMs: options.now() - seconds * 1000, most });
    },
    heard({ request, collector, held, packets }) {
      const each = gathering.get(request);
      if (each === undefined || each.collectors.has(collector)) return;
      each.collectors.add(collector);
      each.held += held;
      // The newest of all of them together.
      each.packets = [...each.packets, ...packets].sort((a, b) => b.at_ms - a.at_ms).slice(0, each.wanted.most);
      if (each.collectors.size >= options.collectors()) finish(request);
    },
    stop() {
      for (const { timer } of gathering.values()) clearTimeout(timer);
      gathering.clear();
    },
  };
}
