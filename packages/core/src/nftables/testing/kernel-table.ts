/**
 * A network namespace of a test's own in which nft loads what the compiler wrote, and what the kernel then says it
 * holds. Never used outside tests.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Why nothing can be loaded here; undefined when it can. */
export function kernelObstacle(): string | undefined {
  if (process.getuid?.() !== 0) return 'needs root';
  if (spawnSync('nft', ['--version']).status !== 0) return 'needs nft (Debian package nftables)';
  if (spawnSync('ip', ['-V']).status !== 0) return 'needs ip (Debian package iproute2)';
  return undefined;
}

/** What a table holds, in an order of names; counters and other state left out. */
export interface TableContent {
  readonly chains: ReadonlyMap<string, readonly string[]>;
  /** Sets and maps with their type, elements sorted. */
  readonly sets: ReadonlyMap<string, readonly string[]>;
}

let made = 0;

export class TestNamespace {
  readonly name: string;

  constructor() {
    if (made === 0) removeAbandoned();
    this.name = `lvcore-${process.pid}-${(made++).toString(36)}`;
    execFileSync('ip', ['netns', 'add', this.name]);
    process.once('exit', this.#remove);
    this.run('ip', ['link', 'set', 'lo', 'up']);
  }

  /** By way of a file: nft writes what it lists in pieces of some octets, and each would wake the reader at a pipe. */
  run(command: string, args: readonly string[], input = ''): string {
    const path = join(tmpdir(), `${this.name}.out`);
    const output = openSync(path, 'w+');
    try {
      execFileSync('ip', ['netns', 'exec', this.name, command, ...args], { input, stdio: ['pipe', output, 'pipe'] });
      return readFileSync(path, 'utf8');
    } finally {
      closeSync(output);
      rmSync(path);
    }
  }

  /** Throws with nft's message. */
  load(text: string): void {
    if (text !== '') this.run('nft', ['-f', '-'], text);
  }

  /** `-nn`: numbers for whatever has a name. */
  list(...what: readonly string[]): string {
    return this.run('nft', ['-nn', 'list', ...what]);
  }

  content(): TableContent {
    return tableContent(this.run('nft', ['-nn', '-s', 'list', 'table', 'inet', 'levee']));
  }

  [Symbol.dispose](): void {
    process.removeListener('exit', this.#remove);
    this.#remove();
  }

  readonly #remove = (): void => {
    spawnSync('ip', ['netns', 'delete', this.name]);
  };
}

/** Namespaces of test processes that were killed. */
function removeAbandoned(): void {
  const directory = '/run/netns';
  for (const name of existsSync(directory) ? readdirSync(directory) : []) {
    const owner = /^lvcore-(\d+)-/.exec(name)?.[1];
    if (owner !== undefined && !existsSync(`/proc/${owner}`)) spawnSync('ip', ['netns', 'delete', name]);
  }
}

/** nft's listing: a block a set, map or chain, its lines indented twice. */
function tableContent(listing: string): TableContent {
  const chains = new Map<string, string[]>();
  const sets = new Map<string, string[]>();
  for (const block of listing.matchAll(/^\t(chain|set|map) (\S+) \{\n([\s\S]*?)^\t\}/gm)) {
    const [, kind, name = '', body = ''] = block;
    if (kind === 'chain')
      chains.set(
        name,
        body
          .split('\n')
          .map((line) => line.trim())
          .filter(Boolean),
      );
    else
      sets.set(
        name,
        withoutPassingElements(body)
          .replace(/elements = \{|\}/g, ',')
          .split(/[,\n]/)
          .map((part) => part.trim())
          .filter(Boolean)
          .sort(),
      );
  }
  return { chains: sorted(chains), sets: sorted(sets) };
}

/** Elements that go by themselves, or come by packets, are no part of what was loaded. */
function withoutPassingElements(body: string): string {
  return /flags .*timeout/.test(body) ? body.replace(/elements = \{[^}]*\}/, '') : body;
}

function sorted<V>(map: ReadonlyMap<string, V>): Map<string, V> {
  return new Map([...map].sort(([a], [b]) => (a < b ? -1 : 1)));
}
