/** Guarantees of the bus over a real NATS, started by the test. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { nkeys } from '@nats-io/transport-node';
import { pino } from 'pino';
import { settingsOf } from '../link/testing/control-plane.ts';
import { createNatsCollectorBus, createNatsDetectorBus } from './nats.ts';
import { type BusConnection, type NatsSettings, openBusConnection } from './nats-connection.ts';
import { partitionOf } from './partition.ts';
import type { FromCollector, SlotReport, ToCollector } from './port.ts';

const folder = mkdtempSync(join(tmpdir(), `levee-nats-${process.pid}-`));
const key = nkeys.createUser();
const seedFile = join(folder, 'seed');
let port = 0;
let server: ChildProcess | undefined;
const open: BusConnection[] = [];
process.on('exit', () => server?.kill('SIGKILL'));

function start(): void {
  const users = `[{user: one, password: first}, {nkey: ${key.getPublicKey()}}]`;
  const config = join(folder, 'nats.conf');
  writeFileSync(config, `listen: "127.0.0.1:${port}"\nmax_payload: 65536\nauthorization { users: ${users} }\n`);
  server = spawn('nats-server', ['-c', config], { stdio: 'ignore' });
}

async function stop(): Promise<void> {
  if (server === undefined) return;
  const ended = once(server, 'exit');
  server.kill('SIGKILL');
  await ended;
}

function connectionWith(settings: Partial<NatsSettings>): BusConnection {
  const connection = openBusConnection(
    { servers: [`nats://127.0.0.1:${port}`], name: 'levee', ...settings },
    pino({ level: 'silent' }),
  );
  open.push(connection);
  return connection;
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!holds()) {
    assert.ok(Date.now() < deadline, `${what}: not within 10 s`);
    await delay(10);
  }
}

const password = { user: 'one', password: 'first' };
/** So many rows are longer than a message that this server takes. */
const rows = 5_000;

function slot(sequence: number): SlotReport {
  const addresses = new Uint32Array(rows * 4);
  for (let row = 0; row < rows; row++) addresses[row * 4] = 0xcb007100 + (row % 256) + (row % 2) * 0x10000;
  return {
    type: 'slot',
    collector: 'a.0',
    sequence,
    slotMs: 250 * sequence,
    count: rows,
    families: new Uint8Array(rows).fill(4),
    addresses,
    vectors: new Uint8Array(rows),
    packets: new Float64Array(rows).fill(2),
    bytes: new Float64Array(rows).fill(200),
    samples: new Float64Array(rows).fill(1),
    profiles: [],
  };
}

before(async () => {
  const free = createServer().listen(0, '127.0.0.1');
  await once(free, 'listening');
  port = (free.address() as { port: number }).port;
  free.close();
  await once(free, 'close');
  writeFileSync(seedFile, key.getSeed());
  start();
});
after(async () => {
  await Promise.all(open.map((each) => each.close()));
  await stop();
  rmSync(folder, { recursive: true, force: true });
});

test('a detector hears the rows of its share, whole, and an empty slot where there are none; another installation hears nothing', async () => {
  const theirs = connectionWith({ ...password, name: 'other' });
  const ours = connectionWith(password);
  const sending = connectionWith({ credentialsFile: seedFile });
  const heard: SlotReport[] = [];
  const none: SlotReport[] = [];
  const foreign: FromCollector[] = [];
  const share = createNatsDetectorBus(ours, 'levee', 'd');
  const rest = createNatsDetectorBus(connectionWith(password), 'levee', 'e');
  const other = createNatsDetectorBus(theirs, 'other', 'f');
  const all = new Set(Array.from({ length: 64 }, (_, partition) => partition));
  const mine = partitionOf(4, 0xcb007100, 0);
  const next = partitionOf(4, 0xcb017100, 0);
  assert.notEqual(mine, next);
  share.listen(new Set([mine]));
  other.listen(all);
  share.onMessage((message) => message.type === 'slot' && heard.push(message));
  rest.onMessage((message) => message.type === 'slot' && none.push(message));
  other.onMessage((message) => foreign.push(message));
  const bus = createNatsCollectorBus(sending, 'levee');
  let sequence = 1;
  await until('slots', () => {
    if (heard.length < 3) bus.send(slot(sequence++));
    return heard.length >= 3 && none.length >= 3;
  });
  const whole = heard.at(-1);
  assert.equal(whole?.count, rows / 2);
  assert.equal(none.at(-1)?.count, 0);
  assert.deepEqual(foreign, []);
});

