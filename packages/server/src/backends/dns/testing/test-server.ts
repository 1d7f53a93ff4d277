/** A server on loopback for one test, stopped with it, and the raw clients that dig cannot be. Test code only. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { type DnsAddress, type DnsServer, type DnsServerOptions, startDnsServer } from '../dns-server.ts';
import type { ZoneSource } from '../zone-source.ts';

export interface TestServer extends DnsServer {
  readonly at: DnsAddress;
  readonly warnings: readonly string[];
}

export async function serve(
  t: TestContext,
  source: ZoneSource,
  more: Partial<DnsServerOptions> = {},
): Promise<TestServer> {
  const warnings: string[] = [];
  const started = await startDnsServer({
    listen: [{ host: '127.0.0.1', port: 0 }],
    source,
    answersPerSecond: 0,
    warn: (message) => warnings.push(message),
    logError: (error) => warnings.push(String(error)),
    ...more,
  });
  assert.ok(started.ok, started.ok ? '' : started.message);
  t.after(() => started.dns.stop());
  const at = started.dns.addresses[0];
  assert.ok(at !== undefined);
  return { ...started.dns, at, warnings };
}

export interface UdpClient {
  readonly received: Buffer[];
  send(message: Buffer): Promise<void>;
}

export async function udpClient(t: TestContext, server: DnsAddress, from = '127.0.0.1'): Promise<UdpClient> {
  const socket = createSocket('udp4');
  const received: Buffer[] = [];
  socket.on('message', (message) => received.push(message));
  await new Promise<void>((resolve) => socket.bind(0, from, resolve));
  t.after(() => socket.close());
  return {
    received,
    send: (message) =>
      new Promise((resolve, reject) => {
        socket.send(message, server.port, server.host, (error) => (error === null ? resolve() : reject(error)));
      }),
  };
}

export interface TcpClient {
  readonly socket: Socket;
  /** Whole messages, without their lengths. */
  readonly received: Buffer[];
  readonly isClosed: boolean;
}

export async function tcpClient(t: TestContext, server: DnsAddress, from = '127.0.0.1'): Promise<TcpClient> {
  const socket = connect({ host: server.host, port: server.port, localAddress: from, allowHalfOpen: true });
  const received: Buffer[] = [];
  const client = { socket, received, isClosed: false };
  let rest: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
      const end = 2 + rest.readUInt16BE(0);
      received.push(rest.subarray(2, end));
      rest = rest.subarray(end);
    }
  });
  socket.on('error', () => {});
  for (const event of ['end', 'close']) {
    socket.on(event, () => {
      client.isClosed = true;
    });
  }
  t.after(() => socket.destroy());
  await new Promise((resolve) => socket.once('connect', resolve));
  return client;
}

/** With its length in front. */
export function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
