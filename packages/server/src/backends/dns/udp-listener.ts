/** Owns the datagram side of one address: a message in, at most one out. Decides only whether the limit lets it. */
import { createSocket, type Socket } from 'node:dgram';
import type { Reply } from './answer.ts';
import type { DnsCounters } from './counters.ts';
import { networkOf } from './peer-address.ts';
import type { ResponseLimit } from './response-limit.ts';

export interface UdpOptions {
  readonly host: string;
  readonly port: number;
  readonly limit: ResponseLimit;
  readonly counters: DnsCounters;
  /** Never throws. */
  readonly answer: (message: Uint8Array, address: string, truncate: boolean) => Reply;
  readonly warn: (message: string) => void;
}

export interface UdpListener {
  readonly port: number;
  stop(): Promise<void>;
}

/** A burst of queries that comes while the process is at something else. */
const receiveBytes = 1024 * 1024;

/** Rejects with the system's error when the address cannot be had. */
export async function listenUdp(options: UdpOptions): Promise<UdpListener> {
  const { host, port, limit, counters, answer, warn } = options;
  const socket = createSocket({ type: host.includes(':') ? 'udp6' : 'udp4', recvBufferSize: receiveBytes });
  await bind(socket, host, port);
  socket.on('error', (error) => warn(`DNS over UDP on ${host}: ${error.message}`));
  const sent = (error: Error | null) => {
    if (error !== null) counters.unsent += 1;
  };
  socket.on('message', (message, { address, port: from }) => {
    counters.queries.udp += 1;
    // Nobody listens there (RFC 768 "no reply wanted"): forged.
    if (from === 0) {
      counters.unanswerable += 1;
      return;
    }
    const verdict = limit.judge(networkOf(address), performance.now());
    if (verdict === 'drop') {
      counters.limited.dropped += 1;
      return;
    }
    if (verdict === 'truncate') counters.limited.truncated += 1;
    const reply = answer(message, address, verdict === 'truncate');
    if (reply.kind !== 'none' && reply.kind !== 'transfer') socket.send(reply.octets, from, address, sent);
  });
  return {
    port: socket.address().port,
    stop: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

function bind(socket: Socket, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const refused = (error: Error) => {
      socket.close();
      reject(error);
    };
    socket.once('error', refused);
    socket.bind({ address: host, port, exclusive: true }, () => {
      socket.off('error', refused);
      resolve();
    });
  });
}
