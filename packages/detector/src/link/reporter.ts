/**
 * Tells the control plane what was detected: one report at a time, in order, each until it is answered. Owns order and
 * repetition; detects nothing and knows no exporter.
 */
import type {
  BaselineEntry,
  DetectedAttack,
  DetectorReport,
  DetectorReportAnswer,
  ExporterStatus,
} from '@levee/contract/detector.ts';
import { createBackoff } from '@levee/follow/backoff.ts';
import { type Caller, createCaller, type Endpoint } from '@levee/follow/endpoint.ts';
import type { KeyAlarm } from '@levee/follow/key-alarm.ts';
import { watchOutage } from '@levee/follow/outage.ts';
import type { Logger } from 'pino';
import { createWaitingAttacks } from './waiting-attacks.ts';

export interface ReporterOptions {
  readonly endpoints: readonly Endpoint[];
  readonly key: string;
  /** uuid of this run. */
  readonly run: string;
  readonly reconnectMilliseconds: number;
  readonly answerMilliseconds: number;
  readonly logger: Logger;
  readonly keyAlarm: KeyAlarm;
  status(): DetectorReport['status'];
}

export interface Reporter {
  /** Words about attacks that have not been answered yet. */
  readonly waiting: number;
  /** At once, if nothing else is on its way. */
  attacks(attacks: readonly DetectedAttack[]): void;
  /** With the next report; an entry of the same destination, vector and hour stands instead of an earlier one. */
  baselines(entries: readonly BaselineEntry[]): void;
  /** What exporters do, and the status: the periodic report. */
  account(exporters: readonly ExporterStatus[]): void;
  /** Prefer this address: the stream came up there. */
  prefer(endpoint: Endpoint): void;
  /** An answer to a request of the stream; tried once, on a connection of its own. */
  samples(answer: object): Promise<void>;
  /** Resolves when everything has been answered. */
  idle(): Promise<void>;
  /** Gives what waits so many milliseconds more. */
  stop(graceMilliseconds: number): Promise<void>;
}

const MOST_ATTACKS = 200;
const MOST_BYTES = 4 * 1024 * 1024;
const MOST_BASELINES = 5_000;
/** Those that wait; they come again with every reading. */
const BASELINES_KEPT = 100_000;

