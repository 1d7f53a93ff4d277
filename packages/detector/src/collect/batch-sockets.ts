/**
 * UDP sockets read with recvmmsg(2): up to 128 datagrams a call, into the same memory each time. Owns the FFI, the sockets and the
 * memory. Everything is synchronous: it belongs to a thread that does nothing else. Must never look into a datagram. Never closes a
 * socket: a thread that dies could not, and the kernel would go on giving the dead socket its part.
 *
 * When a datagram came is what the kernel says (SO_TIMESTAMPNS, socket(7)): where the thread or the whole process stood still, what
 * waited in the sockets is of the past and not of now.
 *
 * A datagram costs about half of what it does through node:dgram (decision 0126). IPv6 sockets take no IPv4.
 */
import { fstatSync } from 'node:fs';
import { parseAddress } from '@levee/core/net/address.ts';
import koffi from 'koffi';
import { type Words, wordsOf } from '../aggregate/address-words.ts';
import {
  GENEROUS_BUFFER_OCTETS,
  type ListenAddress,
  type OpenSocket,
  type RefusedAddress,
  type TakeDatagram,
} from './receive-port.ts';
import { sourceProgram } from './source-program.ts';

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM = 2;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const SO_REUSEPORT = 15;
const SO_RCVBUFFORCE = 33;
const SO_TIMESTAMPNS = 35;
const SO_ATTACH_REUSEPORT_CBPF = 51;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;
const MSG_DONTWAIT = 0x40;
const POLLIN = 1;

const batch = 128;
// struct mmsghdr on 64-bit Linux: msghdr 56 octets, msg_len 4, padding 4. struct iovec: 16. struct sockaddr_in6: 28.
const messageOctets = 64;
const vectorOctets = 16;
const nameOctets = 32;
/** struct cmsghdr, 16 octets, and the struct timespec in it: cmsg(3). */
const controlOctets = 32;
/** Larger than any datagram; not a power of two, so that beginnings of datagrams do not meet in the processor's cache. */
const slotOctets = 65_536 + 192;
const mostBatches = 8;

const libc = koffi.load(null);
const socketCall = libc.func('int socket(int domain, int type, int protocol)') as Call;
const bindCall = libc.func('int bind(int fd, void *address, uint32_t length)') as Call;
const closeCall = libc.func('int close(int fd)') as Call;
const setsockopt = libc.func('int setsockopt(int fd, int level, int name, void *value, uint32_t length)') as Call;
const getsockopt = libc.func('int getsockopt(int fd, int level, int name, void *value, void *length)') as Call;
const getsockname = libc.func('int getsockname(int fd, void *address, void *length)') as Call;
const recvmmsg = libc.func('int recvmmsg(int fd, void *messages, uint32_t count, int flags, void *timeout)') as Call;
const pollCall = libc.func('int poll(void *sockets, uint64_t count, int timeout)') as Call;

type Call = (...values: (number | bigint | Uint8Array | null)[]) => number;

/** Of one socket: what it was given last, and how far that has been handed over. */
class Socket implements OpenSocket {
  readonly descriptor: number;
  readonly family: 4 | 6;
  readonly address: ListenAddress;
  readonly receiveBufferOctets: number;
  readonly inode: number;
  /** Everything that came before has been handed over, by the wall clock. */
  readToMs = 0;
  readonly #slots: Uint8Array[] = [];
  readonly #names = block(batch * nameOctets);
  readonly #nameView = new DataView(this.#names.buffer);
  readonly #controls = block(batch * controlOctets);
  readonly #controlView = new DataView(this.#controls.buffer);
  readonly #vectors = block(batch * vectorOctets);
  readonly #messages = block(batch * messageOctets);
  readonly #messageView = new DataView(this.#messages.buffer);
  readonly #messagesAddress = koffi.address(this.#messages);
  #count = 0;
  #next = 0;

