/**
 * What a detector's collectors are: in its own process, or others behind NATS among whose detectors it has a share. Owns the wiring of
 * either, so that whoever detects sees no difference.
 */
import type { DetectedAttack, DetectorReport, DetectorSettings, ExporterStatus } from '@levee/contract/detector.ts';
import type { Prefix } from '@levee/core/net/prefix.ts';
import { parsePrefix } from '@levee/core/net/prefix-text.ts';
import { createLocalBus } from './bus/local.ts';
import { createNatsDetectorBus } from './bus/nats.ts';
import { type BusCounts, openBusConnection } from './bus/nats-connection.ts';
import { partitionOfPrefix } from './bus/partition.ts';
import type { CollectorStatus, DetectorBus } from './bus/port.ts';
import { startCollector } from './collect/collector.ts';
import { LOCAL_EXPORTER } from './collect/exporter.ts';
import { WholeStatus } from './collect/whole-status.ts';
import type { DetectorConfig, NatsStanding } from './config.ts';
import { CollectorWatch } from './share/collector-watch.ts';
import { takeSeat } from './share/seat.ts';
import { SettingsTeller } from './share/settings-word.ts';
import { SharedAttacks } from './share/shared-attacks.ts';

export interface Collectors {
  /** Absent: they are our own. */
  readonly nats?: NatsStanding;
  readonly bus: DetectorBus;
  readonly listening: readonly string[];
  readonly refused: readonly string[];
  readonly exporters: readonly ExporterStatus[];
  /** How many answer when all are asked. */
  readonly count: number;
  readonly status: Omit<DetectorReport['status'], 'tracked_destinations' | 'memory_bytes'>;
  isOurs(destination: Prefix): boolean;
  isCollectorAway(): boolean;
  heard(status: CollectorStatus): void;
  /** What the other detectors know besides. */
  completed(settings: DetectorSettings): DetectorSettings;
  /** To be told collectors and other detectors. */
  settings(settings: DetectorSettings): void;
  attacks(attacks: readonly DetectedAttack[]): void;
  stop(): Promise<void>;
}

export interface CollectorsHost {
  readonly detector: string;
  readonly isInformed: () => boolean;
  readonly isLinked: () => boolean;
  /** `gained`: there is something in the share that was not ours. */
  readonly shareChanged: (gained: boolean) => void;
  /** Another detector has told of attacks that are in the share. */
  readonly attacksHeard: () => void;
}

type Overflow = CollectorStatus['overflow'];

export async function startOwnCollector(config: DetectorConfig): Promise<Collectors> {
  const bus = createLocalBus();
  const whole = new WholeStatus();
  const collector = await startCollector({
    listen: config.listen,
    ...(config.workers !== undefined && { workers: config.workers }),
    bus: bus.collector,
    log: config.logger,
  });
  return {
    bus: bus.detector,
    get listening() {
      return collector.status().listening;
    },
    get refused() {
      return collector.status().refused;
    },
    get exporters() {
      return collector.status().exporters.map(withoutLocalUuid);
    },
    get count() {
      return collector.status().workers.length;
    },
    get status() {
      const { listening, refused, workers, kernelDrops } = collector.status();
      return {
        listen: [...listening],
        refused: [...refused],
        receive_buffers: workers.map(({ receiveBuffer }) => receiveBuffer),
        kernel_drops: kernelDrops,
        overflow: told(whole.overflow),
      };
    },
    isOurs: () => true,
    isCollectorAway: () => false,
    heard: (status) => whole.take(status),
    completed: (settings) => settings,
    settings: (settings) => bus.detector.send({ type: 'settings', settings }),
    attacks: () => undefined,
    stop: () => collector.stop(),
  };
}

/** Of a collector that is away for so long nothing is told any more. */
const goneMilliseconds = 60_000;
const mostExporters = 4_000;
const isDoubled =
  'two collectors go by this name, as the state directory of one was copied: what they tell is mixed up; remove collector.name in one of them and start it again';

