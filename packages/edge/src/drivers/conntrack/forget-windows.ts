/**
 * Has conntrack forget how far the TCP connections of some destinations had come. It remembers each for days; what goes
 * on meanwhile without it is outside of every window it knows, and would be invalid for good once it looks again.
 * The entries themselves stay: whose connection was known goes on being known. Never looks at anything but TCP.
 */
import type { Family, Prefix } from '@levee/core/net/prefix.ts';
import { PrefixIndex } from '@levee/core/net/prefix-index.ts';
import { ask, dump, openSocket, socketCalls } from '../nft/netlink-socket.ts';
import { connectionsRequest, conntrackSubsystem, liberalRequest, parseTcpConnection } from './connection-message.ts';

/** The event loop is held up no longer than this at a time. */
const sliceMilliseconds = 2;

/**
 * The number of connections found. Throws when the kernel shows no connections (no module for it, or no right).
 * Sockets are opened in the network namespace of the calling thread.
 */
export async function forgetWindows(prefixes: readonly Prefix[]): Promise<number> {
  const index = new PrefixIndex<true>();
  for (const prefix of prefixes) index.set(prefix, true);
  let found = 0;
  for (const family of new Set(prefixes.map((prefix) => prefix.family))) found += await forgetFamily(family, index);
  return found;
}

async function forgetFamily(family: Family, index: PrefixIndex<true>): Promise<number> {
  const length = family === 4 ? 32 : 128;
  const fd = openSocket();
  let found = 0;
  try {
    const connections = dump(connectionsRequest(family), conntrackSubsystem);
    let began = performance.now();
    for (;;) {
      const next = connections.next();
      if (next.done) {
        // An interrupted dump may name one twice; none is left out that was there from beginning to end.
        if (next.value !== 0 && next.value !== 'interrupted') {
          throw new Error(`the kernel does not show its connections (errno ${next.value})`);
        }
        return found;
      }
      const connection = parseTcpConnection(next.value.attributes, family);
      if (connection?.addresses.some((address) => index.covering({ ...address, length }).length > 0)) {
        // Not acknowledged: one that has gone meanwhile needs nothing.
        ask(fd, liberalRequest(connection, family));
        found += 1;
      }
      if (performance.now() - began < sliceMilliseconds) continue;
      await new Promise((resolve) => setImmediate(resolve));
      began = performance.now();
    }
  } finally {
    socketCalls().close(fd);
  }
}
