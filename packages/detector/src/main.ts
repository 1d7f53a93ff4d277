/**
 * The detector, wired: collectors → detection → control plane, and back what is to be known. Owns start and stop; stopping ends
 * no attack: whoever detects next takes it over.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { DetectorReport, DetectorSettings } from '@levee/contract/detector.ts';
import { parsePrefix } from '@levee/core/net/prefix-text.ts';
import { lockDirectory } from '@levee/follow/directory-lock.ts';
import { parseEndpoints } from '@levee/follow/endpoint.ts';
import { type Collectors, joinCollectors, startOwnCollector } from './collectors.ts';
import { type DetectorConfig, type DetectorHandle, keyFileName, REPORT_MILLISECONDS } from './config.ts';
import { systemClock as clock } from './detect/clock.ts';
import { startDetection } from './detect/detection.ts';
import type { Detection } from './detect/port.ts';
import { readKey } from './detector-key.ts';
import { type Link, openLink } from './link/link.ts';
import { createWantedSamples } from './link/wanted-samples.ts';
import { startCollectorAlone } from './start-collector.ts';

export type { DetectorConfig, DetectorHandle, ListenAddress } from './config.ts';

/**
 * The control plane is given so long to tell the settings before those of the last run are gone by: they lack the attacks that began
 * just before its end, which would begin a second time.
 */
const REMEMBERED_AFTER_MILLISECONDS = 2_000;

/**
 * Resolves when it receives, or was refused to; neither the control plane nor NATS need be there. Throws an Error with a sentence for the
 * operator when the settings are wrong, there is no key, or the state directory is in use.
 */
export async function startDetector(config: DetectorConfig): Promise<DetectorHandle> {
  const { stateDirectory, role } = config;
  const lock = lockDirectory(stateDirectory, 'detector.lock');
  if (!lock.ok) {
    const who = `another collector or detector (process ${lock.holder || 'unknown'})`;
    throw new Error(`the state directory ${stateDirectory} is in use by ${who}: each needs its own, detect.state_dir`);
  }
  try {
    const handle = await (role === 'collect' ? startCollectorAlone(config) : startDetecting(config));
    const stop = handle.stop.bind(handle);
    handle.stop = () => stop().finally(() => lock.release());
    return handle;
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function startDetecting(config: DetectorConfig): Promise<DetectorHandle> {
  const { logger, stateDirectory } = config;
  const endpoints = parseEndpoints(config.controlPlanes);
  const key = config.key ?? readKey(join(stateDirectory, keyFileName));
  const detector = randomUUID();
  // These three know of each other what is there when one of them has something to say.
  let link: Link | undefined;
  let detection: Detection | undefined;
  let present: DetectorSettings | undefined;
  let isStarting = true;

  const attacksHeard = (): void => {
    if (present !== undefined) detection?.settings(collectors.completed(present));
  };
  const shareChanged = (gained: boolean): void => {
    attacksHeard();
    detection?.shareChanged();
    // What is usual there was learnt by somebody else; at the start it is told anyway.
    if (gained && !isStarting) link?.refresh();
    isStarting = false;
    // Whoever looks at it sees at once who has what.
    link?.account(collectors.exporters);
  };
  const collectors: Collectors =
    config.role === 'detect'
      ? joinCollectors(config, {
          detector,
          isInformed: () => present !== undefined,
          isLinked: () => link?.connected ?? false,
          shareChanged,
          attacksHeard,
        })
      : await startOwnCollector(config);
  const { bus } = collectors;
  const samples = createWantedSamples({
    send: (message) => bus.send(message),
    answer: (answer) => link?.samples(answer),
    collectors: () => collectors.count,
    now: clock.now,
  });
  detection = startDetection({
    bus,
    name: detector,
    clock,
    newId: randomUUID,
    isOurs: (destination) => collectors.isOurs(destination),
    isCollectorAway: () => collectors.isCollectorAway(),
    report({ attacks, baselines }) {
      // The others first: what is lost with this process is taken over from them.
      collectors.attacks(attacks);
      for (const { id, dst, phase } of attacks) {
        if (phase !== 'changed') logger.info({ attack: id, dst }, `an attack has ${phase}`);
      }
      link?.attacks(attacks);
      link?.baselines(baselines);
    },
    log: logger,
    passOn(message) {
      if (message.type === 'samples') samples.heard(message);
      else collectors.heard(message);
    },
  });
  const detecting = detection;
  const status = (): DetectorReport['status'] => ({
    ...collectors.status,
    tracked_destinations: detecting.status().trackedDestinations,
    memory_bytes: process.memoryUsage.rss(),
  });
  let patience: NodeJS.Timeout | undefined;
  const settings = (told: DetectorSettings): void => {
    clearTimeout(patience);
    present = told;
    collectors.settings(told);
    detecting.settings(collectors.completed(told));
  };
  const linked = openLink({
    endpoints,
    key,
    stateDirectory,
    logger,
    ...(config.intervals !== undefined && { intervals: config.intervals }),
    status,
    settings,
    baselines: (baselines) => detecting.baselines(baselines),
    samplesWanted(wanted) {
      // Every detector is asked, and all hear the same collectors: one of them answers with what these hold.
      const read = parsePrefix(wanted.dst);
      if (read.ok && collectors.isOurs(read.prefix)) samples.ask(wanted);
      else linked.samples({ request: wanted.request, held: 0, packets: [] });
    },
  });
  link = linked;
  const { remembered } = linked;
  if (remembered !== undefined) patience = setTimeout(() => settings(remembered), REMEMBERED_AFTER_MILLISECONDS);
  const account = (): void => linked.account(collectors.exporters);
  account();
  const timer = setInterval(account, config.intervals?.reportMilliseconds ?? REPORT_MILLISECONDS);
  return {
    get connected() {
      return linked.connected;
    },
    ...(collectors.nats !== undefined && { nats: collectors.nats }),
    get listening() {
      return collectors.listening;
    },
    get refused() {
      return collectors.refused;
    },
    get waiting() {
      return linked.waiting;
    },
    async stop() {
      clearInterval(timer);
      clearTimeout(patience);
      await collectors.stop();
      detecting.stop();
      samples.stop();
      await linked.stop();
    },
  };
}
