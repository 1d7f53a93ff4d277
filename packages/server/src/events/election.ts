/**
 * One of all replicas carries out what must be done by one alone: who holds an advisory lock, on a connection of its own.
 * The lock goes with the connection, so that what is written on that very connection is never written by two. Owns the
 * connection, which also listens for what other replicas tell; knows nothing of what the leader does.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Database } from '../store/database.ts';
import { leadLocksOn } from '../store/lead-locks.ts';
import { endsWithin } from './ends-within.ts';

export interface Lead {
  /** Holds the lock: a write on it fails once the lock is lost. */
  readonly client: pg.Client;
  /** Aborted when the lock is lost, or this replica stops. */
  readonly signal: AbortSignal;
}

export interface Election {
  readonly leads: boolean;
  /** Hands the lead over when it has it, and waits for what it does to end, within reason. */
  stop(): Promise<void>;
}

export interface ElectionOptions {
  /** Leads until `signal` is aborted; when it throws, another try follows, perhaps by another replica. */
  readonly lead: (lead: Lead) => Promise<void>;
  /** Channel → what is to be done when another replica, or this one, tells something on it. */
  readonly listeners: Readonly<Record<string, (payload: string) => void>>;
  readonly askEveryMilliseconds?: number;
  readonly log?: (message: string) => void;
}

const LEAD = 'levee events';
/** Not waited for inside a statement: that would hold back vacuum for as long as the leader lives. */
const ASK_MILLISECONDS = 1_000;
const ANSWER_MILLISECONDS = 15_000;
const LONGEST_PAUSE_MILLISECONDS = 1_000;
const CLOSE_MILLISECONDS = 2_000;
/** Longer than the end of a lead and of its connection takes. */
const STOP_MILLISECONDS = 6_000;
/**
 * A leader whose machine is gone without a word loses its lock within seconds (no effect on a unix socket). What takes
 * longer than is waited for must not go on after that, nor hold the horizon back.
 */
const SETTINGS = `select set_config('tcp_keepalives_idle', '1', false), set_config('tcp_keepalives_interval', '1', false),
  set_config('tcp_keepalives_count', '2', false), set_config('statement_timeout', '${ANSWER_MILLISECONDS - 2_000}', false),
  set_config('idle_in_transaction_session_timeout', '${ANSWER_MILLISECONDS}', false)`;

export function startElection(database: Pick<Database, 'connect'>, options: ElectionOptions): Election {
  const log = options.log ?? (() => {});
  const stopping = new AbortController();
  const { signal: stopped } = stopping;
  let leads = false;

  async function connect(): Promise<{ client: pg.Client; gone: AbortSignal }> {
    const client = await database.connect(LEAD, ANSWER_MILLISECONDS);
    const ended = new AbortController();
    client.on('end', () => ended.abort());
    client.on('notification', ({ channel, payload }) => options.listeners[channel]?.(payload ?? ''));
    try {
      await client.query(SETTINGS);
      for (const channel of Object.keys(options.listeners)) await client.query(`listen ${channel}`);
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
    return { client, gone: AbortSignal.any([ended.signal, stopped]) };
  }

  async function run(): Promise<void> {
    let pause = 50;
    let failing = false;
    while (!stopped.aborted) {
      let client: pg.Client | undefined;
      try {
        const connection = await connect();
        client = connection.client;
        await askAndLead(client, connection.gone, () => {
          pause = 50;
          if (failing) log('events are written again');
          failing = false;
        });
      } catch (error) {
        if (!failing && !stopped.aborted) log(`events cannot be written at present: ${(error as Error).message}`);
        failing = true;
      } finally {
        leads = false;
        // A server that fell silent does not close it either.
        if (client !== undefined) await endsWithin(client.end(), CLOSE_MILLISECONDS);
      }
      await delay(pause, undefined, { signal: stopped }).catch(() => {});
      pause = Math.min(pause * 2, LONGEST_PAUSE_MILLISECONDS);
    }
  }

  async function askAndLead(client: pg.Client, signal: AbortSignal, well: () => void): Promise<void> {
    const locks = leadLocksOn(client, { log });
    let has = false;
    while (!signal.aborted) {
      has ||= (await locks.take([LEAD])).length > 0;
      if (!has) {
        well();
        await delay(options.askEveryMilliseconds ?? ASK_MILLISECONDS, undefined, { signal }).catch(() => {});
        continue;
      }
      leads = true;
      const settled = setTimeout(well, LONGEST_PAUSE_MILLISECONDS);
      try {
        await options.lead({ client, signal });
      } finally {
        clearTimeout(settled);
      }
    }
  }

  const running = run();
  return {
    get leads() {
      return leads;
    },
    async stop() {
      stopping.abort();
      await endsWithin(running, STOP_MILLISECONDS);
    },
  };
}
