/**
 * What a worker asks of its sockets, whichever way they are read: `batch-sockets.ts` many datagrams a system call, `event-sockets.ts`
 * through Node where there is no FFI. Owns no behaviour.
 */

/** Where datagrams are awaited; port 0: any that is free. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** The octets are those of the receiver and are overwritten after the call; the address is four words, IPv4 in the first. */
export type TakeDatagram = (
  octets: Uint8Array,
  length: number,
  family: 4 | 6,
  a: number,
  b: number,
  c: number,
  d: number,
) => void;

/** What each socket needs: at 100 000 datagrams/s, with the kernel's own, some 40 ms. */
export const RECEIVE_BUFFER_OCTETS = 4 * 1024 * 1024;
/** What it asks for: a third of a second of them, as a thread that shares its processor may be without it for long. It costs when it fills. */
export const GENEROUS_BUFFER_OCTETS = 32 * 1024 * 1024;

export interface OpenSocket {
  readonly address: ListenAddress;
  /** What the kernel gave of the buffer, without what it adds for its own. */
  readonly receiveBufferOctets: number;
  /** By which the kernel's tables know it; 0: not known. */
  readonly inode: number;
  /** To be closed by whoever outlives the thread, as nothing else does; -1: Node closes it with the thread. */
  readonly descriptor: number;
}

export interface RefusedAddress {
  readonly address: ListenAddress;
  /** As errno(3) names it: EADDRINUSE, EADDRNOTAVAIL, EACCES … */
  readonly code: string;
}

/** As it is written in messages: IPv6 in brackets. */
export function addressOfListening({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
