/**
 * How a command is started inside a named network namespace (`LEVEE_EDGE_NETNS`): through `ip netns exec`, so that
 * every socket of the process lies there from its first instruction. An edge never changes its own namespace.
 */

/**
 * The argument vector (never a shell line) that runs `command` in `namespace`; the command itself when no namespace is
 * named. Names follow ip-netns(8): a file name under /run/netns.
 */
export function commandInNamespace(namespace: string | undefined, command: readonly string[]): string[] {
  if (namespace === undefined || namespace === '') return [...command];
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/.test(namespace)) {
    throw new RangeError(`not the name of a network namespace: ${JSON.stringify(namespace)}`);
  }
  return ['ip', 'netns', 'exec', namespace, ...command];
}
