/**
 * Both ends of the bus over NATS. Owns the subjects, and what goes on which: a slot by partition, so that a detector hears of its own
 * alone; all else whole. Keeps nothing that was said, as the bus within a process does not.
 */
import { type BadMessage, decode, encode, encodeSlotPart } from './codec.ts';
import type { AttackNews, BusMessage, Farewell, MemberSign } from './messages.ts';
import type { BusConnection } from './nats-connection.ts';
import { type CollectorBus, type DetectorBus, type FromCollector, PARTITIONS, type ToCollector } from './port.ts';
import { SlotAssembler } from './slot-assembler.ts';
import { writeSlot } from './slot-codec.ts';

/** Under the installation's name. */
const subjects = {
  slot: 'slot',
  end: 'slot_end',
  status: 'status',
  samples: 'samples',
  settings: 'settings',
  hot: 'hot',
  samplesWanted: 'samples_wanted',
  ask: 'ask',
  member: 'member',
  attacks: 'attacks',
  farewell: 'farewell',
} as const;

/** Requests whose answers may still come, and where they go. */
const mostRequests = 1_024;
/** A detector that shows no life for so long has nothing hot any more. */
const detectorGoneMilliseconds = 10_000;
const mostDetectors = 64;

export type CollectorNews = MemberSign | Farewell;
export type DetectorNews = MemberSign | AttackNews | Farewell | { readonly type: 'ask' };

export interface NatsCollectorBus extends CollectorBus {
  /** It ends: nobody has to wait for it. */
  farewell(collector: string): void;
}

export interface NatsDetectorBus extends DetectorBus {
  /** To the other detectors. */
  tell(message: DetectorNews): void;
  onNews(heard: (message: DetectorNews) => void): void;
  /** From now on slots of these alone are heard. */
  listen(partitions: ReadonlySet<number>): void;
}

/** A message of one of these types, everything else counted. */
function reader(connection: BusConnection) {
  const { bad } = connection.counts;
  const count = (reason: BadMessage | 'subject'): undefined => {
    bad[reason] = (bad[reason] ?? 0) + 1;
    return undefined;
  };
  return <T extends BusMessage['type']>(octets: Uint8Array, type: T): Extract<BusMessage, { type: T }> | undefined => {
    const decoded = decode(octets);
    if (!decoded.ok) return count(decoded.reason);
    return decoded.message.type === type ? (decoded.message as Extract<BusMessage, { type: T }>) : count('subject');
  };
}

export function createNatsCollectorBus(connection: BusConnection, name: string, now = Date.now): NatsCollectorBus {
  const at = (subject: string): string => `${name}.${subject}`;
  const read = reader(connection);
  const listeners = new Set<(message: ToCollector) => void>();
  const answers = new Map<string, string>();
  /** Detectors that have told what is hot, and when they last showed life. */
  const detectors = new Map<string, number>();
  const hear = (message: ToCollector): void => {
    for (const heard of listeners) heard(message);
  };
  const cool = (detector: string): void => {
    if (detectors.delete(detector)) hear({ type: 'hot', detector, destinations: [] });
  };
  connection.subscribe(at(subjects.settings), (octets) => {
    const message = read(octets, 'settings');
    if (message !== undefined) hear(message);
  });
  connection.subscribe(at(subjects.hot), (octets) => {
    const message = read(octets, 'hot');
    if (message === undefined) return;
    detectors.delete(message.detector);
    detectors.set(message.detector, now());
    const [oldest] = detectors.keys();
    if (detectors.size > mostDetectors && oldest !== undefined) cool(oldest);
    hear(message);
  });
  connection.subscribe(at(subjects.samplesWanted), (octets, reply) => {
    const message = read(octets, 'samples_wanted');
    if (message === undefined) return;
    // Whoever asks is answered under the installation's name, and nowhere else.
    if (reply?.startsWith(at(`${subjects.samples}.`)) === true) answers.set(message.request, reply);
    const [oldest] = answers.keys();
    if (answers.size > mostRequests && oldest !== undefined) answers.delete(oldest);
    hear(message);
  });
  connection.subscribe(at(subjects.member), (octets) => {
    const detector = read(octets, 'member')?.detector;
    if (detector !== undefined && detectors.has(detector)) detectors.set(detector, now());
  });
  connection.subscribe(at(subjects.farewell), (octets) => {
    const gone = read(octets, 'farewell')?.name;
    if (gone !== undefined) cool(gone);
  });
  const ask = (): void => void connection.publish(at(subjects.ask), encode({ type: 'ask' }));
  connection.onConnection((connected) => connected && ask());
  const timer = setInterval(() => {
    if (!connection.connected) return;
    for (const [detector, seenMs] of detectors) if (now() - seenMs > detectorGoneMilliseconds) cool(detector);
  }, detectorGoneMilliseconds / 4);
  timer.unref();

  const sendSlot = (report: Extract<FromCollector, { type: 'slot' }>): void => {
    if (!connection.connected) {
      connection.counts.unsent++;
      return;
    }
    const parts = writeSlot(report);
    for (const [partition, part] of parts)
      connection.publish(at(`${subjects.slot}.${partition}`), encodeSlotPart(part));
    const { collector, sequence, slotMs, isPartial = false } = report;
    const end = encode({ type: 'slot_end', collector, sequence, slotMs, isPartial, partitions: [...parts.keys()] });
    connection.publish(at(subjects.end), end);
  };
  return {
    send(message) {
      if (message.type === 'slot') sendSlot(message);
      else if (message.type === 'status') connection.publish(at(subjects.status), encode(message));
      else {
        const answer = answers.get(message.request);
        if (answer !== undefined) connection.publish(answer, encode(message));
      }
    },
    onMessage: (heard) => void listeners.add(heard),
    farewell: (collector) =>
      void connection.publish(at(subjects.farewell), encode({ type: 'farewell', name: collector })),
    async close() {
      clearInterval(timer);
      listeners.clear();
      await connection.close();
    },
  };
}

