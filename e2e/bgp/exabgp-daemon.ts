/** A real ExaBGP with the file that is given out, on loopback, running `levee exabgp`. Never announces anything by itself. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bird } from '@levee/lab/bgp/bird.ts';
import { makeFolder, startProcess } from '@levee/lab/bgp/daemon.ts';

export interface ExabgpDaemon {
  /** On which the control plane is to wait for it. */
  readonly socketPath: string;
  /** Which `levee exabgp` it runs now; undefined: none. */
  relayPid(): number | undefined;
  output(): string;
  remove(): Promise<void>;
}

/** `exabgp` must be installed. Its peer is told of it by its `neighbor`. */
export function startExabgp(bird: Bird, address: string): ExabgpDaemon {
  const folder = makeFolder('exabgp');
  const socketPath = join(folder.path, 'exabgp.sock');
  const levee = join(import.meta.dirname, '../../packages/cli/src/levee.ts');
  const text = readFileSync(join(import.meta.dirname, '../../deploy/bgp/exabgp.conf'), 'utf8')
    .replace('/usr/local/bin/levee exabgp /run/levee/exabgp.sock', `${process.execPath} ${levee} exabgp ${socketPath}`)
    .replace('router-id 192.0.2.10;', `router-id 192.0.2.11; connect ${bird.port};`)
    .replaceAll('192.0.2.10', address)
    .replaceAll('192.0.2.1 {', `${bird.address} {`);
  const file = join(folder.path, 'exabgp.conf');
  writeFileSync(file, text);
  const daemon = startProcess('env', ['exabgp.daemon.user=root', 'exabgp.tcp.bind=', 'exabgp', file]);
  return {
    socketPath,
    output: daemon.output,
    relayPid() {
      const children = readFileSync(`/proc/${daemon.pid}/task/${daemon.pid}/children`, 'utf8');
      return children
        .split(' ')
        .map(Number)
        .find((pid) => pid > 0);
    },
    async remove() {
      await daemon.kill('SIGTERM');
      folder.remove();
    },
  };
}
