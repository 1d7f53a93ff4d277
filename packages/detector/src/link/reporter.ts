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
import { createWaitingFigures } from './waiting-figures.ts';

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

export function createReporter(options: ReporterOptions): Reporter {
  const { endpoints, logger } = options;
  const caller: Caller = createCaller(options.answerMilliseconds);
  const asides: Caller = createCaller(options.answerMilliseconds);
  const backoff = createBackoff(options.reconnectMilliseconds);
  const outage = watchOutage(logger, 'a report was not taken; it is repeated');
  const waiting = createWaitingAttacks(({ id, dst }) =>
    logger.error({ attack: id, dst }, 'the control plane was away for too long: an attack is not told of'),
  );
  const figures = createWaitingFigures();
  let at = 0;
  let sequence = 0;
  /** A report was not understood: attacks go one by one and without anything else, to find which it was. */
  let isCareful = false;
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
    const attacks = waiting.take(isCareful ? 1 : MOST_ATTACKS, MOST_BYTES);
    const hasFigures = (!isCareful || attacks.length === 0) && figures.size > 0;
    const report: DetectorReport = {
      run: options.run,
      sequence: sequence++,
      attacks: [...attacks],
      ...(hasFigures && figures.take()),
      status: options.status(),
    };
    const endpoint = endpoints[at % endpoints.length] as Endpoint;
    const outcome = await post(caller, endpoint, '/detector/v1/report', report);
    sending = false;
    const isRefused = outcome.status === 400 || outcome.status === 413;
    if (outcome.status === 200) {
      waiting.settled();
      if (hasFigures) figures.settled();
      tellRefused(outcome.body);
      if (waiting.size + figures.size === 0) isCareful = false;
    } else if (isRefused) {
      becomesOfRefused(attacks, hasFigures, outcome.body);
    } else {
      waiting.returned();
      at += 1;
      outage.failed({ endpoint: endpoint.text, reason: outcome.reason });
      due = true;
      if (!stopped) {
        retry = setTimeout(() => {
          retry = undefined;
          void send();
        }, backoff.next());
      }
    }
    if (outcome.status === 200 || isRefused) {
      backoff.reset();
      outage.over();
      if (due || waiting.size + figures.size > 0) kick();
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
  /** What it cannot understand it never will: nothing else must wait for it, least of all an attack. */
  const becomesOfRefused = (attacks: readonly DetectedAttack[], hasFigures: boolean, reason: string): void => {
    const [attack] = attacks;
    if (attack === undefined) {
      if (!hasFigures || figures.refused()) logger.error({ reason }, 'figures were refused and are not repeated');
    } else if (attacks.length > 1 || hasFigures) {
      waiting.returned();
      isCareful = true;
      logger.error({ reason }, 'a report was refused; its attacks are told one by one');
    } else {
      // That it is attacked, or no longer, matters more than by what: nothing may go on because its end was refused.
      const becomes = waiting.bared() ? 'is told without what the attack looks like' : 'is not repeated';
      logger.error({ reason, attack: attack.id }, `a report was refused and ${becomes}`);
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
    for (const { field, message } of answer.left_out ?? [])
      logger.warn({ field, message }, 'a piece of a report was not taken');
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
      figures.baselines(entries);
      if (entries.length > 0) kick();
    },
    account(present) {
      figures.exporters(present);
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
