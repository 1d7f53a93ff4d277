/**
 * Everything about events of one replica, put together: the election, what the leader does, the streams. What main starts
 * and http opens streams at.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../store/database.ts';
import { type Lead, startElection } from './election.ts';
import { pruneEvents } from './prune-events.ts';
import { createEventStreams, type EventStreams, type StreamsOptions } from './streams.ts';
import { type WatcherServices, watch } from './watcher.ts';

export interface Events {
  readonly streams: EventStreams;
  /** Whether this replica writes the events of all. */
  readonly leads: boolean;
  stop(): Promise<void>;
}

/** What else the leader does while it leads. Resolves when the lead is over. */
export interface LeadersTask {
  readonly run: (lead: Lead) => Promise<void>;
  /** Channel → what another replica tells. */
  readonly listeners?: Readonly<Record<string, (payload: string) => void>>;
}

export interface EventsOptions extends Omit<WatcherServices, 'announce'> {
  readonly tasks?: readonly LeadersTask[];
  readonly streams?: StreamsOptions;
  readonly pruneEveryMilliseconds?: number;
  readonly log?: (message: string) => void;
}

const CHANNEL = 'levee_event';
const PRUNE_MILLISECONDS = 60_000;

export function startEvents(database: Pick<Database, 'connect' | 'pool'>, options: EventsOptions): Events {
  const log = options.log ?? (() => {});
  const { tasks = [] } = options;
  const streams = createEventStreams(database.pool, { log, ...options.streams });
  const announce = () => {
    streams.wake();
    // Lost, it costs other replicas' streams half a second.
    database.pool.query({ name: 'events_notify', text: `select pg_notify('${CHANNEL}', '')` }).catch(() => {});
  };

  async function prune({ signal }: Lead): Promise<void> {
    while (!signal.aborted) {
      await pruneEvents(database.pool).catch((error: Error) => log(`events cannot be pruned: ${error.message}`));
      await delay(options.pruneEveryMilliseconds ?? PRUNE_MILLISECONDS, undefined, { signal }).catch(() => {});
    }
  }

  /** One that fails ends the lead of all. */
  async function lead({ client, signal }: Lead): Promise<void> {
    const failing = new AbortController();
    const each: Lead = { client, signal: AbortSignal.any([signal, failing.signal]) };
    const work = [watch(each, { ...options, announce }), prune(each), ...tasks.map((task) => task.run(each))];
    const guarded = work.map((one) =>
      one.catch((error: unknown) => {
        failing.abort();
        throw error;
      }),
    );
    const results = await Promise.allSettled(guarded);
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined && !signal.aborted) throw failed.reason;
  }

  const listeners: Record<string, (payload: string) => void> = { [CHANNEL]: () => streams.wake() };
  for (const task of tasks) Object.assign(listeners, task.listeners);
  const election = startElection(database, { lead, listeners, log });
  return {
    streams,
    get leads() {
      return election.leads;
    },
    async stop() {
      streams.stop();
      await election.stop();
    },
  };
}
