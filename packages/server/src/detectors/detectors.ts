/**
 * Everything that detectors need of the control plane, put together: what main starts and http mounts. Also knows their keys,
 * so that a report costs no look-up.
 */
import type { FastifyInstance } from 'fastify';
import { executorOf } from '../commands/executor.ts';
import { defaultMitigation, type MitigationSettings } from '../commands/mitigate-attack.ts';
import { saveAnswer } from '../commands/sample-exchange.ts';
import type { ChangeTail } from '../store/change-tail.ts';
import type { Database } from '../store/database.ts';
import { detectorByKey, type KnownDetector } from '../store/detectors.ts';
import { registerDetectorRoutes } from './routes.ts';
import { startSamplesRelay } from './samples-relay.ts';
import { startSettingsFeed } from './settings-feed.ts';
import { createDetectorStreams, type DetectorStreams } from './streams.ts';
import { takeReport } from './take-report.ts';

export interface Detectors {
  readonly streams: Pick<DetectorStreams, 'count' | 'send'>;
  /** Adds the routes of `detectorPaths`. */
  mount(app: FastifyInstance): void;
  /** Ends every stream at once. Call it before the HTTP server closes, which waits for open answers. */
  stop(): Promise<void>;
}

export interface DetectorsOptions {
  readonly heartbeatSeconds?: number;
  /** Absent: the usual one. */
  readonly mitigation?: MitigationSettings;
  /** Something was committed. */
  readonly committed: () => void;
  readonly log?: (message: string) => void;
  readonly logError?: (error: unknown, message: string) => void;
}

const HEARTBEAT_SECONDS = 5;
/** A removed detector's key stops working by the change log; this is for when that is not followed. */
const TRUSTED_MILLISECONDS = 1_000;

export function startDetectors(
  database: Pick<Database, 'pool' | 'connect'>,
  tail: ChangeTail,
  options: DetectorsOptions,
): Detectors {
  const { pool } = database;
  const log = options.log ?? (() => {});
  const logError = options.logError ?? ((error, message) => log(`${message}: ${(error as Error).message}`));
  const mitigation = { ...(options.mitigation ?? defaultMitigation), logError };
  const feed = startSettingsFeed(pool, tail, { log });
  const streams = createDetectorStreams(pool, feed, {
    heartbeatSeconds: options.heartbeatSeconds ?? HEARTBEAT_SECONDS,
    log,
  });
  const relay = startSamplesRelay(database, streams, log);
  const trusted = new Map<string, { readonly detector: KnownDetector; readonly until: number }>();
  const leave = tail.subscribe({
    changes({ entries, unsettled }) {
      for (const { kind, objectUuid } of [...entries, ...unsettled]) {
        if (kind !== 'detector') continue;
        trusted.clear();
        streams.recheck(objectUuid, async (keyHash) => (await detectorByKey(pool, keyHash)) !== undefined);
      }
    },
    gap: () => trusted.clear(),
  });
  return {
    streams,
    mount(app) {
      registerDetectorRoutes(app, {
        async byKeyHash(keyHash) {
          const known = trusted.get(keyHash);
          if (known !== undefined && known.until > Date.now()) return known.detector;
          trusted.delete(keyHash);
          const until = Date.now() + TRUSTED_MILLISECONDS;
          const detector = await detectorByKey(pool, keyHash);
          if (detector !== undefined) trusted.set(keyHash, { detector, until });
          return detector;
        },
        openStream: (response, detector, keyHash) => streams.open(response, detector, keyHash),
        async take(detector, read) {
          const { answer, wrote } = await takeReport(pool, detector.uuid, read, new Date(), mitigation);
          if (wrote) options.committed();
          return answer;
        },
        takeSamples: ({ uuid }, answer) => saveAnswer(executorOf(pool), uuid, answer),
        logError,
      });
    },
    async stop() {
      leave();
      streams.stop();
      await relay.stop();
      await feed.stop();
    },
  };
}