  constructor(descriptor: number, family: 4 | 6, address: ListenAddress, bufferOctets: number) {
    this.descriptor = descriptor;
    this.family = family;
    this.address = address;
    this.receiveBufferOctets = growReceiveBuffer(descriptor, bufferOctets);
    this.inode = fstatSync(descriptor).ino;
    // What is never written to takes no memory.
    const octets = block(batch * slotOctets);
    const first = koffi.address(octets);
    const names = koffi.address(this.#names);
    const controls = koffi.address(this.#controls);
    const vectors = koffi.address(this.#vectors);
    const vectorView = new DataView(this.#vectors.buffer);
    for (let i = 0; i < batch; i++) {
      this.#slots.push(octets.subarray(i * slotOctets, (i + 1) * slotOctets));
      vectorView.setBigUint64(i * vectorOctets, first + BigInt(i * slotOctets), true);
      vectorView.setBigUint64(i * vectorOctets + 8, BigInt(slotOctets), true);
      const at = i * messageOctets;
      this.#messageView.setBigUint64(at, names + BigInt(i * nameOctets), true);
      this.#messageView.setUint32(at + 8, family === 4 ? 16 : 28, true);
      this.#messageView.setBigUint64(at + 16, vectors + BigInt(i * vectorOctets), true);
      this.#messageView.setBigUint64(at + 24, 1n, true);
      this.#messageView.setBigUint64(at + 32, controls + BigInt(i * controlOctets), true);
      this.#messageView.setBigUint64(at + 40, BigInt(controlOctets), true);
    }
  }

  /** Hands over what came before `untilMs`, at most 1 024 datagrams; answers how many. `nowMs`: the wall clock before the call. */
  receive(take: TakeDatagram, untilMs: number, nowMs: number): number {
    let total = 0;
    for (let i = 0; i < mostBatches; i++) {
      const isRead = this.#next === this.#count;
      if (isRead) this.#read();
      while (this.#next < this.#count) {
        // One from the future came before the clock was set back.
        const cameMs = Math.min(this.#cameMs(this.#next, nowMs), nowMs);
        this.readToMs = cameMs;
        if (cameMs >= untilMs) return total;
        this.#hand(this.#next++, take);
        total++;
      }
      // What was left over from the call before says nothing about what came since.
      if (!isRead || this.#count === batch) continue;
      this.readToMs = nowMs;
      break;
    }
    return total;
  }

  #read(): void {
    this.#next = 0;
    const count = recvmmsg(this.descriptor, this.#messagesAddress, batch, MSG_DONTWAIT, null);
    // What an ICMP message says of a peer that we never sent to, and a call that a signal ended, are no end.
    this.#count = Math.max(0, count);
  }

  #cameMs(index: number, nowMs: number): number {
    const message = index * messageOctets;
    if (this.#messageView.getUint32(message + 40, true) < controlOctets) {
      this.#messageView.setUint32(message + 40, controlOctets, true);
      return nowMs;
    }
    const at = index * controlOctets + 16;
    const seconds = this.#controlView.getUint32(at + 4, true) * 2 ** 32 + this.#controlView.getUint32(at, true);
    return seconds * 1_000 + this.#controlView.getUint32(at + 8, true) / 1e6;
  }

  #hand(index: number, take: TakeDatagram): void {
    const length = this.#messageView.getUint32(index * messageOctets + 56, true);
    const names = this.#nameView;
    const name = index * nameOctets;
    const octets = this.#slots[index] as Uint8Array;
    if (this.family === 4) {
      take(octets, length, 4, names.getUint32(name + 4, false), 0, 0, 0);
      return;
    }
    take(
      octets,
      length,
      6,
      names.getUint32(name + 8, false),
      names.getUint32(name + 12, false),
      names.getUint32(name + 16, false),
      names.getUint32(name + 20, false),
    );
  }
}

export class BatchSockets {
  /** False: the kernel refused to choose among the sockets of a port by the source's address. */
  isBySource = true;
  readonly #sockets: Socket[] = [];
  readonly #bufferOctets: number;
  readonly #sharing: number;
  #polled = block(8);

  /** `bufferOctets`: what each socket asks of the kernel. `sharing`: how many threads open the same addresses. */
  constructor(bufferOctets = GENEROUS_BUFFER_OCTETS, sharing = 1) {
    this.#bufferOctets = bufferOctets;
    this.#sharing = sharing;
  }

  get open(): readonly OpenSocket[] {
    return this.#sockets;
  }

  listen(address: ListenAddress): RefusedAddress | undefined {
    const parsed = parseAddress(address.host);
    if (!parsed.ok) return { address, code: 'EINVAL' };
    const { family } = parsed.address;
    const fd = socketCall(family === 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return { address, code: errorCode() };
    setOption(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    setOption(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
    if (family === 6) setOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    const name = socketName(family, wordsOf(parsed.address), address.port);
    if (bindCall(fd, name, name.length) < 0) {
      const code = errorCode();
      closeCall(fd);
      return { address, code };
    }
    if (!chooseBySource(fd, family, this.#sharing)) this.isBySource = false;
    getsockname(fd, name, new Uint8Array(Uint32Array.of(name.length).buffer));
    const port = new DataView(name.buffer).getUint16(2, false);
    this.#sockets.push(new Socket(fd, family, { host: address.host, port }, this.#bufferOctets));
    this.#polled = block(this.#sockets.length * 8); // struct pollfd
    const view = new DataView(this.#polled.buffer);
    this.#sockets.forEach((socket, index) => {
      view.setInt32(index * 8, socket.descriptor, true);
      view.setInt16(index * 8 + 4, POLLIN, true);
    });
    return undefined;
  }

  /**
   * Hands over what came before `untilMs` by the wall clock, of each socket at most 1 024 datagrams; answers how many. `nowMs`: what that
   * clock says now.
   */
  receive(take: TakeDatagram, untilMs: number, nowMs: number): number {
    let total = 0;
    for (const socket of this.#sockets) total += socket.receive(take, untilMs, nowMs);
    return total;
  }

  /** Everything that came before has been handed over; `nowMs`: what it is without a socket. */
  readTo(nowMs: number): number {
    let readToMs = nowMs;
    for (const socket of this.#sockets) readToMs = Math.min(readToMs, socket.readToMs);
    return readToMs;
  }

  /** Ends when a datagram has come, at the latest after so long. Without sockets it is a pause. */
  wait(milliseconds: number): void {
    pollCall(this.#polled, this.#sockets.length, Math.max(0, Math.ceil(milliseconds)));
  }
}

/** Memory whose address never changes: V8 moves small typed arrays that it made a buffer for, never a buffer's contents. */
function block(octets: number): Uint8Array {
  return new Uint8Array(new ArrayBuffer(octets));
}

function errorCode(): string {
  const number = koffi.errno();
  for (const [name, value] of Object.entries(koffi.os.errno)) if (value === number) return name;
  return `errno ${number}`;
}

function setOption(fd: number, level: number, name: number, value: number): void {
  setsockopt(fd, level, name, new Uint8Array(Int32Array.of(value).buffer), 4);
}

/** For all sockets of the port; one that is not there yet is not chosen. */
function chooseBySource(fd: number, family: 4 | 6, sharing: number): boolean {
  const program = sourceProgram(family, sharing);
  const described = block(16); // struct sock_fprog
  const view = new DataView(described.buffer);
  view.setUint16(0, program.length / 8, true);
  view.setBigUint64(8, koffi.address(program), true);
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, described, described.length) === 0;
}

/** What the kernel tells is twice what it was asked for: socket(7). */
function receiveBuffer(fd: number): number {
  const value = new Uint8Array(4);
  getsockopt(fd, SOL_SOCKET, SO_RCVBUF, value, new Uint8Array(Uint32Array.of(4).buffer));
  return new DataView(value.buffer).getInt32(0, true) / 2;
}

/** As far as net.core.rmem_max lets it; beyond it where we are privileged. */
function growReceiveBuffer(fd: number, octets: number): number {
  setOption(fd, SOL_SOCKET, SO_RCVBUF, octets);
  if (receiveBuffer(fd) < octets) setOption(fd, SOL_SOCKET, SO_RCVBUFFORCE, octets);
  return receiveBuffer(fd);
}

/** struct sockaddr_in or sockaddr_in6. */
function socketName(family: 4 | 6, words: Words, port: number): Uint8Array {
  const name = new Uint8Array(family === 4 ? 16 : 28);
  const view = new DataView(name.buffer);
  view.setUint16(0, family === 4 ? AF_INET : AF_INET6, true);
  view.setUint16(2, port, false);
  if (family === 4) view.setUint32(4, words[0], false);
  else for (const [index, word] of words.entries()) view.setUint32(8 + index * 4, word, false);
  return name;
}
