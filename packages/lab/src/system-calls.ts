/**
 * The few C functions that the lab calls: sockets of the packet family and the calling thread's network namespace.
 * Owns the FFI and errno; must never be async: a system call runs on the thread that asked for it, and the network
 * namespace belongs to a thread, not to a process.
 */
import koffi from 'koffi';

const libc = koffi.load(null);

export const system = {
  socket: libc.func('int socket(int domain, int type, int protocol)') as (d: number, t: number, p: number) => number,
  bind: libc.func('int bind(int fd, void *address, uint32_t length)') as (
    fd: number,
    address: Uint8Array,
    length: number,
  ) => number,
  close: libc.func('int close(int fd)') as (fd: number) => number,
  setsockopt: libc.func('int setsockopt(int fd, int level, int name, void *value, uint32_t length)') as (
    fd: number,
    level: number,
    name: number,
    value: Uint8Array,
    length: number,
  ) => number,
  getsockopt: libc.func('int getsockopt(int fd, int level, int name, void *value, void *length)') as (
    fd: number,
    level: number,
    name: number,
    value: Uint8Array,
    length: Uint8Array,
  ) => number,
  sendmmsg: libc.func('int sendmmsg(int fd, void *messages, uint32_t count, int flags)') as (
    fd: number,
    messages: bigint,
    count: number,
    flags: number,
  ) => number,
  recvmmsg: libc.func('int recvmmsg(int fd, void *messages, uint32_t count, int flags, void *timeout)') as (
    fd: number,
    messages: bigint,
    count: number,
    flags: number,
    timeout: null,
  ) => number,
  setns: libc.func('int setns(int fd, int kind)') as (fd: number, kind: number) => number,
  if_nametoindex: libc.func('uint32_t if_nametoindex(str name)') as (name: string) => number,
  sched_setaffinity: libc.func('int sched_setaffinity(int thread, size_t length, void *mask)') as (
    thread: number,
    length: number,
    mask: Uint8Array,
  ) => number,
};

/** Where a buffer's bytes lie. It stays true as long as the buffer is reachable: V8 never moves a backing store. */
export function addressOf(buffer: Uint8Array): bigint {
  return koffi.address(buffer);
}

/** errno of the last call on this thread, as the name that errno(3) gives it. */
export function lastErrorCode(): string {
  const number = koffi.errno();
  for (const [name, value] of Object.entries(koffi.os.errno)) if (value === number) return name;
  return `errno ${number}`;
}

export class SystemCallError extends Error {
  readonly code: string;
  constructor(call: string, code = lastErrorCode()) {
    super(`${call}: ${code}`);
    this.code = code;
  }
}

/** The result, or an exception that names the call when it is negative. */
export function checked(call: string, result: number): number {
  if (result < 0) throw new SystemCallError(call);
  return result;
}

/**
 * Keeps the calling thread on one processor. Packets sent from it are then forwarded in the order sent: the
 * kernel's backlog is one queue a processor.
 */
export function pinThread(processor: number): void {
  const mask = new Uint8Array(128);
  mask[processor >> 3] = 1 << (processor & 7);
  checked('sched_setaffinity', system.sched_setaffinity(0, mask.length, mask));
}
