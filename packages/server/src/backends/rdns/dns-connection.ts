/**
 * One TCP connection to a DNS server (RFC 7766), made when it is needed and made again after it ended. Requests are
 * pipelined; answers are told apart by their id. Owns ids, framing and times; reads no message beyond its id.
 */
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { HostPort } from '@levee/core/rdns/zone-settings.ts';
import { ConnectionError, dialServer, inWords, type ServerWatch, watchServer } from './server-reach.ts';

export interface DnsConnection {
  /** `write` is given the message's id. Rejects with a `ConnectionError`. */
  exchange(write: (id: number) => Buffer): Promise<Buffer>;
  close(): void;
}

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
  /** While anything is waited for. */
  watch: ServerWatch | undefined;
  /** Whether anything was ever answered on it. */
  used: boolean;
}

export function createDnsConnection(place: HostPort): DnsConnection {
  let open: Promise<Open> | undefined;
  const closing = new AbortController();
  let nextId = Math.floor(Math.random() * 65_536);
  let idle: NodeJS.Timeout | undefined;

  function opened(): Promise<Open> {
    open ??= dialServer(place, closing.signal).then((socket) =>
      converse(socket, (ended) => {
        void open?.then(
          (present) => {
            if (present === ended) open = undefined;
          },
          () => {},
        );
      }),
    );
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
        present.watch ??= watchServer(place, (error) => socket.destroy(error));
        socket.write(Buffer.concat([length, message]));
      });
    } finally {
      if (waiting.size === 0) rest(present);
    }
  }

  return {
    async exchange(write) {
      if (closing.signal.aborted) throw new ConnectionError('the connection was given up');
      const reused = open !== undefined && (await open.then(({ used }) => used).catch(() => false));
      try {
        return await once(write);
      } catch (error) {
        // A connection that the server had closed while it was idle: what was sent on it was not carried out, and
        // would do no harm twice.
        if (!reused || closing.signal.aborted) throw error;
        await delay(0);
        return once(write);
      }
    },
    close() {
      closing.abort();
      clearTimeout(idle);
      void open
        ?.then(({ socket }) => socket.destroy(new ConnectionError('the connection was given up')))
        .catch(() => {});
    },
  };
}

/** Tells the answers on a connection apart, until it ends. */
function converse(socket: Socket, onEnd: (ended: Open) => void): Open {
  const waiting = new Map<number, Waiting>();
  const present: Open = { socket, waiting, watch: undefined, used: false };
  let failure: Error | undefined;
  let buffered: Buffer = Buffer.alloc(0);
  const unwatch = () => {
    present.watch?.stop();
    present.watch = undefined;
  };
  socket.on('error', (error) => {
    failure = error;
  });
  socket.on('data', (chunk: Buffer) => {
    present.watch?.heard();
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
    if (waiting.size === 0) unwatch();
  });
  socket.on('close', () => {
    unwatch();
    onEnd(present);
    const error = failure instanceof ConnectionError ? failure : new ConnectionError(inWords(failure));
    for (const asked of waiting.values()) {
      clearTimeout(asked.timer);
      asked.reject(error);
    }
    waiting.clear();
  });
  return present;
}
