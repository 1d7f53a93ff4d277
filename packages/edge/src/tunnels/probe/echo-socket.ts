/**
 * Sockets that echo requests go out by, one a family, through libc. Owns the two ways to have one, and the kernel's time of
 * arrival; never waits: what has come is asked for. They belong to the network namespace that the process was started in.
 *
 * A ping socket (icmp(7)) needs no privilege but the group's place in net.ipv4.ping_group_range, which Debian's systemd opens
 * to all, and gets nobody else's answers. Where it is refused a raw socket serves, which needs CAP_NET_RAW.
 */

import { formatAddress, parseAddress } from '@levee/core/net/address.ts';
import type { Family } from '@levee/core/net/prefix.ts';
import koffi from 'koffi';
import { type Echo, readReply, writeRequest } from './echo-message.ts';

export interface EchoAnswer extends Echo {
  readonly from: string;
  /** Milliseconds since 1970, with fractions: when the kernel had it. */
  readonly at: number;
}

export interface EchoSocket {
  /** When it was sent, as `EchoAnswer.at`; undefined: the kernel did not take it. */
  send(address: string, echo: Echo): number | undefined;
  /** All that have come since the last call. */
  receive(): readonly EchoAnswer[];
  close(): void;
}

interface Calls {
  socket(family: number, type: number, protocol: number): number;
  setsockopt(fd: number, level: number, option: number, value: Buffer, length: number): number;
  sendto(fd: number, bytes: Buffer, length: number, flags: number, address: Buffer, addressLength: number): number;
  recvfrom(fd: number, bytes: Buffer, length: number, flags: number, address: Buffer, addressLength: Buffer): number;
  ioctl(fd: number, request: number, argument: Buffer): number;
  clock_gettime(clock: number, time: Buffer): number;
  close(fd: number): number;
}

const socketFamily: Readonly<Record<Family, number>> = { 4: 2, 6: 10 };
const icmpProtocol: Readonly<Record<Family, number>> = { 4: 1, 6: 58 };
const datagram = 2 | 0x80000; // SOCK_DGRAM | SOCK_CLOEXEC
const raw = 3 | 0x80000; // SOCK_RAW | SOCK_CLOEXEC
const dontWait = 0x40;
const realTime = 0;
const lastArrival = 0x8907; // SIOCGSTAMPNS
const receiveBytes = 2048;

let calls: Calls | undefined;

function load(): Calls {
  if (calls) return calls;
  const libc = koffi.load('libc.so.6');
  calls = {
    socket: libc.func('int socket(int family, int type, int protocol)') as Calls['socket'],
    setsockopt: libc.func(
      'int setsockopt(int fd, int level, int option, const void *value, uint32_t length)',
    ) as Calls['setsockopt'],
    sendto: libc.func(
      'intptr_t sendto(int fd, const void *bytes, size_t length, int flags, const void *address, uint32_t size)',
    ) as Calls['sendto'],
    recvfrom: libc.func(
      'intptr_t recvfrom(int fd, _Out_ void *bytes, size_t length, int flags, _Out_ void *address, _Inout_ void *size)',
    ) as Calls['recvfrom'],
    ioctl: libc.func('int ioctl(int fd, unsigned long request, _Out_ void *argument)') as Calls['ioctl'],
    clock_gettime: libc.func('int clock_gettime(int clock, _Out_ void *time)') as Calls['clock_gettime'],
    close: libc.func('int close(int fd)') as Calls['close'],
  };
  return calls;
}

/** Throws an Error with a sentence where the platform or the process's rights allow neither kind. */
export function openEchoSocket(family: Family): EchoSocket {
  const system = load();
  let withHeader = false;
  let fd = system.socket(socketFamily[family], datagram, icmpProtocol[family]);
  if (fd < 0) {
    fd = system.socket(socketFamily[family], raw, icmpProtocol[family]);
    withHeader = family === 4;
    if (fd < 0)
      throw new Error(`no ICMP socket (errno ${koffi.errno()}): neither net.ipv4.ping_group_range nor CAP_NET_RAW`);
    letRepliesInOnly(system, fd, family);
  }
  // The customer's inner address is the next hop: what a missing device sends elsewhere gets no further.
  if (family === 4)
    setNumber(system, fd, 0, 2, 1); // IPPROTO_IP, IP_TTL
  else setNumber(system, fd, 41, 16, 1); // IPPROTO_IPV6, IPV6_UNICAST_HOPS
  const time = Buffer.alloc(16);
  const millisecondsOf = (bytes: Buffer): number =>
    Number(bytes.readBigInt64LE(0)) * 1000 + Number(bytes.readBigInt64LE(8)) / 1e6;
  system.ioctl(fd, lastArrival, time); // from now on the kernel notes when what it hands over had come
  const identifier = process.pid & 0xffff;
  const bytes = Buffer.alloc(receiveBytes);
  const sender = Buffer.alloc(28);
  const senderLength = Buffer.alloc(4);
  return {
    send(address, echo) {
      const message = writeRequest(family, identifier, echo);
      const target = socketAddress(family, address);
      system.clock_gettime(realTime, time);
      const at = millisecondsOf(time);
      return system.sendto(fd, message, message.length, dontWait, target, target.length) < 0 ? undefined : at;
    },
    receive() {
      const answers: EchoAnswer[] = [];
      for (;;) {
        senderLength.writeUInt32LE(sender.length);
        const length = system.recvfrom(fd, bytes, receiveBytes, dontWait, sender, senderLength);
        // Also the kernel's word that something sent earlier was unreachable: it is told, and the next call goes on.
        if (length < 0) return answers;
        const echo = readReply(family, bytes.subarray(0, length), withHeader);
        if (echo === undefined || system.ioctl(fd, lastArrival, time) < 0) continue;
        const { sequence, payload } = echo;
        answers.push({
          sequence,
          payload: Buffer.from(payload),
          from: addressIn(family, sender),
          at: millisecondsOf(time),
        });
      }
    },
    close: () => void system.close(fd),
  };
}

/** A raw socket is shown every ICMP message of the machine otherwise. */
function letRepliesInOnly(system: Calls, fd: number, family: Family): void {
  if (family === 4) {
    setNumber(system, fd, 255, 1, ~1); // SOL_RAW, ICMP_FILTER: all types but 0
    return;
  }
  const filter = Buffer.alloc(32, 0xff); // ICMPV6_FILTER: a set bit blocks
  filter.writeUInt32LE(~(1 << (129 & 31)) >>> 0, (129 >> 5) * 4);
  system.setsockopt(fd, 58, 1, filter, filter.length);
}

function setNumber(system: Calls, fd: number, level: number, option: number, value: number): void {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  system.setsockopt(fd, level, option, bytes, bytes.length);
}

/** struct sockaddr_in, struct sockaddr_in6. */
function socketAddress(family: Family, text: string): Buffer {
  const read = parseAddress(text);
  if (!read.ok) throw new RangeError(`no address: ${text}`);
  const bytes = Buffer.alloc(family === 4 ? 16 : 28);
  bytes.writeUInt16LE(socketFamily[family]);
  const digits = read.address.value.toString(16).padStart(family === 4 ? 8 : 32, '0');
  bytes.write(digits, family === 4 ? 4 : 8, 'hex');
  return bytes;
}

function addressIn(family: Family, bytes: Buffer): string {
  const part = family === 4 ? bytes.subarray(4, 8) : bytes.subarray(8, 24);
  return formatAddress({ family, value: BigInt(`0x${part.toString('hex')}`) });
}
