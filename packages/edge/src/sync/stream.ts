/**
 * Follows the control plane's stream of desired state: connects, resumes at the cursor, puts snapshots together, notices
 * silence, and tries the next address when one fails. Hands on whole snapshots and changes only; keeps no objects beyond
 * a snapshot that is still arriving, and never stops by itself.
 */
import type { AgentHello, AgentTunnel } from '@levee/contract/agent.ts';
import { createBackoff } from '@levee/follow/backoff.ts';
import { type Endpoint, openRequest } from '@levee/follow/endpoint.ts';
import type { KeyAlarm } from '@levee/follow/key-alarm.ts';
import { createLineCutter } from '@levee/follow/lines.ts';
import { watchOutage } from '@levee/follow/outage.ts';
import type { Logger } from 'pino';
import type { AgentEntry, AgentObjects } from '../state/objects.ts';
import { parseMessage } from './message.ts';

/** A thousand rules a line are half a megabyte; a change of a hundred thousand at once still fits. */
const longestLineBytes = 64 << 20;

export interface StreamOptions {
  readonly endpoints: readonly Endpoint[];
  readonly key: string;
  readonly silenceMilliseconds: number;
  readonly reconnectMilliseconds: number;
  readonly logger: Logger;
  readonly keyAlarm: KeyAlarm;
  /** Everything up to here has been handed on; undefined asks for a snapshot. */
  cursor(): string | undefined;
  hello(hello: AgentHello, endpoint: Endpoint): void;
  snapshot(cursor: string, objects: AgentObjects): void;
  /** `remove`: uuids of objects of any kind. */
  changes(cursor: string, upsert: AgentObjects, remove: readonly string[]): void;
}

export interface Stream {
  readonly connected: boolean;
  stop(): Promise<void>;
}

export function followStream(options: StreamOptions): Stream {
  const { endpoints, logger } = options;
  const backoff = createBackoff(options.reconnectMilliseconds);
  const outage = watchOutage(logger, 'not connected to the control plane; the rules in force stay');
  const stopping = new AbortController();
  let connected = false;

  const run = async (): Promise<void> => {
    for (let attempt = 0; !stopping.signal.aborted; attempt++) {
      const endpoint = endpoints[attempt % endpoints.length] as Endpoint;
      const reason = await followOnce(options, endpoint, stopping.signal, () => {
        connected = true;
        backoff.reset();
        outage.over();
      });
      connected = false;
      if (stopping.signal.aborted) return;
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
  options: StreamOptions,
  endpoint: Endpoint,
  signal: AbortSignal,
  onHello: () => void,
): Promise<string> {
  return new Promise((resolve) => {
    const cursor = options.cursor();
    const path = `/agent/v1/stream${cursor === undefined ? '' : `?after=${encodeURIComponent(cursor)}`}`;
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

    const take = createTaker(options, endpoint, cursor !== undefined, onHello);
    call.on('error', (error) => end((error as NodeJS.ErrnoException).code ?? error.message));
    call.on('response', (response) => {
      if (response.statusCode !== 200) {
        options.keyAlarm(endpoint.text, response.statusCode ?? 0);
        response.resume();
        end(`answered ${response.statusCode}`);
        return;
      }
      const cutter = createLineCutter(longestLineBytes);
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

/** All that this release follows. */
const kindsTold = ['rules', 'filters', 'tunnels'] as const;

/**
 * Handles the messages of one connection in order; says what is wrong with one, where something is. `resumed`: it was
 * asked for from a cursor on.
 */
function createTaker(
  options: StreamOptions,
  endpoint: Endpoint,
  resumed: boolean,
  onHello: () => void,
): (line: Buffer) => string | undefined {
  let arriving: { entries: AgentEntry[]; tunnels: AgentTunnel[] } | undefined;
  let greeted = false;
  let based = resumed;
  let complete = false;
  return (line) => {
    const parsed = parseMessage(line);
    if (!parsed.ok) return parsed.reason;
    const message = parsed.message;
    if (message === undefined) return undefined;
    if (message.type === 'hello') {
      greeted = true;
      complete = kindsTold.every((kind) => message.tells?.includes(kind));
      onHello();
      options.hello(message, endpoint);
      return undefined;
    }
    if (!greeted) return 'the stream does not begin with hello';
    switch (message.type) {
      case 'heartbeat':
        return undefined;
      case 'snapshot_begin':
        arriving = { entries: [], tunnels: [] };
        return undefined;
      case 'rules':
        if (arriving === undefined) return 'rules outside of a snapshot';
        for (const rule of message.rules) arriving.entries.push(rule);
        return undefined;
      case 'filters':
        if (arriving === undefined) return 'filters outside of a snapshot';
        for (const filter of message.filters) arriving.entries.push(filter);
        return undefined;
      case 'tunnels':
        if (arriving === undefined) return 'tunnels outside of a snapshot';
        for (const tunnel of message.tunnels) arriving.tunnels.push(tunnel);
        return undefined;
      case 'snapshot_end': {
        if (arriving === undefined) return 'the end of a snapshot that did not begin';
        const objects = { ...arriving, complete };
        arriving = undefined;
        based = true;
        options.snapshot(message.cursor, objects);
        return undefined;
      }
      case 'changes': {
        if (arriving !== undefined) return 'changes inside of a snapshot';
        if (!based) return 'changes before the first snapshot';
        const entries = [...message.upsert, ...(message.filters ?? [])];
        options.changes(message.cursor, { entries, tunnels: message.tunnels ?? [], complete }, message.remove);
        return undefined;
      }
    }
  };
}
