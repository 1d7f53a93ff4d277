/**
 * client — router — server: lab's path with the server's addresses, filters and rules in force at the router's kernel by the
 * compiler, and programs at both ends that end with the test. Must never load a table that the compiler did not write.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type Entry, isFilter } from '@levee/core/filter/entry.ts';
import { parseFilter } from '@levee/core/filter/parse-filter.ts';
import { createCompiler, tableName } from '@levee/core/nftables/compiler.ts';
import { filterChain, filterSet } from '@levee/core/nftables/names.ts';
import type { Namespace } from '@levee/lab/namespace.ts';
import { device, RouterPath } from '@levee/lab/router-path.ts';

export const server = { 4: '203.0.113.7', 6: '2001:db8:b::7' } as const;
/** Of the client's namespace; whatever else it sends from is routed back to it, too. */
export const client = { 4: '192.0.2.2', 6: 'fd00:a::2' } as const;
export const families = [4, 6] as const;

interface Program {
  readonly child: ChildProcess;
  /** All that it has written so far. */
  output: string;
}

export class FilteredPath {
  readonly #path: RouterPath;
  readonly #programs: Program[] = [];
  #filters: readonly string[] = [];

  /** `label`: lower-case letters, digits and hyphens. */
  constructor(label: string) {
    this.#path = new RouterPath({ protectedPrefixes: ['203.0.113.0/24', '2001:db8:b::/64'], label });
    this.server.ip([`addr add ${server[4]}/32 dev lo`, `addr add ${server[6]}/128 dev lo nodad`]);
  }

  get path(): RouterPath {
    return this.#path;
  }
  get client(): Namespace {
    return this.#path.attacker;
  }
  get router(): Namespace {
    return this.#path.router;
  }
  get server(): Namespace {
    return this.#path.customer;
  }

  /** Puts a filter of that kind before the server's address of each family, and nothing else. Settled, unless told. */
  filter(kindId: number, fields: object = {}, { settling = false } = {}): void {
    const entries: Entry[] = families.map((family) => {
      const uuid = `00000000-0000-7000-8000-00000000000${family}`;
      const parsed = parseFilter({ dst: server[family], filter: kindId, ...fields }, { uuid, sequence: family });
      if (!parsed.ok) throw new Error(`no filter: ${JSON.stringify(parsed)}`);
      return parsed.filter;
    });
    this.load(entries, { settling });
  }

  /** Puts these in force at the router, and nothing else. */
  load(entries: readonly Entry[], { settling = false } = {}): void {
    this.#filters = entries.filter(isFilter).map(({ uuid }) => uuid);
    this.router.loadNft(createCompiler().replace(entries, '0'.repeat(16)).text);
    if (!settling) this.settle();
  }

  /** Brings forward what happens by itself after `settlingSeconds`. */
  settle(): void {
    const listed = this.router.run('nft', ['list', 'sets', 'inet']);
    const sets = this.#filters
      .map((uuid) => filterSet('settling', uuid))
      .filter((set) => listed.includes(`set ${set} `));
    this.router.loadNft(sets.map((set) => `flush set inet ${tableName} ${set}\n`).join(''));
  }

  unfilter(): void {
    this.router.loadNft(`delete table inet ${tableName}\n`);
  }

  /** Packets that the filters have discarded. */
  discarded(): number {
    let sum = 0;
    for (const uuid of this.#filters) {
      const chain = this.router.run('nft', ['list', 'chain', 'inet', tableName, filterChain('discard', uuid)]);
      sum += Number(/counter packets (\d+)/.exec(chain)?.[1]);
    }
    return sum;
  }

  /** Bounds what the server sends, so that a transfer lasts. */
  slow(megabitsPerSecond: number): void {
    const bucket = ['rate', `${megabitsPerSecond}mbit`, 'burst', '32k', 'latency', '50ms'];
    this.server.run('tc', ['qdisc', 'add', 'dev', device.customer, 'root', 'tbf', ...bucket]);
  }

  /** Until so many more have arrived at the server; how many there are in all then. */
  async packetsToServer(more: number): Promise<number> {
    const received = () => this.server.deviceCounters(device.customer).receivedPackets;
    const wanted = received() + more;
    return await until(`${more} packets to the server`, () => received() >= wanted && received());
  }

  /** Connections and flows in the router's conntrack. */
  tracked(): number {
    return Number(this.router.run('cat', ['/proc/sys/net/netfilter/nf_conntrack_count']));
  }

  /** Starts a program that stays; what it writes is kept. */
  start(namespace: Namespace, command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Program {
    const child = spawn('ip', ['netns', 'exec', namespace.name, command, ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    const program: Program = { child, output: '' };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        program.output += text;
      });
    }
    this.#programs.push(program);
    return program;
  }

  /** Runs a program to its end without holding up the test; what it wrote to its standard output. */
  async run(namespace: Namespace, command: string, args: readonly string[]): Promise<{ code: number; output: string }> {
    const program = this.start(namespace, command, args);
    program.child.stdin?.end();
    const [code] = await once(program.child, 'close');
    return { code: code ?? -1, output: program.output };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#programs) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'close');
      child.kill('SIGKILL');
      await ended;
    }
    this.#path.remove();
  }
}

/** Until `check` gives something other than undefined or false. */
export async function until<T>(what: string, check: () => T | undefined | false, seconds = 10): Promise<T> {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const found = check();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`waited ${seconds} s in vain for ${what}`);
    await delay(5);
  }
}