export function createReporter(options: ReporterOptions): Reporter {
  const { endpoints, logger } = options;
  const caller: Caller = createCaller(options.answerMilliseconds);
  const asides: Caller = createCaller(options.answerMilliseconds);
  const backoff = createBackoff(options.reconnectMilliseconds);
  const outage = watchOutage(logger, 'a report was not taken; it is repeated');
  const waiting = createWaitingAttacks(({ id, dst }) =>
    logger.error({ attack: id, dst }, 'the control plane was away for too long: an attack is not told of'),
  );
  const gathered = new Map<string, BaselineEntry>();
  let exporters: readonly ExporterStatus[] | undefined;
  let at = 0;
  let sequence = 0;
  /** How many attacks go at once: one, after a report that was not understood, to find which it was. */
  let most = MOST_ATTACKS;
  let due = false;
  let sending = false;
  let stopped = false;
  let retry: NodeJS.Timeout | undefined;
  const idlers: (() => void)[] = [];

  const isIdle = (): boolean => stopped || (!due && !sending && retry === undefined);
  const settle = (): void => {
    if (!isIdle()) return;
    for (const resolve of idlers.splice(0)) resolve();
  };

  const send = async (): Promise<void> => {
    sending = true;
    due = false;
    const attacks = waiting.take(most, MOST_BYTES);
    const baselines = [...gathered].slice(0, MOST_BASELINES);
    const told = exporters;
    const report: DetectorReport = {
      run: options.run,
      sequence: sequence++,
      attacks: [...attacks],
      ...(told !== undefined && { exporters: [...told] }),
      ...(baselines.length > 0 && { baselines: baselines.map(([, entry]) => entry) }),
      status: options.status(),
    };
    const endpoint = endpoints[at % endpoints.length] as Endpoint;
    const outcome = await post(caller, endpoint, '/detector/v1/report', report);
    sending = false;
    // What it cannot understand it never will: nothing else must wait for it, least of all an attack.
    const isMalformed = outcome.status === 400 || outcome.status === 413;
    const isAlone = told === undefined && baselines.length === 0 && attacks.length <= 1;
    if (outcome.status === 200 || isMalformed) {
      for (const [name, entry] of baselines) if (gathered.get(name) === entry) gathered.delete(name);
      if (exporters === told) exporters = undefined;
    }
    if (outcome.status === 200 || (isMalformed && isAlone)) {
      if (isMalformed) {
        // That it is attacked, or no longer, matters more than by what: nothing may go on because its end was refused.
        const becomes = waiting.bared() ? 'is told without what the attack looks like' : 'is not repeated';
        logger.error({ reason: outcome.body, attack: attacks[0]?.id }, `a report was refused and ${becomes}`);
      } else {
        waiting.settled();
        tellRefused(outcome.body);
        if (waiting.size === 0) most = MOST_ATTACKS;
      }
      backoff.reset();
      outage.over();
      if (due || waiting.size > 0 || gathered.size > 0) kick();
    } else {
      waiting.returned();
      if (isMalformed) {
        logger.error({ reason: outcome.body }, 'a report was refused; its attacks are told one by one');
        most = 1;
      } else {
        at += 1;
        outage.failed({ endpoint: endpoint.text, reason: outcome.reason });
      }
      due = true;
      if (!stopped) {
        const again = (): void => {
          retry = undefined;
          void send();
        };
        retry = setTimeout(again, isMalformed ? 0 : backoff.next());
      }
    }
    settle();
  };

  const post = async (by: Caller, endpoint: Endpoint, path: string, body: unknown) => {
    try {
      const answer = await by.post(endpoint, path, { authorization: `Bearer ${options.key}` }, body);
      options.keyAlarm(endpoint.text, answer.status);
      return { ...answer, reason: `answered ${answer.status}` };
    } catch (error) {
      return { status: 0, body: '', reason: (error as NodeJS.ErrnoException).code ?? (error as Error).message };
    }
  };
  const tellRefused = (body: string): void => {
    let answer: DetectorReportAnswer;
    try {
      answer = JSON.parse(body) as DetectorReportAnswer;
    } catch {
      return;
    }
    for (const { id, message } of answer.refused ?? [])
      logger.warn({ attack: id, message }, 'an attack was not recorded');
  };
  const kick = (): void => {
    due = true;
    if (!sending && retry === undefined && !stopped) void send();
  };

  return {
    get waiting() {
      return waiting.size;
    },
    attacks(attacks) {
      for (const attack of attacks) waiting.add(attack);
      if (attacks.length > 0) kick();
    },
    baselines(entries) {
      for (const entry of entries) {
        const key = `${entry.dst} ${entry.vector} ${entry.hour}`;
        if (gathered.has(key) || gathered.size < BASELINES_KEPT) gathered.set(key, entry);
      }
      if (entries.length > 0) kick();
    },
    account(present) {
      exporters = present;
      kick();
    },
    prefer(endpoint) {
      at = Math.max(0, endpoints.indexOf(endpoint));
      if (retry === undefined) return;
      // The way is open again: nothing waits for the next attempt.
      clearTimeout(retry);
      retry = undefined;
      kick();
    },
    async samples(answer) {
      const outcome = await post(asides, endpoints[at % endpoints.length] as Endpoint, '/detector/v1/samples', answer);
      if (outcome.status !== 200) logger.warn({ reason: outcome.reason }, 'samples that were asked for did not arrive');
    },
    idle: () =>
      new Promise((resolve) => {
        idlers.push(resolve);
        settle();
      }),
    async stop(graceMilliseconds) {
      if (!isIdle() && graceMilliseconds > 0) {
        const { promise, resolve } = Promise.withResolvers<void>();
        const timer = setTimeout(resolve, graceMilliseconds);
        idlers.push(resolve);
        await promise;
        clearTimeout(timer);
      }
      stopped = true;
      clearTimeout(retry);
      for (const resolve of idlers.splice(0)) resolve();
      caller.close();
      asides.close();
    },
  };
}
