/**
 * The detector, wired: collectors → detection → control plane, and back what is to be known. Owns start and stop; stopping ends
 * no attack: whoever detects next takes it over.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DetectorReport, DetectorSettings } from '@levee/contract/detector.ts';
import { parseEndpoints } from '@levee/follow/endpoint.ts';
import { createLocalBus } from './bus/local.ts';
import type { CollectorStatus } from './bus/port.ts';
import { type RunningCollector, startCollector } from './collect/collector.ts';
import { LOCAL_EXPORTER } from './collect/exporter.ts';
import { mergeExporters } from './collect/merge-exporters.ts';
import { type DetectorConfig, keyFileName, REPORT_MILLISECONDS } from './config.ts';
import { startDetection } from './detect/detection.ts';
import type { DetectionClock } from './detect/port.ts';
import { type Link, openLink } from './link/link.ts';
import { createWantedSamples } from './link/wanted-samples.ts';

export type { DetectorConfig, ListenAddress } from './config.ts';

export interface DetectorHandle {
  readonly connected: boolean;
  /** Words about attacks that the control plane has not answered yet. */
  readonly waiting: number;
  /** Where flow telemetry is taken: `127.0.0.1:6343`, with the port that was really taken. */
  readonly listening: readonly string[];
  /** Where it is not, each with the reason. */
  readonly refused: readonly string[];
  stop(): Promise<void>;
}

/** A collector that says nothing for so long is gone, and with it what its exporters did. */
const COLLECTOR_GONE_MILLISECONDS = 60_000;

/**
 * The control plane is given so long to tell the settings before those of the last run are gone by: they lack the attacks that began
 * just before its end, which would begin a second time.
 */
const REMEMBERED_AFTER_MILLISECONDS = 2_000;

const clock: DetectionClock = {
  now: Date.now,
  after(milliseconds, run) {
    const timer = setTimeout(run, milliseconds);
    return () => clearTimeout(timer);
  },
};

/**
 * Resolves when it receives, or was refused to; the control plane need not be there. Throws an Error with a sentence for the
 * operator when the settings are wrong or there is no key.
 */
export async function startDetector(config: DetectorConfig): Promise<DetectorHandle> {
  const { logger, stateDirectory } = config;
  const endpoints = parseEndpoints(config.controlPlanes);
  mkdirSync(stateDirectory, { recursive: true, mode: 0o700 });
  const key = config.key ?? readKey(join(stateDirectory, keyFileName));
  const bus = createLocalBus();
  const collectors = new Map<string, { readonly status: CollectorStatus; readonly atMs: number }>();

  const samples = createWantedSamples({
    send: (message) => bus.detector.send(message),
    answer: (answer) => link.samples(answer),
    collectors: () => collector.status().workers.length,
    now: clock.now,
  });
  const detection = startDetection({
    bus: bus.detector,
    name: randomUUID(),
    clock,
    newId: randomUUID,
    report({ attacks, baselines }) {
      link.attacks(attacks);
      link.baselines(baselines);
    },
    log: logger,
    passOn(message) {
      if (message.type === 'samples') samples.heard(message);
      else collectors.set(message.collector, { status: message, atMs: clock.now() });
    },
  });
  const collector: RunningCollector = await startCollector({
    listen: config.listen,
    ...(config.workers !== undefined && { workers: config.workers }),
    bus: bus.collector,
    log: logger,
  });
  const status = (): DetectorReport['status'] => {
    const { listening, workers, kernelDrops } = collector.status();
    return {
      listen: [...listening],
      receive_buffers: workers.map(({ receiveBuffer }) => receiveBuffer),
      kernel_drops: kernelDrops,
      tracked_destinations: detection.status().trackedDestinations,
      memory_bytes: process.memoryUsage.rss(),
    };
  };
  let patience: NodeJS.Timeout | undefined;
  const settings = (told: DetectorSettings): void => {
    clearTimeout(patience);
    bus.detector.send({ type: 'settings', settings: told });
    detection.settings(told);
  };
  const link: Link = openLink({
    endpoints,
    key,
    stateDirectory,
    logger,
    ...(config.intervals !== undefined && { intervals: config.intervals }),
    status,
    settings,
    baselines: (baselines) => detection.baselines(baselines),
    samplesWanted: (wanted) => samples.ask(wanted),
  });
  const { remembered } = link;
  if (remembered !== undefined) patience = setTimeout(() => settings(remembered), REMEMBERED_AFTER_MILLISECONDS);
  const account = (): void => {
    for (const [name, { atMs }] of collectors) {
      if (clock.now() - atMs > COLLECTOR_GONE_MILLISECONDS) collectors.delete(name);
    }
    const all = mergeExporters([...collectors.values()].map(({ status }) => status.exporters));
    // Those that are taken without being configured have no uuid that the control plane knows.
    link.account(
      all.map(({ uuid, ...rest }) => (uuid === undefined || uuid === LOCAL_EXPORTER ? rest : { ...rest, uuid })),
    );
  };
  account();
  const timer = setInterval(account, config.intervals?.reportMilliseconds ?? REPORT_MILLISECONDS);
  return {
    get connected() {
      return link.connected;
    },
    get waiting() {
      return link.waiting;
    },
    get listening() {
      return collector.status().listening;
    },
    get refused() {
      return collector.status().refused;
    },
    async stop() {
      clearInterval(timer);
      clearTimeout(patience);
      await collector.stop();
      detection.stop();
      samples.stop();
      await link.stop();
    },
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
