/**
 * The load of the interface's benchmarks: connections that each send a request, read the whole answer and send the
 * next. Reads only what it needs of an answer, so that on a shared machine the server gets the time and not the client.
 */
import { connect, type Socket } from 'node:net';

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  readonly perSecond: number;
  readonly p50Milliseconds: number;
  readonly p99Milliseconds: number;
}

export interface Load {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  /** The next request's bytes. */
  readonly next: () => string;
}

/** Throws on any status but 200: a figure over errors would mean nothing. */
export async function runLoad(load: Load): Promise<LoadResult> {
  const { hostname, port } = new URL(load.url);
  const latencies: number[] = [];
  const begin = performance.now();
  const until = begin + load.seconds * 1000;
  await Promise.all(
    Array.from({ length: load.connections }, () => drive(connect(Number(port), hostname), load, until, latencies)),
  );
  const seconds = (performance.now() - begin) / 1000;
  latencies.sort((a, b) => a - b);
  const quantile = (share: number) => latencies[Math.floor(share * (latencies.length - 1))] ?? Number.NaN;
  return {
    requests: latencies.length,
    seconds,
    perSecond: latencies.length / seconds,
    p50Milliseconds: quantile(0.5),
    p99Milliseconds: quantile(0.99),
  };
}

function drive(socket: Socket, load: Load, until: number, latencies: number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0);
    let sentAt = 0;
    const send = () => {
      sentAt = performance.now();
      socket.write(load.next());
    };
    socket.setNoDelay(true);
    socket.on('connect', send);
    socket.on('error', reject);
    socket.on('data', (data: Buffer) => {
      received = received.length === 0 ? data : Buffer.concat([received, data]);
      const head = received.indexOf('\r\n\r\n');
      if (head < 0) return;
      const text = received.toString('latin1', 0, head);
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1]);
      if (received.length < head + 4 + length) return;
      if (!text.startsWith('HTTP/1.1 200')) {
        socket.destroy();
        reject(new Error(received.toString('utf8')));
        return;
      }
      received = Buffer.alloc(0);
      const now = performance.now();
      latencies.push(now - sentAt);
      if (now < until) return send();
      socket.end();
      resolve();
    });
  });
}
