/**
 * Holds detectors' streams: hello, what is usual, the settings whole and again whenever they are others, what samples are
 * wanted, a heartbeat. A detector that does not read is dropped: it comes back and is told everything. Never reads what
 * detectors report.
 */
import type { ServerResponse } from 'node:http';
import type { DetectorStreamMessage } from '@levee/contract/detector.ts';
import type pg from 'pg';
import { readBaselines } from '../store/detector-settings.ts';
import type { KnownDetector } from '../store/detectors.ts';
import type { SettingsFeed } from './settings-feed.ts';

export interface DetectorStreams {
  readonly count: number;
  /** Takes the response over, headers unsent. */
  open(response: ServerResponse, detector: KnownDetector, keyHash: string): void;
  /** To all that are connected here. */
  send(message: DetectorStreamMessage): void;
  /** Ends those streams of the detector whose key is no longer good. */
  recheck(detectorUuid: string, isGood: (keyHash: string) => Promise<boolean>): void;
  stop(): void;
}

export interface StreamsOptions {
  readonly heartbeatSeconds: number;
  readonly log: (message: string) => void;
}

/** What may wait for one detector. The settings of a large installation are a few MiB. */
const BACKLOG_BYTES = 64 * 1024 * 1024;
/** Told at the beginning: 168 hours of each vector of some thousands of destinations. */
const BASELINES_TOLD = 200_000;
const BASELINES_PER_LINE = 5_000;

export function createDetectorStreams(pool: pg.Pool, feed: SettingsFeed, options: StreamsOptions): DetectorStreams {
  const open = new Map<
    ServerResponse,
    { readonly detector: KnownDetector; readonly keyHash: string; begun: boolean }
  >();
  const lineOf = (message: DetectorStreamMessage) => `${JSON.stringify(message)}\n`;

  const write = (response: ServerResponse, line: string): void => {
    if (response.destroyed) return;
    response.write(line);
    if (response.writableLength > BACKLOG_BYTES) {
      options.log(`the stream of detector ${open.get(response)?.detector.name} is dropped: it does not read`);
      response.destroy();
    }
  };
  const sendAll = (message: DetectorStreamMessage): void => {
    const line = lineOf(message);
    for (const [response, { begun }] of open) if (begun) write(response, line);
  };
  const begin = async (response: ServerResponse): Promise<void> => {
    const baselines = await readBaselines(pool, BASELINES_TOLD);
    for (let i = 0; i < baselines.length; i += BASELINES_PER_LINE) {
      write(response, lineOf({ type: 'baselines', entries: baselines.slice(i, i + BASELINES_PER_LINE) }));
    }
    const stream = open.get(response);
    if (stream === undefined) return;
    stream.begun = true;
    // Where they have not been read yet, the first reading tells them.
    if (feed.present !== undefined) write(response, lineOf(feed.present));
  };
  const leave = feed.onChange(sendAll);
  const heartbeat = setInterval(() => {
    const line = lineOf({ type: 'heartbeat' });
    for (const response of open.keys()) write(response, line);
  }, options.heartbeatSeconds * 1000);

  return {
    get count() {
      return open.size;
    },
    open(response, detector, keyHash) {
      open.set(response, { detector, keyHash, begun: false });
      response.useChunkedEncodingByDefault = false;
      response.shouldKeepAlive = false;
      response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
      response.socket?.setNoDelay(true);
      response.on('close', () => open.delete(response));
      response.on('error', () => {});
      const { uuid, name } = detector;
      write(response, lineOf({ type: 'hello', detector: { uuid, name }, heartbeat_s: options.heartbeatSeconds }));
      begin(response).catch((error: Error) => {
        options.log(`the stream of detector ${name} ended: ${error.message}`);
        response.destroy();
      });
    },
    send: sendAll,
    recheck(detectorUuid, isGood) {
      for (const [response, { detector, keyHash }] of open) {
        if (detector.uuid !== detectorUuid) continue;
        // While that cannot be told it stays: what it may know it knows already.
        isGood(keyHash).then(
          (good) => good || response.destroy(),
          () => {},
        );
      }
    },
    stop() {
      leave();
      clearInterval(heartbeat);
      for (const response of open.keys()) response.destroy();
    },
  };
}
