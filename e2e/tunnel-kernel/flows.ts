/**
 * What is sent through the tunnels: numbered datagrams that come back, and transfers over TCP. Owns servers in the
 * customers' namespaces; the visitor's sockets are the process's own.
 */
import { createSocket, type Socket, type SocketOptions } from 'node:dgram';
import { connect, createServer, type Server } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Namespace } from '@levee/lab/namespace.ts';

const echoPort = 7007;
const transferPort = 8008;

/** In a namespace, bound before this returns: names are looked up later, and addresses too unless told how. */
export function boundSocket(namespace: Namespace, port: number, address: string): Socket {
  return namespace.enter(() => bind(port, address));
}

function bind(port: number, address: string): Socket {
  const family = address.includes(':') ? 6 : 4;
  const lookup = (host: string, _: unknown, done: (error: null, address: string, family: number) => void) =>
    done(null, host, family);
  const socket = createSocket({
    type: `udp${family}`,
    ipv6Only: family === 6,
    reuseAddr: true,
    lookup,
  } as SocketOptions);
  socket.on('error', () => undefined);
  return socket.bind(port, address);
}

/** Sends back every datagram, and over TCP as much as is asked for, then what it got. */
export class CustomerServices {
  private readonly sockets: Socket[];
  private readonly server: Server;
  private readonly connections = new Set<Duplex>();

  /** What is answered from an address that a socket is not bound to has the address of the way out. */
  constructor(namespace: Namespace, addresses: readonly string[]) {
    this.sockets = addresses.map((address) => boundSocket(namespace, echoPort, address));
    for (const socket of this.sockets) {
      socket.on('message', (bytes, { port, address }) => socket.send(bytes, port, address, () => undefined));
    }
    this.server = createServer({ allowHalfOpen: true }, (connection) => {
      const received: Buffer[] = [];
      this.connections.add(connection.on('close', () => this.connections.delete(connection)));
      connection.on('data', (chunk) => received.push(chunk));
      connection.on('end', () => connection.end(Buffer.concat(received)));
      connection.on('error', () => undefined);
    });
    namespace.enter(() => void this.server.listen(transferPort));
  }

  close(): void {
    for (const socket of this.sockets) socket.close();
    this.server.close();
    for (const connection of this.connections) connection.destroy();
  }
}

/** Octets sent and sent back, or an exception when that is not over in time. */
export function transfer(address: string, octets: number, deadlineMilliseconds: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let received = 0;
    const connection = connect({ host: address, port: transferPort });
    const timer = setTimeout(() => {
      connection.destroy();
      reject(new Error(`${received} of ${octets} octets came back from ${address} in ${deadlineMilliseconds} ms`));
    }, deadlineMilliseconds);
    connection.on('data', (chunk) => {
      received += chunk.length;
    });
    connection.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    connection.on('close', () => {
      clearTimeout(timer);
      resolve(received);
    });
    connection.end(Buffer.alloc(octets, 'x'));
  });
}

/** Datagrams to some addresses, one to each every few milliseconds, and how many of each came back. */
export class Flow {
  readonly sent = new Map<string, number>();
  readonly returned = new Map<string, number>();
  private readonly sockets: { readonly 4: Socket; readonly 6: Socket };
  private readonly timer: NodeJS.Timeout | undefined;

  /** Without a pace, only `once` sends. */
  constructor(addresses: readonly string[], paceMilliseconds?: number) {
    this.sockets = { 4: bind(0, '0.0.0.0'), 6: bind(0, '::') };
    for (const socket of Object.values(this.sockets)) {
      socket.on('message', (_, { address }) => this.returned.set(address, (this.returned.get(address) ?? 0) + 1));
    }
    if (paceMilliseconds !== undefined) {
      this.timer = setInterval(() => addresses.forEach((address) => void this.once(address)), paceMilliseconds);
    }
  }

  once(address: string): void {
    this.sent.set(address, (this.sent.get(address) ?? 0) + 1);
    this.sockets[address.includes(':') ? 6 : 4].send('x'.repeat(100), echoPort, address, () => undefined);
  }

  pause(): void {
    clearInterval(this.timer);
  }

  /** By address, those that are missing. */
  get missing(): readonly string[] {
    return [...this.sent].flatMap(([address, sent]) => {
      const back = this.returned.get(address) ?? 0;
      return back === sent ? [] : [`${sent - back} of ${sent} to ${address}`];
    });
  }

  close(): void {
    this.pause();
    for (const socket of Object.values(this.sockets)) socket.close();
  }
}