test('settings, hot destinations and samples reach whom they are for, and what is no message is counted', async () => {
  const ours = connectionWith(password);
  const detector = createNatsDetectorBus(ours, 'levee.two', 'd');
  const others = createNatsDetectorBus(connectionWith(password), 'levee.two', 'e');
  const sending = connectionWith(password);
  const collector = createNatsCollectorBus(sending, 'levee.two');
  const told: ToCollector[] = [];
  const answers: FromCollector[] = [];
  const passedOn: FromCollector[] = [];
  collector.onMessage((message) => {
    told.push(message);
    if (message.type !== 'samples_wanted') return;
    const packet = { at_ms: 1, scale: 1, exporter: 'u', length: 100, header: Buffer.alloc(120, 7).toString('base64') };
    collector.send({
      type: 'samples',
      collector: 'a.0',
      request: message.request,
      held: 2,
      packets: Array(2_000).fill(packet),
    });
  });
  detector.onMessage((message) => answers.push(message));
  others.onMessage((message) => passedOn.push(message));
  await until('connections', () => open.slice(-3).every(({ connected }) => connected));
  await until('settings', () => {
    detector.send({ type: 'settings', settings: settingsOf(7, ['203.0.113.0/24']) });
    return told.some((message) => message.type === 'settings' && message.settings.revision === 7);
  });
  detector.send({ type: 'hot', detector: 'd', destinations: ['203.0.113.7'] });
  detector.send({ type: 'samples_wanted', request: 'r', dst: '203.0.113.7', sinceMs: 0, most: 2_000 });
  await until('samples', () => answers.length > 0);
  const [samples] = answers;
  assert.ok(samples?.type === 'samples' && samples.packets.length === 2_000);
  assert.deepEqual(passedOn, []);
  detector.tell({ type: 'farewell', name: 'd' });
  await until('what it had hot to be over', () => {
    const last = told.findLast((message) => message.type === 'hot');
    return last?.type === 'hot' && last.destinations.length === 0;
  });

  for (const octets of [new Uint8Array(0), Buffer.alloc(40, 255), Buffer.from('{"type":"settings"}')]) {
    sending.publish('levee.two.status', octets);
  }
  await until('what is no message', () => Object.values(ours.counts.bad).reduce((sum, count) => sum + count, 0) === 3);
});

test('without NATS, or with a wrong password, nothing is kept or thrown; it comes back by itself', async () => {
  const wrong = connectionWith({ user: 'one', password: 'second' });
  const connection = connectionWith(password);
  const bus = createNatsCollectorBus(connection, 'levee.three');
  const detector = createNatsDetectorBus(connectionWith(password), 'levee.three', 'd');
  const heard: FromCollector[] = [];
  detector.onMessage((message) => heard.push(message));
  detector.listen(new Set([partitionOf(4, 0xcb007100, 0)]));
  await until('a connection', () => connection.connected);
  await stop();
  await until('its end', () => !connection.connected);
  const { unsent } = connection.counts;
  bus.send(slot(1));
  assert.equal(connection.counts.unsent, unsent + 1);
  start();
  let sequence = 10;
  await until('slots again', () => {
    if (connection.connected && heard.length === 0) bus.send(slot(sequence++));
    return heard.length > 0;
  });
  assert.ok(heard.every((message) => message.type === 'slot' && message.sequence >= 10));
  assert.equal(wrong.connected, false);
  assert.equal(wrong.publish('levee.x', new Uint8Array(1)), false);
});
