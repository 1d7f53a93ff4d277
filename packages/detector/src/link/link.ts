/**
 * A detector's connection with its control plane, as one thing: what it is to know comes in, what it found goes out, and
 * while nobody answers it goes on with what it knew last.
 */
import { randomUUID } from 'node:crypto';
import type {
  BaselineEntry,
  DetectedAttack,
  DetectorBaselines,
  DetectorReport,
  DetectorSettings,
  ExporterStatus,
  SamplesAnswer,
  SamplesWanted,
} from '@levee/contract/detector.ts';
import type { Endpoint } from '@levee/follow/endpoint.ts';
import { followLines } from '@levee/follow/follow-lines.ts';
import { createKeyAlarm } from '@levee/follow/key-alarm.ts';
import type { Logger } from 'pino';
import { keepSettings } from './kept-settings.ts';
import { createReporter } from './reporter.ts';
import { parseStreamMessage } from './stream-message.ts';

export interface LinkIntervals {
  /** A stream that says nothing for this long is dead. */
  readonly silenceMilliseconds: number;
  /** Longest pause before the next attempt. */
  readonly reconnectMilliseconds: number;
  readonly answerMilliseconds: number;
}

export const usualIntervals: LinkIntervals = {
  silenceMilliseconds: 15_000,
  reconnectMilliseconds: 5_000,
  answerMilliseconds: 10_000,
};

export interface LinkOptions {
  readonly endpoints: readonly Endpoint[];
  readonly key: string;
  readonly stateDirectory: string;
  readonly intervals?: Partial<LinkIntervals>;
  readonly logger: Logger;
  /** For each report. */
  status(): DetectorReport['status'];
  settings(settings: DetectorSettings): void;
  baselines(baselines: DetectorBaselines): void;
  samplesWanted(wanted: SamplesWanted): void;
}

export interface Link {
  readonly connected: boolean;
  /** The settings that the last run knew. */
  readonly remembered: DetectorSettings | undefined;
  /** Words about attacks that have not been answered yet. */
  readonly waiting: number;
  attacks(attacks: readonly DetectedAttack[]): void;
  baselines(entries: readonly BaselineEntry[]): void;
  account(exporters: readonly ExporterStatus[]): void;
  samples(answer: SamplesAnswer): void;
  /** Has what is usual, and the settings, told again. */
  refresh(): void;
  /** Resolves when everything that was handed over has been answered. */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

/** All of a large installation's settings are one line. */
const longestLineBytes = 64 << 20;
/** A last report may take this long. */
const graceMilliseconds = 1_000;
const keyRefused =
  "the control plane does not accept this detector's key: announce the detector again (POST /v1/operator/detector) and give it the new key; until then it detects by what it knew last and nobody is told";

export function openLink(options: LinkOptions): Link {
  const { endpoints, key, logger } = options;
  const intervals: LinkIntervals = { ...usualIntervals, ...options.intervals };
  const keyAlarm = createKeyAlarm(logger, keyRefused);
  const kept = keepSettings(options.stateDirectory);
  const reporter = createReporter({
    endpoints,
    key,
    run: randomUUID(),
    reconnectMilliseconds: intervals.reconnectMilliseconds,
    answerMilliseconds: intervals.answerMilliseconds,
    logger,
    keyAlarm,
    status: options.status,
  });
  const remembered = kept.read();

  const settings = (told: DetectorSettings): void => {
    options.settings(told);
    try {
      kept.write(told);
    } catch (error) {
      logger.error(
        { err: error },
        'the state directory cannot be written: a start without the control plane knows nothing new',
      );
    }
  };
  const stream = followLines({
    endpoints,
    key,
    silenceMilliseconds: intervals.silenceMilliseconds,
    reconnectMilliseconds: intervals.reconnectMilliseconds,
    longestLineBytes,
    logger,
    keyAlarm,
    trouble: 'not connected to the control plane; detection goes on by what was known last',
    open(endpoint, greeted) {
      let begun = false;
      return {
        path: '/detector/v1/stream',
        take(line) {
          const parsed = parseStreamMessage(line);
          if (!parsed.ok) return parsed.reason;
          const { message } = parsed;
          if (!begun && message?.type !== 'hello') return 'the stream does not begin with hello';
          switch (message?.type) {
            case 'hello':
              begun = true;
              greeted();
              reporter.prefer(endpoint);
              logger.info({ detector: message.detector.name, endpoint: endpoint.text }, 'connected');
              break;
            case 'settings':
              settings(message);
              break;
            case 'baselines':
              options.baselines(message);
              break;
            case 'samples_wanted':
              options.samplesWanted(message);
              break;
          }
          return undefined;
        },
      };
    },
  });
  return {
    get connected() {
      return stream.connected;
    },
    remembered,
    get waiting() {
      return reporter.waiting;
    },
    attacks: (attacks) => reporter.attacks(attacks),
    baselines: (entries) => reporter.baselines(entries),
    account: (exporters) => reporter.account(exporters),
    samples: (answer) => void reporter.samples(answer),
    refresh: () => stream.reopen(),
    idle: () => reporter.idle(),
    async stop() {
      const { connected } = stream;
      await stream.stop();
      await reporter.stop(connected ? graceMilliseconds : 0);
    },
  };
}
