/**
 * Owns the connections of one address: how many there may be, who goes when there are more, and how long one may do
 * nothing. Knows no messages.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { Reply } from './answer.ts';
import type { DnsCounters } from './counters.ts';
import { canonicalPeer, networkOf } from './peer-address.ts';
import { TcpConnection } from './tcp-connection.ts';

export interface TcpOptions {
  readonly host: string;
  readonly port: number;
  readonly counters: DnsCounters;
  /** Never throws. `address` is canonical. */
  readonly answer: (message: Uint8Array, address: string) => Reply;
  readonly transferred: (zoneName: string, serial: number, address: string) => void;
  readonly limits: TcpLimits;
  readonly warn: (message: string) => void;
}

export interface TcpLimits {
  /** At once. */
  readonly connections: number;
  /** Without a whole message (RFC 7766, 6.2.3: seconds). */
  readonly idleMilliseconds: number;
  /** Without a part of a transfer being taken. */
  readonly stalledMilliseconds: number;
}

export const usualTcpLimits: TcpLimits = { connections: 512, idleMilliseconds: 10_000, stalledMilliseconds: 60_000 };

export interface TcpListener {
  readonly port: number;
  stop(): Promise<void>;
}

/** Rejects with the system's error when the address cannot be had. */
export async function listenTcp(options: TcpOptions): Promise<TcpListener> {
  const { host, port, limits, warn } = options;
  const connections = new Connections(options);
  const server = createServer({ allowHalfOpen: true }, (socket) => connections.accept(socket));
  await listening(server, host, port);
  server.on('error', (error) => warn(`DNS over TCP on ${host}: ${error.message}`));
  const sweep = setInterval(() => connections.sweep(), Math.max(10, Math.min(1000, limits.idleMilliseconds / 4)));
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      clearInterval(sweep);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      connections.cutAll();
      await closed;
    },
  };
}

class Connections {
  readonly #options: TcpOptions;
  /** By network, so that one cannot drive out the connections of the others. */
  readonly #byNetwork = new Map<string, Set<TcpConnection>>();
  #count = 0;

  constructor(options: TcpOptions) {
    this.#options = options;
  }

  accept(socket: Socket): void {
    const { counters, answer, transferred, limits } = this.#options;
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      // Gone again already.
      socket.destroy();
      return;
    }
    counters.connections.accepted += 1;
    if (this.#count >= limits.connections) this.#evict();
    const address = canonicalPeer(remoteAddress);
    const network = networkOf(remoteAddress).join();
    const connection = new TcpConnection(socket, {
      counters,
      answer: (message) => answer(message, address),
      transferred: (zoneName, serial) => transferred(zoneName, serial, address),
    });
    const siblings = this.#byNetwork.get(network) ?? new Set();
    this.#byNetwork.set(network, siblings.add(connection));
    this.#count += 1;
    socket.on('close', () => {
      this.#count -= 1;
      siblings.delete(connection);
      if (siblings.size === 0 && this.#byNetwork.get(network) === siblings) this.#byNetwork.delete(network);
    });
  }

  sweep(): void {
    const { counters, limits } = this.#options;
    const now = performance.now();
    for (const connection of this.#all()) {
      const allowed = connection.transferring ? limits.stalledMilliseconds : limits.idleMilliseconds;
      if (now - connection.lastProgress <= allowed) continue;
      counters.connections.idle += 1;
      connection.cut();
    }
  }

  cutAll(): void {
    for (const connection of this.#all()) connection.cut();
  }

  /** Of the network with the most connections the one that has done nothing for longest; transfers last. */
  #evict(): void {
    const networks = [...this.#byNetwork.values()];
    const crowded = networks.reduce((most, set) => (set.size > most.size ? set : most), new Set<TcpConnection>());
    const [oldest] = [...crowded].sort(
      (a, b) => Number(a.transferring) - Number(b.transferring) || a.lastProgress - b.lastProgress,
    );
    this.#options.counters.connections.evicted += 1;
    oldest?.cut();
  }

  #all(): TcpConnection[] {
    return [...this.#byNetwork.values()].flatMap((set) => [...set]);
  }
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: 511 }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}
