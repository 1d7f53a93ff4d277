/**
 * Tells the detectors that are connected to this replica which samples somebody wants, whichever replica was asked. Owns the
 * connection that hears of it; knows neither who asked nor what comes back.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { executorOf } from '../commands/executor.ts';
import { noteTold, SAMPLES_CHANNEL, type SampleRequest } from '../commands/sample-exchange.ts';
import type { Database } from '../store/database.ts';
import type { DetectorStreams } from './streams.ts';

export interface SamplesRelay {
  stop(): Promise<void>;
}

const ANSWER_MILLISECONDS = 15_000;
/** A connection that was cut off without a word says nothing: it is asked now and then. */
const ASK_MILLISECONDS = 5_000;
const LONGEST_PAUSE_MILLISECONDS = 1_000;

export function startSamplesRelay(
  database: Pick<Database, 'pool' | 'connect'>,
  streams: Pick<DetectorStreams, 'count' | 'send'>,
  log: (message: string) => void,
): SamplesRelay {
  const stopping = new AbortController();
  const { signal } = stopping;

  const relay = (payload: string): void => {
    const detectors = streams.count;
    if (detectors === 0) return;
    const { uuid, dst, seconds, most } = JSON.parse(payload) as SampleRequest;
    streams.send({ type: 'samples_wanted', request: uuid, dst, seconds, most });
    noteTold(executorOf(database.pool), uuid, detectors).catch((error: Error) => {
      log(`it could not be noted who was asked for samples: ${error.message}`);
    });
  };

  async function follow(): Promise<void> {
    const client: pg.Client = await database.connect('levee samples', ANSWER_MILLISECONDS);
    const ended = new AbortController();
    client.on('end', () => ended.abort());
    client.on('error', () => ended.abort());
    client.on('notification', ({ payload }) => relay(payload ?? ''));
    try {
      await client.query(`listen ${SAMPLES_CHANNEL}`);
      const over = AbortSignal.any([signal, ended.signal]);
      while (!over.aborted) {
        await delay(ASK_MILLISECONDS, undefined, { signal: over }).catch(() => {});
        if (!over.aborted) await client.query('select 1');
      }
    } finally {
      await client.end().catch(() => {});
    }
  }

  async function run(): Promise<void> {
    let pause = 50;
    while (!signal.aborted) {
      const began = Date.now();
      await follow().catch((error: Error) => log(`requests for samples cannot be heard: ${error.message}`));
      pause = Date.now() - began > LONGEST_PAUSE_MILLISECONDS ? 50 : Math.min(pause * 2, LONGEST_PAUSE_MILLISECONDS);
      await delay(pause, undefined, { signal }).catch(() => {});
    }
  }
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
