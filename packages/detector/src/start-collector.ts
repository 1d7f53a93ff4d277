/**
 * A collector alone: exporters → slots → NATS. Owns by which settings it goes: the newest that a detector told, before that the ones it
 * kept. Knows no control plane.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DetectorSettings } from '@levee/contract/detector.ts';
import { createNatsCollectorBus } from './bus/nats.ts';
import { openBusConnection } from './bus/nats-connection.ts';
import type { CollectorBus, ToCollector } from './bus/port.ts';
import { startCollector } from './collect/collector.ts';
import { WholeStatus } from './collect/whole-status.ts';
import type { DetectorConfig, DetectorHandle } from './config.ts';
import { keepSettings } from './link/kept-settings.ts';
import { SettingsTaker } from './share/settings-word.ts';

const statusMilliseconds = 1_000;

/** Resolves when it receives, or was refused to; NATS need not be there. Throws an Error with a sentence for the operator. */
export async function startCollectorAlone(config: DetectorConfig): Promise<DetectorHandle> {
  const { nats, stateDirectory, logger } = config;
  if (nats === undefined) throw new Error('a collector needs a NATS to tell what it counts');
  const name = nameIn(stateDirectory);
  const run = randomUUID();
  const kept = keepSettings(stateDirectory);
  const connection = openBusConnection(nats, logger.child({ bus: nats.name }));
  const bus = createNatsCollectorBus(connection, nats.name);
  const whole = new WholeStatus();
  let present: DetectorSettings | undefined = kept.read();
  const taker = new SettingsTaker(present?.revision);
  if (present === undefined)
    logger.info({}, 'knows no settings yet: all is counted as not protected until a detector tells');

  const take = (told: DetectorSettings): boolean => {
    if (!taker.take(told.revision, Date.now())) return false;
    present = told;
    try {
      kept.write(told);
    } catch (error) {
      logger.error(
        { err: error },
        'the state directory cannot be written: a start without a detector knows nothing new',
      );
    }
    return true;
  };
  const own: CollectorBus = {
    send(message) {
      if (message.type === 'status') whole.take(message);
      else bus.send(message);
    },
    onMessage(heard) {
      const known: ToCollector[] = present === undefined ? [] : [{ type: 'settings', settings: present }];
      for (const message of known) heard(message);
      bus.onMessage((message) => {
        if (message.type !== 'settings' || take(message.settings)) heard(message);
      });
    },
    close: () => bus.close(),
  };
  const collector = await startCollector({
    listen: config.listen,
    ...(config.workers !== undefined && { workers: config.workers }),
    bus: own,
    log: logger,
  });
  const tell = (): void => {
    if (connection.connected)
      bus.send(whole.of(name, run, present?.revision ?? 0, collector.status(), connection.counts.unsent));
  };
  const timer = setInterval(tell, statusMilliseconds);
  return {
    get connected() {
      return connection.connected;
    },
    nats: connection,
    get listening() {
      return collector.status().listening;
    },
    get refused() {
      return collector.status().refused;
    },
    waiting: 0,
    async stop() {
      clearInterval(timer);
      await collector.stop();
      bus.farewell(name);
      await bus.close();
    },
  };
}

/** Stays over restarts: detectors know by it that a collector is back. */
function nameIn(stateDirectory: string): string {
  const path = join(stateDirectory, 'collector.name');
  try {
    const name = readFileSync(path, 'utf8').trim();
    if (/^[0-9a-f-]{36}$/.test(name)) return name;
  } catch {
    // The first start.
  }
  const name = randomUUID();
  writeFileSync(path, `${name}\n`, { mode: 0o600 });
  return name;
}
