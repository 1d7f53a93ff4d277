/**
 * Ten thousand router streams on one replica: its memory, and how long a committed change takes to reach them all,
 * against a bare node:http server that writes the same line to as many open answers, in the same run.
 * Targets: at most 1 GB, at most 1 s. The simulated routers share the machine's cores with the server.
 *
 * npm run bench -- streams [streams = 10000] [changes = 10]
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Answer, Request, Serving } from './streams/serve.ts';

const count = Number(process.argv[2] ?? 10_000);
const changes = Number(process.argv[3] ?? 10);
const OPENING_AT_ONCE = 200;
const clock = () => performance.timeOrigin + performance.now();

interface Measured {
  readonly server: string;
  readonly connectSeconds: number;
  readonly residentBytes: number;
  /** Of each change: milliseconds from its commit to the last stream that got it. */
  readonly reached: readonly number[];
}

async function measure(kind: 'levee' | 'bare'): Promise<Measured> {
  const child = fork(join(import.meta.dirname, 'streams', 'serve.ts'), [kind, String(count)]);
  const { base, keys } = await message<Serving>(child);
  const streams = new Streams();
  const startedAt = clock();
  const { hostname, port } = new URL(base);
  const waiting = [...keys];
  const openers = Array.from({ length: OPENING_AT_ONCE }, async () => {
    for (let key = waiting.pop(); key !== undefined; key = waiting.pop())
      await streams.open(hostname, Number(port), key);
  });
  await Promise.all(openers);
  const connectSeconds = (clock() - startedAt) / 1000;
  const { residentBytes } = await ask(child, { ask: 'memory' });
  const reached: number[] = [];
  for (let i = 0; i < changes; i++) {
    const all = streams.next(count);
    const { at } = await ask(child, { ask: 'change' });
    reached.push((await all) - at);
  }
  const after = await ask(child, { ask: 'memory' });
  streams.close();
  child.send({ ask: 'stop' } satisfies Request);
  await once(child, 'exit');
  return { server: kind, connectSeconds, residentBytes: Math.max(residentBytes, after.residentBytes), reached };
}

/** All simulated routers: each counts the `changes` lines that it has got. */
class Streams {
  readonly #sockets: Socket[] = [];
  #got = 0;
  #wanted = 0;
  #done: ((at: number) => void) | undefined;

  /** Resolves when the stream has got its snapshot. */
  open(host: string, port: number, key: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, host, () => {
        socket.write(`GET /agent/v1/stream HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${key}\r\n\r\n`);
      });
      this.#sockets.push(socket);
      let rest = '';
      let ready = false;
      socket.setEncoding('latin1');
      socket.on('error', reject);
      socket.on('data', (text: string) => {
        const lines = (rest + text).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
          if (line.startsWith('{"type":"snapshot_end"')) {
            ready = true;
            resolve();
          } else if (line.startsWith('{"type":"changes"')) this.#count();
          else if (!ready && line.startsWith('HTTP/1.1') && !line.startsWith('HTTP/1.1 200')) reject(new Error(line));
        }
      });
    });
  }

  /** When the next change has reached `streams` of them. */
  next(streams: number): Promise<number> {
    this.#got = 0;
    this.#wanted = streams;
    return new Promise((resolve) => {
      this.#done = resolve;
    });
  }

  #count(): void {
    if (++this.#got === this.#wanted) this.#done?.(clock());
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

async function message<T>(child: ChildProcess): Promise<T> {
  const [value] = (await once(child, 'message')) as [T];
  return value;
}

function ask(child: ChildProcess, request: Request): Promise<Answer> {
  const answered = message<Answer>(child);
  child.send(request);
  return answered;
}

const bare = await measure('bare');
const levee = await measure('levee');
const sorted = (values: readonly number[]) => values.toSorted((a, b) => a - b);
const row = ({ server, connectSeconds, residentBytes, reached }: Measured) => ({
  server,
  streams: count,
  'connected in s': connectSeconds.toFixed(1),
  'resident MiB': Math.round(residentBytes / 2 ** 20),
  'change at all, median ms': Math.round(sorted(reached)[Math.floor(reached.length / 2)] ?? 0),
  'worst ms': Math.round(sorted(reached).at(-1) ?? 0),
});
console.table([row(levee), row(bare)]);
const worst = sorted(levee.reached).at(-1) ?? 0;
const ratio = worst / (sorted(bare.reached).at(-1) ?? 1);
console.log(`worst change against the bare server's: ${ratio.toFixed(2)}`);
const met = worst <= 1_000 && levee.residentBytes <= 1e9;
console.log(`targets (≤ 1 s, ≤ 1 GB): ${met ? 'met' : 'MISSED'}`);
