/**
 * One TCP connection to a DNS server (RFC 7766), made when it is needed and made again after it ended. Requests are
 * pipelined; answers are told apart by their id. Owns ids, framing and times; reads no message beyond its id.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { HostPort } from '@levee/core/rdns/zone-settings.ts';

export interface DnsConnection {
  /** `write` is given the message's id. Rejects with a `ConnectionError`. */
  exchange(write: (id: number) => Buffer): Promise<Buffer>;
  close(): void;
}

/** `message` follows "the DNS server is away: ". */
export class ConnectionError extends Error {}

/** The kernel asks again after 1 s: with the pause before the next attempt, a silent server's return is soon met. */
const connectMilliseconds = 1_500;
const answerMilliseconds = 5_000;
/** Servers close idle connections after 10 s and more (RFC 7766, 6.2.3): we are first. */
const idleMilliseconds = 8_000;

interface Waiting {
  readonly resolve: (answer: Buffer) => void;
  readonly reject: (error: ConnectionError) => void;
  readonly timer: NodeJS.Timeout;
}

interface Open {
  readonly socket: Socket;
  readonly waiting: Map<number, Waiting>;
  /** Whether anything was ever answered on it. */
  used: boolean;
}

export function createDnsConnection({ host, port }: HostPort): DnsConnection {
  let open: Promise<Open> | undefined;
  let closed = false;
  let nextId = Math.floor(Math.random() * 65_536);
  let idle: NodeJS.Timeout | undefined;

  function opened(): Promise<Open> {
    open ??= dial(host, port, (ended) => {
      void open?.then(
        (present) => {
          if (present === ended) open = undefined;
        },
        () => {},
      );
    });
    open.catch(() => {
      open = undefined;
    });
    return open;
  }

  function rest(present: Open): void {
    clearTimeout(idle);
    idle = setTimeout(() => present.socket.end(), idleMilliseconds);
    idle.unref();
  }

  async function once(write: (id: number) => Buffer): Promise<Buffer> {
    const present = await opened();
    const { socket, waiting } = present;
    clearTimeout(idle);
    while (waiting.has(nextId)) nextId = (nextId + 1) & 0xffff;
    const id = nextId;
    nextId = (nextId + 1) & 0xffff;
    const message = write(id);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(message.length, 0);
    try {
      return await new Promise<Buffer>((resolve, reject) => {
        const timer = setTimeout(() => {
          socket.destroy(new ConnectionError(`no answer within ${answerMilliseconds / 1000} s`));
        }, answerMilliseconds);
        waiting.set(id, { resolve, reject, timer });
        socket.write(Buffer.concat([length, message]));
      });
    } finally {
      if (waiting.size === 0) rest(present);
    }
  }

  return {
    async exchange(write) {
      if (closed) throw new ConnectionError('the connection was given up');
      const reused = open !== undefined && (await open.then(({ used }) => used).catch(() => false));
      try {
        return await once(write);
      } catch (error) {
        // A connection that the server had closed while it was idle: what was sent on it was not carried out, and
        // would do no harm twice.
        if (!reused || closed) throw error;
        await delay(0);
        return once(write);
      }
    },
    close() {
      closed = true;
      clearTimeout(idle);
      void open
        ?.then(({ socket }) => socket.destroy(new ConnectionError('the connection was given up')))
        .catch(() => {});
    },
  };
}

function dial(host: string, port: number, onEnd: (ended: Open) => void): Promise<Open> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true });
    const waiting = new Map<number, Waiting>();
    const present: Open = { socket, waiting, used: false };
    let failure: Error | undefined;
    let buffered: Buffer = Buffer.alloc(0);
    const timer = setTimeout(
      () => socket.destroy(new ConnectionError(`no connection within ${connectMilliseconds / 1000} s`)),
      connectMilliseconds,
    );
    socket.once('connect', () => {
      clearTimeout(timer);
      resolve(present);
    });
    socket.on('error', (error) => {
      failure = error;
    });
    socket.on('data', (chunk: Buffer) => {
      buffered = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk]);
      while (buffered.length >= 2) {
        const end = 2 + buffered.readUInt16BE(0);
        if (buffered.length < end) break;
        const message = buffered.subarray(2, end);
        buffered = buffered.subarray(end);
        const id = message.length < 2 ? -1 : message.readUInt16BE(0);
        const asked = waiting.get(id);
        // An answer to nothing that was asked is passed over, like one that came too late.
        if (asked === undefined) continue;
        waiting.delete(id);
        clearTimeout(asked.timer);
        present.used = true;
        asked.resolve(message);
      }
    });
    socket.on('close', () => {
      clearTimeout(timer);
      onEnd(present);
      const error = failure instanceof ConnectionError ? failure : new ConnectionError(inWords(failure));
      reject(error);
      for (const asked of waiting.values()) {
        clearTimeout(asked.timer);
        asked.reject(error);
      }
      waiting.clear();
    });
  });
}

/** Without the address, which Node's own texts name. */
export function inWords(error: Error | undefined): string {
  const { code } = (error ?? {}) as { code?: unknown };
  switch (code) {
    case 'ECONNREFUSED':
      return 'connection refused';
    case 'ECONNRESET':
    case 'EPIPE':
      return 'connection reset';
    case 'ENOTFOUND':
      return 'its host name is not known';
    case 'EAI_AGAIN':
      return 'its host name cannot be resolved at present';
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return 'no route to it';
    case 'ETIMEDOUT':
      return 'no answer';
    case undefined:
      return 'it closed the connection';
    default:
      return `connection failed (${String(code)})`;
  }
}
