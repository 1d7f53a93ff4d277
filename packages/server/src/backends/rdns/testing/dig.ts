/** Asks a DNS server as others do, with `dig`. Test code only. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The PTR targets that the server at the port gives for a name, without final dots. Throws when it does not answer. */
export async function digPointers(port: number, name: string): Promise<string[]> {
  const args = ['@127.0.0.1', '-p', String(port), '+tcp', '+short', '+tries=1', '+time=2', '+norecurse', name, 'PTR'];
  const { stdout } = await run('dig', args);
  return stdout
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith(';'))
    .map((line) => line.replace(/\.$/, ''));
}

/** Response code of a question about the name: `NOERROR`, `NXDOMAIN`, … */
export async function digStatus(port: number, name: string, type = 'PTR'): Promise<string> {
  const args = ['@127.0.0.1', '-p', String(port), '+tcp', '+tries=1', '+time=2', '+norecurse', name, type];
  const { stdout } = await run('dig', args);
  return /status: (\w+)/.exec(stdout)?.[1] ?? 'none';
}
