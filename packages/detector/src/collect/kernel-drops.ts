/**
 * Owns the number of datagrams that the kernel threw away because a socket's buffer was full: the last column of /proc/net/udp and udp6
 * (proc_net(5)). Sockets are known by their inode; those of others are never counted.
 */
import { readFileSync } from 'node:fs';

const localColumn = 1;
const inodeColumn = 9;
const dropsColumn = 12;

export interface UdpSocket {
  readonly port: number;
  /** Since it was opened. */
  readonly drops: number;
}

/** By inode. `table`: what one of the files says. */
export function parseUdpTable(table: string): Map<number, UdpSocket> {
  const sockets = new Map<number, UdpSocket>();
  for (const line of table.split('\n').slice(1)) {
    const columns = line.trim().split(/\s+/);
    const port = Number.parseInt(columns[localColumn]?.split(':')[1] ?? '', 16);
    const inode = Number(columns[inodeColumn]);
    const drops = Number(columns[dropsColumn]);
    if (columns.length > dropsColumn && inode > 0 && drops >= 0 && port >= 0) sockets.set(inode, { port, drops });
  }
  return sockets;
}

/** Of the calling thread's network namespace; empty where there are no such tables. */
export function readUdpSockets(): Map<number, UdpSocket> {
  return new Map(
    ['udp', 'udp6'].flatMap((table) => [...parseUdpTable(read(`/proc/thread-self/net/${table}`)).entries()]),
  );
}

/** Of the sockets with these inodes together. */
export function readKernelDrops(inodes: readonly number[]): number {
  if (inodes.length === 0) return 0;
  const sockets = readUdpSockets();
  return inodes.reduce((sum, inode) => sum + (sockets.get(inode)?.drops ?? 0), 0);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
