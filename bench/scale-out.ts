/**
 * What detection costs when it is divided: N collectors and M detectors as processes over a real NATS on this machine, at growing
 * rates, with the same datagrams. Shows processor time a million records by part, what goes over NATS, and how that part of the cost grows
 * with the records that is not there without any (the exponent: 1 is in proportion). Collectors make and decode datagrams in their own process: sockets are `bench -- collect`'s.
 *
 * npm run bench -- scale-out [seconds a run = 4] [thousand records a second = 100,200,400]
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Order, Used } from './scale-out/part.ts';

const seconds = Number(process.argv[2] ?? 4);
const rates = (process.argv[3] ?? '100,200,400').split(',').map((each) => Number(each) * 1000);
const shapes: [number, number][] = [
  [1, 1],
  [2, 1],
  [2, 2],
  [4, 2],
  [4, 4],
];
/** Of the kernel's accounting: CLK_TCK. */
const ticksPerSecond = 100;
const partitions = 64;

interface Run {
  readonly records: number;
  readonly collectors: number;
  readonly detectors: number;
  readonly nats: number;
  readonly octets: number;
  readonly messages: number;
  readonly rows: number;
  readonly unsent: number;
}

const living = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const whole: [number, number][] = [];
for (const [collectors, detectors] of shapes) {
  const idle = costOf(await run(collectors, detectors, 0));
  const runs: Run[] = [];
  for (const rate of rates) runs.push(await run(collectors, detectors, rate));
  const points = runs.map((each): [number, number] => [each.records, Math.max(costOf(each) - idle, 0.01)]);
  whole.push(...points);
  console.log(
    `${collectors} collectors × ${detectors} detectors: ${(idle / seconds).toFixed(3)} CPU s a second without records; ` +
      `the rest ~ records^${exponent(points).toFixed(2)}`,
  );
  console.table(
    runs.map((each) => {
      const perMillion = (value: number) => (value / each.records) * 1e6;
      return {
        'k records/s': Math.round(each.records / seconds / 1000),
        'CPU s/M': perMillion(costOf(each)).toFixed(2),
        'without idle': perMillion(costOf(each) - idle).toFixed(2),
        collectors: perMillion(each.collectors).toFixed(2),
        NATS: perMillion(each.nats).toFixed(2),
        detectors: perMillion(each.detectors).toFixed(2),
        'MB/M': (perMillion(each.octets) / 1e6).toFixed(1),
        'messages/s': Math.round(each.messages / seconds),
        'rows/s': Math.round(each.rows / seconds),
        unsent: each.unsent,
      };
    }),
  );
}
console.log(`all of them: the rest ~ records^${exponent(whole).toFixed(2)}`);

function costOf({ collectors, detectors, nats }: Run): number {
  return collectors + detectors + nats;
}

/** The slope of logarithms, by least squares. */
function exponent(measured: readonly (readonly [number, number])[]): number {
  const points = measured.map(([records, cost]) => [Math.log(records), Math.log(cost)] as const);
  const mean = (index: 0 | 1) => points.reduce((sum, point) => sum + point[index], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const covariance = points.reduce((sum, [a, b]) => sum + (a - x) * (b - y), 0);
  return covariance / points.reduce((sum, [a]) => sum + (a - x) ** 2, 0);
}

async function run(collectors: number, detectors: number, rate: number): Promise<Run> {
  const port = await freePort();
  const nats = spawn('nats-server', ['-a', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' });
  living.add(nats);
  await listens(port);
  const server = `nats://127.0.0.1:${port}`;
  const start = (role: Order['role']): ChildProcess => {
    const order: Order = { role, server, recordsPerSecond: rate / collectors };
    const child = fork(join(import.meta.dirname, 'scale-out', 'part.ts'), [JSON.stringify(order)]);
    living.add(child);
    return child;
  };
  const parts = [
    ...Array.from({ length: detectors }, () => start('detector')),
    ...Array.from({ length: collectors }, () => start('collector')),
  ];
  const ask = (): Promise<Used[]> =>
    Promise.all(
      parts.map(async (part) => {
        part.send('tell');
        const [used] = await once(part, 'message');
        return used as Used;
      }),
    );
  try {
    const shared = (used: readonly Used[]) => used.slice(0, detectors).reduce((sum, { share }) => sum + share, 0);
    for (let attempt = 0; shared(await ask()) !== partitions; attempt++) {
      if (attempt === 100) throw new Error('the detectors come to no shares');
      await pause(200);
    }
    // Code is compiled by then.
    await pause(2_000);
    await ask();
    const before = ticksOf(nats.pid ?? 0);
    await pause(seconds * 1000);
    const used = await ask();
    const ticks = ticksOf(nats.pid ?? 0) - before;
    const sum = (of: readonly Used[], name: keyof Used) => of.reduce((all, each) => all + each[name], 0);
    const [own, others] = [used.slice(0, detectors), used.slice(detectors)];
    return {
      records: sum(others, 'records'),
      collectors: sum(others, 'cpuSeconds'),
      detectors: sum(own, 'cpuSeconds'),
      nats: ticks / ticksPerSecond,
      octets: sum(used, 'sentOctets'),
      messages: sum(used, 'sentMessages'),
      rows: sum(own, 'rows'),
      unsent: sum(used, 'unsent'),
    };
  } finally {
    for (const child of [...parts, nats]) {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      living.delete(child);
    }
  }
}

function ticksOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

async function listens(port: number): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await pause(20);
  }
  throw new Error('nats-server does not listen');
}
