/**
 * UDP sockets read through node:dgram, for machines on which the FFI does not work. Owns the sockets. Must never look into a datagram.
 */
import { createSocket, type Socket } from 'node:dgram';
import { parseAddress } from '@levee/core/net/address.ts';
import { type Words, wordsOf } from '../aggregate/address-words.ts';
import { readUdpSockets, type UdpSocket } from './kernel-drops.ts';
import {
  type ListenAddress,
  type OpenSocket,
  RECEIVE_BUFFER_OCTETS,
  type RefusedAddress,
  type TakeDatagram,
} from './receive-port.ts';

/** Sources whose words are remembered; forgers of sources make it begin anew. */
const mostSources = 4_096;

export class EventSockets {
  readonly #open: (OpenSocket & { readonly socket: Socket })[] = [];
  readonly #words = new Map<string, Words>();
  readonly #take: TakeDatagram;

  constructor(take: TakeDatagram) {
    this.#take = take;
  }

  get open(): readonly OpenSocket[] {
    return this.#open;
  }

  async listen(address: ListenAddress): Promise<RefusedAddress | undefined> {
    const parsed = parseAddress(address.host);
    if (!parsed.ok) return { address, code: 'EINVAL' };
    const { family } = parsed.address;
    const before = readUdpSockets();
    const socket = createSocket({
      type: family === 4 ? 'udp4' : 'udp6',
      reusePort: true,
      ipv6Only: family === 6,
      recvBufferSize: RECEIVE_BUFFER_OCTETS,
    });
    const code = await new Promise<string | undefined>((resolve) => {
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      socket.bind({ address: address.host, port: address.port }, () => resolve(undefined));
    });
    if (code !== undefined) {
      socket.close();
      return { address, code };
    }
    socket.removeAllListeners('error');
    // A socket that only receives has no errors that would end it; what an ICMP message says of others is none of ours.
    socket.on('error', () => undefined);
    socket.on('message', (octets, { address: source }) => {
      const [a, b, c, d] = this.#wordsOf(source);
      this.#take(octets, octets.length, family, a, b, c, d);
    });
    this.#open.push({
      socket,
      address: { host: address.host, port: socket.address().port },
      receiveBufferOctets: socket.getRecvBufferSize() / 2,
      descriptor: -1,
      inode: newInode(before, socket.address().port),
    });
    return undefined;
  }

  close(): void {
    for (const { socket } of this.#open.splice(0)) socket.close();
  }

  #wordsOf(source: string): Words {
    const known = this.#words.get(source);
    if (known !== undefined) return known;
    const zone = source.indexOf('%');
    const parsed = parseAddress(zone < 0 ? source : source.slice(0, zone));
    const words = parsed.ok ? wordsOf(parsed.address) : ([0, 0, 0, 0] as const);
    if (this.#words.size === mostSources) this.#words.clear();
    this.#words.set(source, words);
    return words;
  }
}

/**
 * Node tells no descriptor of a socket: it is the one of this port that was not there before. 0 where something else opened one of the
 * same port meanwhile; then its drops are not told.
 */
function newInode(before: ReadonlyMap<number, UdpSocket>, port: number): number {
  const found = [...readUdpSockets()].filter(([inode, socket]) => socket.port === port && !before.has(inode));
  return found.length === 1 ? (found[0]?.[0] ?? 0) : 0;
}
