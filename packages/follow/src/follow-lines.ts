/**
 * Keeps a stream of lines from the control plane open: connects, notices silence, and tries the next address when one
 * fails. Hands on lines only; knows no message, and never stops by itself.
 */
import type { Logger } from 'pino';
import { createBackoff } from './backoff.ts';
import { type Endpoint, openRequest } from './endpoint.ts';
import type { KeyAlarm } from './key-alarm.ts';
import { createLineCutter } from './lines.ts';
import { watchOutage } from './outage.ts';

/** One connection's. */
export interface Connection {
  /** With the query. */
  readonly path: string;
  /** In order; says what is wrong with a line, where something is: that ends the connection. */
  take(line: Buffer): string | undefined;
}

export interface FollowOptions {
  readonly endpoints: readonly Endpoint[];
  readonly key: string;
  readonly silenceMilliseconds: number;
  readonly reconnectMilliseconds: number;
  readonly longestLineBytes: number;
  readonly logger: Logger;
  readonly keyAlarm: KeyAlarm;
  /** For the log, while it does not work. */
  readonly trouble: string;
  /** At each attempt. `greeted` is to be called when the stream has shown that it is one. */
  open(endpoint: Endpoint, greeted: () => void): Connection;
}

export interface Stream {
  readonly connected: boolean;
  /** Ends the connection and opens another at once: what is told at its beginning is told again. */
  reopen(): void;
  stop(): Promise<void>;
}

export function followLines(options: FollowOptions): Stream {
  const { endpoints, logger } = options;
  const backoff = createBackoff(options.reconnectMilliseconds);
  const outage = watchOutage(logger, options.trouble);
  const stopping = new AbortController();
  let connected = false;
  let cutting = new AbortController();

  const run = async (): Promise<void> => {
    for (let attempt = 0; !stopping.signal.aborted; attempt++) {
      const endpoint = endpoints[attempt % endpoints.length] as Endpoint;
      cutting = new AbortController();
      const signal = AbortSignal.any([stopping.signal, cutting.signal]);
      const reason = await followOnce(options, endpoint, signal, () => {
        connected = true;
        backoff.reset();
        outage.over();
      });
      connected = false;
      if (stopping.signal.aborted) return;
      if (cutting.signal.aborted) {
        attempt--;
        continue;
      }
      const pause = backoff.next();
      outage.failed({ endpoint: endpoint.text, reason, retryMilliseconds: pause });
      await delay(pause, stopping.signal);
    }
  };
  const running = run();
  return {
    get connected() {
      return connected;
    },
    reopen: () => cutting.abort(),
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function delay(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done);
    if (signal.aborted) done();
  });
}

/** One connection, to its end; resolves with why it ended. */
function followOnce(
  options: FollowOptions,
  endpoint: Endpoint,
  signal: AbortSignal,
  greeted: () => void,
): Promise<string> {
  return new Promise((resolve) => {
    const { path, take } = options.open(endpoint, greeted);
    const call = openRequest(endpoint, {
      method: 'GET',
      path,
      agent: false,
      headers: { authorization: `Bearer ${options.key}`, accept: 'application/x-ndjson' },
    });
    let ended = false;
    const end = (reason: string): void => {
      if (ended) return;
      ended = true;
      clearTimeout(watchdog);
      signal.removeEventListener('abort', aborted);
      call.destroy();
      resolve(reason);
    };
    const aborted = (): void => end('stopped');
    const watchdog = setTimeout(() => end(`silent for ${options.silenceMilliseconds} ms`), options.silenceMilliseconds);
    signal.addEventListener('abort', aborted);
    if (signal.aborted) return end('stopped');

    call.on('error', (error) => end((error as NodeJS.ErrnoException).code ?? error.message));
    call.on('response', (response) => {
      if (response.statusCode !== 200) {
        options.keyAlarm(endpoint.text, response.statusCode ?? 0);
        response.resume();
        end(`answered ${response.statusCode}`);
        return;
      }
      const cutter = createLineCutter(options.longestLineBytes);
      response.on('data', (chunk: Buffer) => {
        if (ended) return;
        watchdog.refresh();
        const lines = cutter.push(chunk);
        if (lines === undefined) return end('a line is too long');
        for (const line of lines) {
          const problem = take(line);
          if (problem !== undefined) return end(problem);
        }
      });
      response.on('error', (error) => end(error.message));
      response.on('close', () => end('closed by the control plane'));
    });
    call.end();
  });
}
