/** Owns `levee exabgp`: run by an ExaBGP, between its pipes and the control plane's socket. Prints nothing of its own there. */
import { runRelay } from '@levee/server/backends/bgp/exabgp/relay.ts';
import { CommandFailure } from '../output.ts';

/** Ends with ExaBGP; fails when it falls silent, to be run anew by it. */
export async function relayExabgp(socketPath: string): Promise<void> {
  try {
    await runRelay({ socketPath, input: process.stdin, output: process.stdout });
  } catch (error) {
    throw new CommandFailure((error as Error).message);
  }
}
