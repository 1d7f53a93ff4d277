/**
 * Everything about events of one replica, put together: the election, what the leader does, the streams. What main starts
 * and http opens streams at.
 */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../store/database.ts';
import { type Lead, startElection } from './election.ts';
import { endsWithin } from './ends-within.ts';
import { pruneEvents, pruneReleased } from './prune-events.ts';
import { createEventStreams, type EventStreams, type StreamsOptions } from './streams.ts';
import { type WatcherServices, watch } from './watcher.ts';

export interface Events {
  readonly streams: EventStreams;
  /** Whether this replica writes the events of all. */
  readonly leads: boolean;
  stop(): Promise<void>;
}

/** What else the leader does while it leads: beside the events, which never wait for it and do not end with it. */
export interface LeadersTask {
  /** For the log. */
  readonly name: string;
  /** Resolves when the lead is over. When it throws it is begun again, after a while. */
  readonly run: (lead: Lead) => Promise<void>;
  /** Events were committed. */
  readonly news?: () => void;
  /** Channel → what another replica tells. */
  readonly listeners?: Readonly<Record<string, (payload: string) => void>>;
}

export interface EventsOptions extends Omit<WatcherServices, 'announce'> {
  readonly tasks?: readonly LeadersTask[];
  readonly streams?: StreamsOptions;
  readonly pruneEveryMilliseconds?: number;
  /** How long the end of a lead waits for what was under way. */
  readonly endMilliseconds?: number;
  readonly log?: (message: string) => void;
}

const CHANNEL = 'levee_event';
const PRUNE_MILLISECONDS = 60_000;
const END_MILLISECONDS = 3_000;
const FIRST_PAUSE_MILLISECONDS = 100;
const LONGEST_PAUSE_MILLISECONDS = 10_000;

export function startEvents(database: Pick<Database, 'connect' | 'pool'>, options: EventsOptions): Events {
  const log = options.log ?? (() => {});
  const { tasks = [] } = options;
  const streams = createEventStreams(database.pool, { log, ...options.streams });
  const announce = () => {
    streams.wake();
    for (const { news } of all) news?.();
    // Lost, it costs other replicas' streams half a second.
    database.pool.query({ name: 'events_notify', text: `select pg_notify('${CHANNEL}', '')` }).catch(() => {});
  };

  const prune: LeadersTask = {
    name: 'forgetting events',
    async run({ signal }) {
      for (let looked = 0; !signal.aborted; ) {
        await pruneEvents(database.pool, signal);
        looked = await pruneReleased(database.pool, looked, signal);
        await delay(options.pruneEveryMilliseconds ?? PRUNE_MILLISECONDS, undefined, { signal }).catch(() => {});
      }
    },
  };
  const all = [prune, ...tasks];

  async function keepUp({ name, run }: LeadersTask, lead: Lead): Promise<void> {
    let pause = FIRST_PAUSE_MILLISECONDS;
    let failedAt = Number.NEGATIVE_INFINITY;
    while (!lead.signal.aborted) {
      const failure = await run(lead).catch((error: Error) => error);
      if (lead.signal.aborted) return;
      const isNew = Date.now() - failedAt > 2 * LONGEST_PAUSE_MILLISECONDS;
      if (isNew) log(`${name} fails: ${failure?.message ?? 'it ended'}`);
      pause = isNew ? FIRST_PAUSE_MILLISECONDS : Math.min(pause * 2, LONGEST_PAUSE_MILLISECONDS);
      failedAt = Date.now();
      await delay(pause, undefined, { signal: lead.signal }).catch(() => {});
    }
  }

  /** Whatever hangs, the lock goes on to whoever can take it: what is left behind writes nothing on its connection. */
  async function lead({ client, signal }: Lead): Promise<void> {
    const ending = new AbortController();
    const each: Lead = { client, signal: AbortSignal.any([signal, ending.signal]) };
    const events = watch(each, { ...options, announce }).finally(() => ending.abort());
    const beside = Promise.all(all.map((task) => keepUp(task, each)));
    if (!each.signal.aborted) await once(each.signal, 'abort');
    const milliseconds = options.endMilliseconds ?? END_MILLISECONDS;
    if (!(await endsWithin(Promise.allSettled([events, beside]), milliseconds)))
      log('a lead ended with work under way');
    else if (!signal.aborted) await events;
  }

  const listeners: Record<string, (payload: string) => void> = { [CHANNEL]: () => streams.wake() };
  for (const task of all) Object.assign(listeners, task.listeners);
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
