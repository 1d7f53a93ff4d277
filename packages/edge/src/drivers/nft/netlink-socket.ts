/**
 * Netlink sockets of netfilter, by the C library's calls: opened in the network namespace of the thread that opens
 * them, and asked. Owns no message's meaning.
 */
import koffi from 'koffi';
import { type Message, messagesOf, netfilterSubsystem } from './netlink-message.ts';

export const addressFamilyNetlink = 16;
const socketRawCloseOnExec = 3 | 0x80000;
const protocolNetfilter = 12;
export const errno = { again: 11, interrupted: 4, noEntry: 2, noBuffers: 105 };

/** One notice of the kernel can batch up to a page or two; a dump fills what it is given, up to 32 KiB. */
export const receiveBytes = 65_536;

interface SocketCalls {
  socket(family: number, type: number, protocol: number): number;
  send(fd: number, bytes: Buffer, length: number, flags: number): number;
  recv(fd: number, bytes: Buffer, length: number, flags: number): number;
  setsockopt(fd: number, level: number, option: number, value: Buffer, length: number): number;
  bind(fd: number, address: Buffer, length: number): number;
  close(fd: number): number;
}

export type TableMessage = Extract<Message, { kind: 'table' }>;

let calls: SocketCalls | undefined;

/** Throws when the platform has no such calls. */
export function socketCalls(): SocketCalls {
  if (calls) return calls;
  const libc = koffi.load('libc.so.6');
  calls = {
    socket: libc.func('int socket(int family, int type, int protocol)') as SocketCalls['socket'],
    send: libc.func('intptr_t send(int fd, const void *bytes, size_t length, int flags)') as SocketCalls['send'],
    recv: libc.func('intptr_t recv(int fd, _Out_ void *bytes, size_t length, int flags)') as SocketCalls['recv'],
    setsockopt: libc.func(
      'int setsockopt(int fd, int level, int option, const void *value, uint32_t length)',
    ) as SocketCalls['setsockopt'],
    bind: libc.func('int bind(int fd, const void *address, uint32_t length)') as SocketCalls['bind'],
    close: libc.func('int close(int fd)') as SocketCalls['close'],
  };
  return calls;
}

/** The socket's number. Throws when the kernel refuses it. */
export function openSocket(): number {
  const fd = socketCalls().socket(addressFamilyNetlink, socketRawCloseOnExec, protocolNetfilter);
  if (fd < 0) throw new Error(`no netlink socket (errno ${koffi.errno()})`);
  return fd;
}

/** One datagram, or the errno. The bytes are valid until the next call with the same buffer. */
export function receive(fd: number, buffer: Buffer, flags: number): Buffer | number {
  for (;;) {
    const length = socketCalls().recv(fd, buffer, receiveBytes, flags);
    if (length >= 0) return buffer.subarray(0, length);
    const reason = koffi.errno();
    if (reason !== errno.interrupted) return reason;
  }
}

export function ask(fd: number, message: Buffer): void {
  if (socketCalls().send(fd, message, message.length, 0) !== message.length) {
    throw new Error(`netlink request failed (errno ${koffi.errno()})`);
  }
}

/**
 * Feeds the messages of a dump; the errno that it ended with (0 for none), or 'interrupted'. Each has a socket and a
 * buffer of its own, because a reader may pause in the middle while others ask.
 */
export function* dump(
  message: Buffer,
  subsystem: number = netfilterSubsystem,
): Generator<TableMessage, number | 'interrupted'> {
  const fd = openSocket();
  try {
    const buffer = Buffer.alloc(receiveBytes);
    ask(fd, message);
    let interrupted = false;
    for (;;) {
      const datagram = receive(fd, buffer, 0);
      if (typeof datagram === 'number') return datagram;
      for (const each of messagesOf(datagram, subsystem)) {
        if (each.kind === 'error') return each.error;
        interrupted ||= each.interrupted;
        if (each.kind === 'done') return each.error || (interrupted ? 'interrupted' : 0);
        yield each;
      }
    }
  } finally {
    socketCalls().close(fd);
  }
}
