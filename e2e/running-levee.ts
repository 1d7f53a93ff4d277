/**
 * Owns a whole Levee for a test: `levee up` in a folder of its own, its interface, its processes, and its certain end.
 * Must never look inside: what it knows, an operator could know.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface Summary {
  readonly address: string;
  readonly operator_key?: string;
  readonly operator_key_file: string;
  /** Where the embedded DNS server answers: `127.0.0.1:5300`. */
  readonly dns: readonly string[];
  /** Where flow telemetry is taken, and why not elsewhere. */
  readonly flows: { readonly listen: readonly string[]; readonly refused: readonly string[] };
  readonly enforcement: { readonly mode: 'kernel' | 'dry' | 'off'; readonly reason?: string };
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it
  readonly body: any;
}

export interface StartOptions {
  readonly environment?: Readonly<Record<string, string>>;
  /** An existing data directory; else a fresh one, gone after `stop`. */
  readonly dataDirectory?: string;
  /** Runs as this user, without any capability. Needs root. */
  readonly uid?: number;
}

/** The `levee` command, to be run by this Node. */
export const program = join(import.meta.dirname, '..', 'packages', 'cli', 'src', 'levee.ts');
const living = new Set<RunningLevee>();
process.on('exit', () => {
  for (const each of living) each.kill();
});

export class RunningLevee {
  readonly dataDirectory: string;
  readonly #ownsData: boolean;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  summary: Summary = {
    address: '',
    operator_key_file: '',
    dns: [],
    flows: { listen: [], refused: [] },
    enforcement: { mode: 'off' },
  };
  stderr = '';
  /** What it printed on standard output, as text. */
  stdout = '';

  private constructor(options: StartOptions, format: 'text' | 'json') {
    this.#ownsData = options.dataDirectory === undefined;
    // Longer than the path of a unix socket may be.
    const name = `levee-e2e-${process.pid}-${'deep-'.repeat(20)}`;
    this.dataDirectory = options.dataDirectory ?? mkdtempSync(join(tmpdir(), name));
    const drop = options.uid === undefined ? [] : setpriv(options.uid);
    if (options.uid !== undefined && this.#ownsData) chownSync(this.dataDirectory, options.uid, options.uid);
    const [command = '', ...args] = [...drop, process.execPath, program, '-o', format, 'up', '--no-config'];
    this.#child = spawn(command, args, {
      cwd: this.dataDirectory,
      env: {
        PATH: process.env.PATH,
        HOME: this.dataDirectory,
        LEVEE_LISTEN: '127.0.0.1:0',
        LEVEE_DNS_LISTEN: '127.0.0.1:0',
        LEVEE_FLOW_LISTEN: '127.0.0.1:0',
        LEVEE_DATA_DIR: this.dataDirectory,
        ...options.environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    living.add(this);
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.#ended = new Promise((resolve) => this.#child.once('close', resolve));
  }

  /** Resolves when it says that it is up; throws with what it said when it ends instead. */
  static async start(options: StartOptions = {}): Promise<RunningLevee> {
    const levee = new RunningLevee(options, 'json');
    try {
      await levee.#said(/^(\{.*\})$/m);
      levee.summary = JSON.parse(levee.stdout) as Summary;
      return levee;
    } catch (error) {
      await levee.stop();
      throw error;
    }
  }

  /** As people start it: what it prints is for them. */
  static async startForPeople(options: StartOptions = {}): Promise<RunningLevee> {
    const levee = new RunningLevee(options, 'text');
    try {
      await levee.#said(/^ {2}enforcement .*$/m);
      return levee;
    } catch (error) {
      await levee.stop();
      throw error;
    }
  }

  async #said(pattern: RegExp): Promise<void> {
    await until('levee up to say that it is up', 60_000, () => {
      if (this.#child.exitCode !== null) throw new Error(`levee up ended with ${this.#child.exitCode}: ${this.stderr}`);
      return pattern.test(this.stdout);
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Pids of the supervisor's children at present, by subcommand. */
  get processes(): Record<'control' | 'edge' | 'detector', number | undefined> {
    const children = readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, 'utf8').trim().split(' ');
    const find = (word: string) =>
      children
        .map(Number)
        .find((pid) => pid > 0 && argumentsOf(pid).includes(word) && argumentsOf(pid).includes(program));
    return { control: find('serve'), edge: find('edge'), detector: find('detect') };
  }

  /** One request to the interface. Throws what fetch throws when nobody answers. */
  async request(method: string, path: string, key: string, body?: unknown, headers = {}): Promise<Answer> {
    const response = await fetch(`${this.summary.address}/v1${path}`, {
      method,
      headers: {
        'x-api-key': key,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
  }

  /** The body of an answer that must be good. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it
  async good(method: string, path: string, key: string, body?: unknown, headers = {}): Promise<any> {
    const answer = await this.request(method, path, key, body, headers);
    if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** A provider with these prefixes and a key of its own, made by the operator. */
  async createProvider(name: string, prefixes: readonly string[]): Promise<{ uuid: string; key: string }> {
    const operator = this.operatorKey;
    const { uuid } = await this.good('POST', '/operator/provider', operator, { name, prefixes });
    const { key } = await this.good('POST', '/api-key', operator, { account_uuid: uuid, name: 'test' });
    return { uuid, key };
  }

  get operatorKey(): string {
    return readFileSync(join(this.dataDirectory, 'operator.key'), 'utf8').trim();
  }

  /**
   * As Ctrl-C under npm would: one press that arrives twice. Resolves to its exit status when nothing of it runs any
   * more.
   */
  async stop(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill('SIGINT');
      await delay(5);
      this.#child.kill('SIGINT');
    }
    await Promise.race([this.#ended, delay(60_000, undefined, { ref: false })]);
    this.kill();
    await this.#ended;
    living.delete(this);
    if (this.#ownsData) rmSync(this.dataDirectory, { recursive: true, force: true });
    return this.#child.exitCode;
  }

  /** Without asking. Its children notice and end themselves. */
  kill(): void {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill('SIGKILL');
  }
}

/** Polls until the condition holds; throws when it does not in time, with what was awaited. */
export async function until(
  what: string,
  milliseconds: number,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  const deadline = Date.now() + milliseconds;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`waited ${milliseconds} ms for ${what}`);
    await delay(20);
  }
}

export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

function argumentsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

function setpriv(uid: number): string[] {
  const id = String(uid);
  return ['setpriv', '--reuid', id, '--regid', id, '--clear-groups', '--bounding-set', '-all', '--no-new-privs'];
}