export function joinCollectors(config: DetectorConfig, host: CollectorsHost): Collectors {
  const { nats, logger } = config;
  if (nats === undefined) throw new Error('a detector without collectors of its own needs a NATS to hear others');
  const connection = openBusConnection(nats, logger.child({ bus: nats.name }));
  const { detector } = host;
  const bus = createNatsDetectorBus(connection, nats.name, detector);
  const watch = new CollectorWatch();
  const shared = new SharedAttacks();
  let present: DetectorSettings | undefined;
  const teller = new SettingsTeller();
  const collectors = (): CollectorStatus[] => watch.statuses(Date.now(), goneMilliseconds);
  const tellAttacks = (): void => {
    const ongoing = shared.ongoing((dst) => isIn(seat.share, dst));
    bus.tell({ type: 'attacks', detector, ongoing, ended: shared.ended });
  };
  const tellSettings = (): void => {
    if (present === undefined) return;
    teller.told(Date.now());
    bus.send({ type: 'settings', settings: present });
  };
  bus.onNews((message) => {
    if (message.type === 'attacks') {
      shared.heard(message);
      // Said a moment before the share was handed over, or by one that does not know yet that it was.
      if (message.ongoing.some(({ dst }) => isIn(seat.share, dst))) host.attacksHeard();
    }
    if (message.type === 'farewell') watch.left(message.name);
  });
  connection.onConnection((connected) => connected && tellSettings());
  const seat = takeSeat({
    bus,
    connection,
    detector,
    isInformed: host.isInformed,
    isLinked: host.isLinked,
    now: Date.now,
    changed(share, gained) {
      logger.info({ partitions: share.size, detectors: seat.others + 1 }, 'the share of this detector is another');
      host.shareChanged(gained);
    },
    asked() {
      tellSettings();
      tellAttacks();
    },
  });
  return {
    bus,
    nats: connection,
    listening: [],
    refused: [],
    get exporters() {
      const all = collectors().flatMap(({ collector, exporters }) =>
        exporters.map((each) => ({ ...withoutLocalUuid(each), collector })),
      );
      const known = all.filter(({ uuid }) => uuid !== undefined);
      return [...known, ...all.filter(({ uuid }) => uuid === undefined)].slice(0, mostExporters);
    },
    get count() {
      // Each worker of a collector answers for itself, and how many there are is not known here: the time says when all have.
      return Number.POSITIVE_INFINITY;
    },
    get status() {
      const all = collectors();
      const of = (name: string) => (sentence: string) => `${name.slice(0, 8)}: ${sentence}`;
      const { unsent, bad } = connection.counts;
      return {
        listen: all.flatMap(({ listening = [] }) => listening).slice(0, 64),
        refused: [
          ...watch.doubled(Date.now()).map((name) => of(name)(isDoubled)),
          ...all.flatMap(({ collector, refused = [] }) => refused.map(of(collector))),
        ].slice(0, 64),
        receive_buffers: all.map(({ receiveBuffer }) => receiveBuffer).slice(0, 256),
        kernel_drops: sumOf(all, ({ kernelDrops }) => kernelDrops),
        overflow: told({
          unknownDatagrams: sumOf(all, ({ overflow }) => overflow.unknownDatagrams),
          samples: sumOf(all, ({ overflow }) => overflow.samples),
          unspread: sumOf(all, ({ overflow }) => overflow.unspread),
          unprofiled: sumOf(all, ({ overflow }) => overflow.unprofiled),
        }),
        bus: {
          connected: connection.connected,
          collectors: all.length,
          detectors: seat.others + 1,
          partitions: seat.share.size,
          unsent: unsent + sumOf(all, (each) => each.unsent ?? 0),
          malformed: badOf({ bad }),
        },
      };
    },
    isOurs: (destination) => seat.share.has(partitionOfPrefix(destination)),
    isCollectorAway: () => watch.isAnyAway(Date.now()),
    heard(status) {
      const now = Date.now();
      watch.heard(status, now);
      if (present !== undefined && teller.isDue(present.revision, status.settingsRevision, now)) tellSettings();
    },
    completed: (settings) => shared.with(settings),
    settings(settings) {
      present = settings;
      tellSettings();
    },
    attacks(attacks) {
      if (attacks.length === 0) return;
      bus.tell({ type: 'attacks', detector, ...shared.told(attacks) });
    },
    async stop() {
      seat.stop();
      await bus.close();
    },
  };
}

function isIn(share: ReadonlySet<number>, dst: string): boolean {
  const read = parsePrefix(dst);
  return read.ok && share.has(partitionOfPrefix(read.prefix));
}

/** Those that are taken without being configured have no uuid that the control plane knows. */
function withoutLocalUuid({ uuid, ...rest }: ExporterStatus): ExporterStatus {
  return uuid === undefined || uuid === LOCAL_EXPORTER ? rest : { ...rest, uuid };
}

function told({ unknownDatagrams, samples, unspread, unprofiled }: Overflow) {
  return { unknown_datagrams: unknownDatagrams, samples, unspread, unprofiled };
}

function sumOf<T>(all: readonly T[], of: (each: T) => number): number {
  return all.reduce((sum, each) => sum + of(each), 0);
}

function badOf({ bad }: Pick<BusCounts, 'bad'>): number {
  return Object.values(bad).reduce((sum, count) => sum + count, 0);
}