/** `detector`: unique among those that run. */
export function createNatsDetectorBus(
  connection: BusConnection,
  name: string,
  detector: string,
  now = Date.now,
): NatsDetectorBus {
  const at = (subject: string): string => `${name}.${subject}`;
  const read = reader(connection);
  const listeners = new Set<(message: FromCollector) => void>();
  const others = new Set<(message: DetectorNews) => void>();
  const shares = new Map<number, () => void>();
  let timer: NodeJS.Timeout | undefined;
  const hear = (message: FromCollector): void => {
    for (const heard of listeners) heard(message);
  };
  const assembler = new SlotAssembler((partition) => shares.has(partition), hear);
  const run = (): void => {
    clearTimeout(timer);
    const again = assembler.run(now());
    timer = again === undefined ? undefined : setTimeout(run, Math.max(1, again)).unref();
  };
  connection.subscribe(at(subjects.end), (octets) => {
    const end = read(octets, 'slot_end');
    if (end === undefined) return;
    assembler.end(end, now());
    run();
  });
  connection.subscribe(at(subjects.status), (octets) => {
    const message = read(octets, 'status');
    if (message !== undefined) hear(message);
  });
  const answers = at(`${subjects.samples}.${detector}`);
  connection.subscribe(answers, (octets) => {
    const message = read(octets, 'samples');
    if (message !== undefined) hear(message);
  });
  for (const type of ['ask', 'member', 'attacks', 'farewell'] as const) {
    connection.subscribe(at(subjects[type]), (octets) => {
      const message = read(octets, type);
      if (message !== undefined) for (const heard of others) heard(message);
    });
  }
  return {
    send(message) {
      if (message.type === 'samples_wanted') connection.publish(at(subjects.samplesWanted), encode(message), answers);
      else connection.publish(at(subjects[message.type]), encode(message));
    },
    tell: (message) => void connection.publish(at(subjects[message.type]), encode(message)),
    onMessage: (heard) => void listeners.add(heard),
    onNews: (heard) => void others.add(heard),
    listen(partitions) {
      for (let partition = 0; partition < PARTITIONS; partition++) {
        const leave = shares.get(partition);
        if (partitions.has(partition) === (leave !== undefined)) continue;
        if (leave !== undefined) {
          leave();
          shares.delete(partition);
          continue;
        }
        const unsubscribe = connection.subscribe(at(`${subjects.slot}.${partition}`), (octets) => {
          const part = read(octets, 'slot_part');
          if (part !== undefined) assembler.part(part, now());
        });
        shares.set(partition, unsubscribe);
      }
    },
    async close() {
      clearTimeout(timer);
      listeners.clear();
      others.clear();
      await connection.close();
    },
  };
}
