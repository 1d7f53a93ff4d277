/**
 * One collector or detector of the scale-out simulation: started with an order as its argument, sends what it used when it is told to. The
 * collector decodes and sums datagrams that it makes itself, at the rate that it is told; the detector does all that it does, and tells nobody.
 */
import { randomUUID } from 'node:crypto';
import type { DetectorSettings } from '@levee/contract/detector.ts';
import { createNatsCollectorBus, createNatsDetectorBus } from '@levee/detector/bus/nats.ts';
import { openBusConnection } from '@levee/detector/bus/nats-connection.ts';
import { partitionOfPrefix } from '@levee/detector/bus/partition.ts';
import { Collecting } from '@levee/detector/collect/collecting.ts';
import { sflow5 } from '@levee/detector/collect/testing/sflow-flood.ts';
import { startDetection } from '@levee/detector/detect/detection.ts';
import { takeSeat } from '@levee/detector/share/seat.ts';
import { pino } from 'pino';

export interface Order {
  readonly role: 'collector' | 'detector';
  readonly server: string;
  readonly recordsPerSecond: number;
}

/** Since the last time that it was asked. */
export interface Used {
  readonly cpuSeconds: number;
  readonly records: number;
  readonly rows: number;
  readonly sentOctets: number;
  readonly sentMessages: number;
  readonly share: number;
  readonly unsent: number;
}

const order = JSON.parse(process.argv[2] ?? '{}') as Order;
const samplesEach = 7;
/** 256 /24s of 16 addresses: of each too little to be looked at closely. */
const destinations = 4_096;
const settings: DetectorSettings = {
  type: 'settings',
  revision: 1,
  prefixes: ['10.0.0.0/16'],
  policies: [],
  exporters: [{ uuid: randomUUID(), name: 'e', source: '192.0.2.1', sampling: 'auto' }],
  ongoing: [],
};
const logger = pino({ level: 'warn' }, pino.destination({ dest: 2, sync: true }));
const connection = openBusConnection({ servers: [order.server], name: 'bench' }, logger);
let records = 0;
let rows = 0;
let shareOf = () => 0;

if (order.role === 'collector') collect();
else detect();

let before = process.cpuUsage();
let told = { ...connection.counts };
process.on('message', () => {
  const { user, system } = process.cpuUsage(before);
  const { sentOctets, sentMessages, unsent } = connection.counts;
  const used: Used = {
    cpuSeconds: (user + system) / 1e6,
    records,
    rows,
    sentOctets: sentOctets - told.sentOctets,
    sentMessages: sentMessages - told.sentMessages,
    unsent: unsent - told.unsent,
    share: shareOf(),
  };
  before = process.cpuUsage();
  told = { ...connection.counts };
  records = 0;
  rows = 0;
  process.send?.(used);
});
process.on('disconnect', () => process.exit());

function collect(): void {
  const bus = createNatsCollectorBus(connection, 'bench');
  const collecting = new Collecting({
    collector: randomUUID(),
    sampleOctets: 16 << 20,
    send: (message) => bus.send(message),
    sockets: () => ({ receiveBuffer: { bytes: 1, wanted: 1 }, kernelDrops: 0 }),
  });
  bus.onMessage((message) => collecting.hear(message));
  collecting.hear({ type: 'settings', settings });
  const datagrams = Array.from({ length: destinations }, (_, index) => {
    const number = (index * 2_654_435_761) % destinations;
    return sflow5(`10.0.${number >> 4}.${number & 15}`, index + 1, 1, samplesEach);
  });
  const startedMs = performance.now();
  let sent = 0;
  setInterval(() => {
    collecting.tick(Date.now());
    const nowMs = performance.now();
    const due = ((nowMs - startedMs) / 1000) * (order.recordsPerSecond / samplesEach);
    for (; sent < due; sent++) {
      const datagram = datagrams[sent % datagrams.length] as Uint8Array;
      collecting.datagram(datagram, datagram.length, 4, 0xc0000201, 0, 0, 0, nowMs);
      records += samplesEach;
    }
  }, 4);
}

function detect(): void {
  const detector = randomUUID();
  const bus = createNatsDetectorBus(connection, 'bench', detector);
  bus.onMessage((message) => {
    if (message.type === 'slot') rows += message.count;
  });
  const seat = takeSeat({
    bus,
    connection,
    detector,
    isInformed: () => true,
    isLinked: () => true,
    now: Date.now,
    changed: () => detection.shareChanged(),
    asked: () => undefined,
  });
  const detection = startDetection({
    bus,
    name: detector,
    clock: {
      now: Date.now,
      after(milliseconds, run) {
        const timer = setTimeout(run, milliseconds);
        return () => clearTimeout(timer);
      },
    },
    newId: randomUUID,
    report: () => undefined,
    log: { info: () => undefined, warn: () => undefined },
    isOurs: (destination) => seat.share.has(partitionOfPrefix(destination)),
  });
  detection.settings(settings);
  shareOf = () => seat.share.size;
}
