/** Runs this directory's programs at both ends of a filtered path. Owns how they are started and what is waited for. */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { Namespace } from '@levee/lab/namespace.ts';
import { type FilteredPath, server, until } from '../filtered-path.ts';

const addresses = Object.values(server);

/** Until it has written `says`. */
export async function startGame(
  path: FilteredPath,
  namespace: Namespace,
  file: string,
  args: readonly (string | number)[],
  says = 'ready',
): Promise<{ readonly child: ChildProcess; readonly output: string }> {
  const program = path.start(namespace, process.execPath, [join(import.meta.dirname, file), ...args.map(String)]);
  await until(`${file} to say ${says}`, () => {
    if (program.child.exitCode !== null) throw new Error(`${file} ended: ${program.output}`);
    return program.output.includes(says);
  });
  return program;
}

/** A server of that game's questions at all addresses of the server. */
export async function answerFor(path: FilteredPath, game: string, port: number): Promise<void> {
  await startGame(path, path.server, 'answers.ts', [game, port, ...addresses]);
}

/** What gamedig learns of the server: its name and the names of its players. */
export async function ask(
  path: FilteredPath,
  protocol: string,
  port: number,
): Promise<{ name: string; players: string[] }> {
  const program = join(import.meta.dirname, 'ask.ts');
  const { code, output } = await path.run(path.client, process.execPath, [program, protocol, server[4], String(port)]);
  if (code !== 0) throw new Error(`gamedig got no answer: ${output}`);
  return JSON.parse(output);
}

/** Sends each datagram when the one before was answered; the answers. Throws when one is not. */
export async function exchange(
  path: FilteredPath,
  family: 4 | 6,
  port: number,
  datagrams: readonly string[],
): Promise<string[]> {
  const program = join(import.meta.dirname, 'exchange.ts');
  const args = [program, server[family], String(port), ...datagrams];
  const { code, output } = await path.run(path.client, process.execPath, args);
  if (code !== 0) throw new Error(output);
  return output.trim().split('\n');
}
