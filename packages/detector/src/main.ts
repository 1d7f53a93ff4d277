/**
 * The detector, wired: collectors → detection → control plane, and back what is to be known. Owns start and stop, and which of
 * the addresses can be listened on; stopping ends no attack: whoever detects next takes it over.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DetectorReport } from '@levee/contract/detector.ts';
import { parseEndpoints } from '@levee/follow/endpoint.ts';
import { type DetectorConfig, keyFileName } from './config.ts';
import { openLink } from './link/link.ts';

export type { DetectorConfig, ListenAddress } from './config.ts';

export interface DetectorHandle {
  readonly connected: boolean;
  /** Where flow telemetry is taken: `127.0.0.1:6343`, with the port that was really taken. */
  readonly listening: readonly string[];
  /** Where it is not, each with the reason. */
  readonly refused: readonly string[];
  stop(): Promise<void>;
}

/**
 * Resolves when it receives; the control plane need not be there. Throws an Error with a sentence for the operator when the
 * settings are wrong or there is no key.
 */
export async function startDetector(config: DetectorConfig): Promise<DetectorHandle> {
  const endpoints = parseEndpoints(config.controlPlanes);
  mkdirSync(config.stateDirectory, { recursive: true, mode: 0o700 });
  const key = config.key ?? readKey(join(config.stateDirectory, keyFileName));
  const status = (): DetectorReport['status'] => ({
    listen: [],
    receive_buffers: [],
    kernel_drops: 0,
    tracked_destinations: 0,
    memory_bytes: process.memoryUsage.rss(),
  });
  const link = openLink({
    endpoints,
    key,
    stateDirectory: config.stateDirectory,
    logger: config.logger,
    ...(config.intervals !== undefined && { intervals: config.intervals }),
    status,
    settings() {},
    baselines() {},
    samplesWanted() {},
  });
  return {
    get connected() {
      return link.connected;
    },
    listening: [],
    refused: [],
    stop: () => link.stop(),
  };
}

function readKey(path: string): string {
  try {
    const key = readFileSync(path, 'utf8').trim();
    if (key !== '') return key;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(
      `the detector's key cannot be read from ${path} (${code}); announce it: POST /v1/operator/detector`,
    );
  }
  throw new Error(`${path} holds no detector key; announce it: POST /v1/operator/detector`);
}
