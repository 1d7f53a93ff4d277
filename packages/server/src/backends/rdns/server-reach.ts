/**
 * Connects to a server of which nothing may come back, and watches one of which an answer is awaited. A packet that is lost
 * is sent again after one second, two, four …: whoever waits for that learns of a server's return seconds later. So
 * connections are tried anew every half second, and an answer is given up as soon as no connection can be made beside.
 * Knows no protocol.
 */
import { connect, type Socket } from 'node:net';
import type { HostPort } from '@levee/core/rdns/zone-settings.ts';

/** `message` follows "the DNS server is away: ". */
export class ConnectionError extends Error {}

const connectMilliseconds = 1_500;
const anotherMilliseconds = 500;
const quietMilliseconds = 1_000;

/** The first connection that is made of up to three. Rejects with a `ConnectionError`; the signal ends it so, too. */
export function dialServer({ host, port }: HostPort, signal?: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const sockets = new Set<Socket>();
    const end = (made?: Socket) => {
      clearTimeout(limit);
      clearInterval(again);
      signal?.removeEventListener('abort', abandon);
      for (const socket of sockets) if (socket !== made) socket.destroy();
    };
    const fail = (error: ConnectionError) => {
      end();
      reject(error);
    };
    const abandon = () => fail(new ConnectionError('the connection was given up'));
    const attempt = () => {
      const socket = connect({ host, port, noDelay: true });
      sockets.add(socket);
      const failed = (error: Error) => fail(new ConnectionError(inWords(error)));
      socket.once('error', failed);
      socket.once('connect', () => {
        socket.off('error', failed);
        end(socket);
        resolve(socket);
      });
    };
    const limit = setTimeout(
      () => fail(new ConnectionError(`no connection within ${connectMilliseconds / 1000} s`)),
      connectMilliseconds,
    );
    const again = setInterval(attempt, anotherMilliseconds);
    signal?.addEventListener('abort', abandon, { once: true });
    if (signal?.aborted) abandon();
    else attempt();
  });
}

export interface ServerWatch {
  /** Something came. */
  heard(): void;
  stop(): void;
}

/**
 * From now until it is stopped an answer is awaited. `lost` is called, once, when for a second nothing was heard and no
 * connection can be made: a server that is slow takes connections.
 */
export function watchServer({ host, port }: HostPort, lost: (error: ConnectionError) => void): ServerWatch {
  let timer = setTimeout(probe, quietMilliseconds);
  let probing: Socket | undefined;

  function probe(): void {
    const socket = connect({ host, port });
    probing = socket;
    const judge = (isThere: boolean) => {
      if (probing !== socket) return;
      probing = undefined;
      clearTimeout(timer);
      socket.destroy();
      if (isThere) timer = setTimeout(probe, quietMilliseconds);
      else lost(new ConnectionError('no answer, nor a further connection'));
    };
    timer = setTimeout(judge, anotherMilliseconds, false);
    socket.once('connect', () => judge(true));
    socket.on('error', () => judge(false));
  }

  function forget(): void {
    clearTimeout(timer);
    const socket = probing;
    probing = undefined;
    socket?.destroy();
  }

  return {
    heard() {
      forget();
      timer = setTimeout(probe, quietMilliseconds);
    },
    stop: forget,
  };
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
