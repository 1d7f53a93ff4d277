/**
 * Network namespaces made for an experiment: their names, devices, addresses, sysctls, and their certain removal
 * (dispose, exit, signal, and at the next creation those that a killed process left). Names carry the process id.
 * Must never touch a namespace or device that this module did not name, and never use a shell.
 */
import { type ExecFileSyncOptions, execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { checked, system } from './system-calls.ts';

const CLONE_NEWNET = 0x40000000;
const namespaceDirectory = '/run/netns';
const namePattern = /^lvlab-(\d+)-[a-z0-9-]+$/;

const living = new Set<Namespace>();
let created = 0;
let watching = false;

export interface DeviceCounters {
  receivedPackets: number;
  receivedBytes: number;
  receiveDropped: number;
  sentPackets: number;
  sentBytes: number;
}

/** Why a lab cannot be built here, or nothing. */
export function labObstacle(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces exist on Linux only';
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  try {
    execFileSync('ip', ['-V'], { stdio: 'ignore' });
  } catch {
    return 'the command `ip` (Debian package iproute2) is missing';
  }
  return undefined;
}

export class Namespace {
  readonly name: string;
  private removed = false;

  /** `label` tells the namespaces of one experiment apart: lower-case letters, digits, hyphens. */
  constructor(label: string) {
    if (!watching) {
      removeAbandoned();
      watchExit();
    }
    this.name = `lvlab-${process.pid}-${(created++).toString(36)}-${label}`;
    if (!namePattern.test(this.name)) throw new Error(`not a label for a namespace: ${label}`);
    execFileSync('ip', ['netns', 'add', this.name], { stdio: ['ignore', 'ignore', 'pipe'] });
    living.add(this);
    this.ip(['link set lo up']);
  }

  /** Lines as ip(8) takes them in a batch, run inside the namespace; all or an exception with its message. */
  ip(lines: readonly string[]): void {
    execFileSync('ip', ['-n', this.name, '-batch', '-'], {
      input: `${lines.join('\n')}\n`,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
  }

  /** A command run to its end inside the namespace; its output. */
  run(command: string, args: readonly string[], options: ExecFileSyncOptions = {}): string {
    return execFileSync('ip', ['netns', 'exec', this.name, command, ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      maxBuffer: 1 << 28,
      ...options,
      encoding: 'utf8',
    });
  }

  /** Loads a text by `nft -f -` inside the namespace; nft's message in the exception when it is refused. */
  loadNft(text: string): void {
    this.run('nft', ['-f', '-'], { input: text });
  }

  /**
   * Runs `work` with the calling thread inside the namespace. Sockets opened by system calls there stay in it for
   * their life. `work` is synchronous: whatever ran in between would be inside too.
   */
  enter<T>(work: () => T): T {
    const outside = openSync('/proc/thread-self/ns/net', 'r');
    try {
      enterNamespace(this.name);
      try {
        const result = work();
        if (result instanceof Promise) throw new Error('work inside a namespace must be synchronous');
        return result;
      } finally {
        checked('setns', system.setns(outside, CLONE_NEWNET));
      }
    } finally {
      closeSync(outside);
    }
  }

  /** Sets `net.…` keys, written with slashes (`ipv4/ip_forward`). A key that this kernel lacks is skipped and told. */
  sysctl(values: Readonly<Record<string, string | number>>): string[] {
    return this.enter(() => {
      const missing: string[] = [];
      for (const [key, value] of Object.entries(values)) {
        try {
          writeFileSync(`/proc/sys/net/${key}`, String(value));
        } catch (error) {
          // Several keys became per-namespace only in later kernels (icmp_msgs_per_sec in 6.x).
          if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
          missing.push(key);
        }
      }
      return missing;
    });
  }

  deviceCounters(device: string): DeviceCounters {
    const text = this.enter(() => readFileSync('/proc/thread-self/net/dev', 'utf8'));
    for (const line of text.split('\n')) {
      const [name, values] = line.split(':');
      if (name?.trim() !== device || values === undefined) continue;
      const n = values.trim().split(/\s+/).map(Number);
      return {
        receivedBytes: n[0] ?? 0,
        receivedPackets: n[1] ?? 0,
        receiveDropped: n[3] ?? 0,
        sentBytes: n[8] ?? 0,
        sentPackets: n[9] ?? 0,
      };
    }
    throw new Error(`no device ${device} in ${this.name}`);
  }

  remove(): void {
    if (this.removed) return;
    this.removed = true;
    living.delete(this);
    removeByName(this.name);
  }

  [Symbol.dispose](): void {
    this.remove();
  }
}

/** Moves the calling thread into a namespace for good: for worker threads that live in one. */
export function enterNamespace(name: string): void {
  const inside = openSync(`${namespaceDirectory}/${name}`, 'r');
  try {
    checked('setns', system.setns(inside, CLONE_NEWNET));
  } finally {
    closeSync(inside);
  }
}

function removeByName(name: string): void {
  try {
    execFileSync('ip', ['netns', 'del', name], { stdio: 'ignore' });
  } catch {
    // Already gone: someone else removed it, which is what was wanted.
  }
}

/** Namespaces whose process was killed before it could remove them. */
function removeAbandoned(): void {
  let names: string[];
  try {
    names = readdirSync(namespaceDirectory);
  } catch {
    return; // the directory is made by the first `ip netns add`
  }
  for (const name of names) {
    const owner = Number(namePattern.exec(name)?.[1]);
    if (!Number.isInteger(owner) || owner === process.pid) continue;
    try {
      process.kill(owner, 0);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') removeByName(name);
    }
  }
}

function watchExit(): void {
  watching = true;
  process.on('exit', () => {
    for (const namespace of [...living]) namespace.remove();
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, function last() {
      // A program with a handler of its own decides when it ends; the exit handler above then cleans up.
      if (process.listenerCount(signal) > 1) return;
      for (const namespace of [...living]) namespace.remove();
      process.off(signal, last);
      process.kill(process.pid, signal);
    });
  }
}
