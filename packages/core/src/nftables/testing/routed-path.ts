/**
 * outside — router — inside: three namespaces of a test's own, real sockets at both ends. Never used outside tests.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { TestNamespace } from './kernel-table.ts';

export const outside = { 4: '192.0.2.2', 6: '2001:db8:a::2' } as const;
/** Two addresses inside of each family, so that one can have rules and the other none. */
export const inside = { 4: ['203.0.113.2', '203.0.113.3'], 6: ['2001:db8:b::2', '2001:db8:b::3'] } as const;

export class RoutedPath {
  readonly outside = new TestNamespace();
  readonly router = new TestNamespace();
  readonly inside = new TestNamespace();
  readonly #children: ChildProcess[] = [];

  constructor() {
    this.#wire(this.outside, 'out', ['192.0.2.1/24', '2001:db8:a::1/64'], [`${outside[4]}/24`, `${outside[6]}/64`]);
    this.#wire(
      this.inside,
      'in',
      ['203.0.113.1/24', '2001:db8:b::1/64'],
      [...inside[4].map((address) => `${address}/24`), ...inside[6].map((address) => `${address}/64`)],
    );
    for (const key of ['ipv4/ip_forward', 'ipv6/conf/all/forwarding']) setKernel(this.router, key, '1');
  }

  /** Runs a program (ES module text) in a namespace until it has printed a line `ready`; then its further lines. */
  async start(namespace: TestNamespace, program: string): Promise<AsyncIterator<string>> {
    const child = spawn(
      'ip',
      ['netns', 'exec', namespace.name, process.execPath, '--input-type=module', '-e', program],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    this.#children.push(child);
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const first = await lines.next();
    if (first.value !== 'ready') throw new Error(`the program said ${first.value} instead of ready`);
    return lines;
  }

  /** Runs a program to its end; what it printed. */
  run(namespace: TestNamespace, program: string): string {
    return namespace.run(process.execPath, ['--input-type=module', '-e', program]).trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    for (const namespace of [this.outside, this.router, this.inside]) namespace[Symbol.dispose]();
  }

  #wire(end: TestNamespace, device: string, gateway: readonly string[], addresses: readonly string[]): void {
    // A tentative link-local address answers nobody for a second.
    for (const namespace of [this.router, end]) {
      for (const scope of ['all', 'default']) setKernel(namespace, `ipv6/conf/${scope}/accept_dad`, '0');
    }
    const peer = ['peer', 'name', 'wire', 'netns', end.name];
    this.router.run('ip', ['link', 'add', device, 'type', 'veth', ...peer]);
    this.router.run('ip', ['link', 'set', device, 'up']);
    end.run('ip', ['link', 'set', 'wire', 'up']);
    // nodad: an IPv6 address serves at once.
    for (const address of gateway) this.router.run('ip', ['address', 'add', address, 'dev', device, 'nodad']);
    for (const address of addresses) end.run('ip', ['address', 'add', address, 'dev', 'wire', 'nodad']);
    for (const address of gateway) end.run('ip', ['route', 'add', 'default', 'via', address.replace(/\/.*/, '')]);
  }
}

function setKernel(namespace: TestNamespace, key: string, value: string): void {
  namespace.run('tee', [`/proc/sys/net/${key}`], value);
}
