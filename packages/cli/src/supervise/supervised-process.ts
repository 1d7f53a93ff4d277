/**
 * Owns one child process for as long as it is wanted: starts it, hears its messages, starts it again when it ends,
 * ends it. Knows nothing of what the child does.
 *
 * The child is the leader of a process group of its own, so that a terminal's Ctrl-C reaches only us and the order of
 * stopping is ours. It holds an IPC channel to us: when that breaks, we are gone, and the child is to close itself.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { type Backoff, defaultBackoff, waitMilliseconds } from './backoff.ts';

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why it could not even be started (no such program …). */
  readonly error?: string;
  /** From start to end. */
  readonly livedMilliseconds: number;
}

/**
 * How long a child may say nothing after its first message. Counted in looks: while we, or the machine, stand still ourselves, nobody
 * looks.
 */
export interface Silence {
  readonly lookMilliseconds: number;
  /** After so many looks in a row it is told. */
  readonly toldLooks: number;
  /** After so many it is killed, and started again; absent: never. */
  readonly killedLooks?: number;
}

export interface ProcessSpec {
  /** For messages: `control plane`, `edge`. */
  readonly name: string;
  /** Asked at each start: program and arguments (never a shell line), whole environment, working directory. */
  command(): { argv: readonly string[]; environment: NodeJS.ProcessEnv; directory?: string };
  /** JSON values that the child sends. */
  onMessage?(message: unknown): void;
  /** It ended and nobody asked for it. `giveUp` leaves it ended; otherwise it starts again after `waitMilliseconds`. */
  onEnd?(ending: Ending, next: { waitMilliseconds: number; giveUp(): void }): void;
  /** Absent: it need not say anything. */
  readonly silence?: Silence;
  /** It has said nothing for so long; or, undefined, speaks again. */
  onSilence?(milliseconds: number | undefined, isKilled: boolean): void;
  readonly backoff?: Backoff;
  /** Between SIGTERM and SIGKILL. Default 15 s. */
  readonly graceMilliseconds?: number;
}

export class SupervisedProcess {
  readonly #spec: ProcessSpec;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #wanted = false;
  #watch: NodeJS.Timeout | undefined;
  /** In a row; undefined before its first message. */
  #silentLooks: number | undefined;
  /** How often it was started again after ending unasked. */
  restarts = 0;

  constructor(spec: ProcessSpec) {
    this.#spec = spec;
  }

  /** Of the child that runs at present. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Does nothing when it is already wanted. */
  start(): void {
    if (this.#wanted) return;
    this.#wanted = true;
    this.#failures = 0;
    this.#launch();
  }

  /** Asks by SIGTERM, kills after the grace. Resolves when no child is left; it may be started again afterwards. */
  async stop(): Promise<void> {
    this.#wanted = false;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (child === undefined) return this.#ended;
    child.kill('SIGTERM');
    const killer = setTimeout(() => child.kill('SIGKILL'), this.#spec.graceMilliseconds ?? 15_000);
    await this.#ended;
    clearTimeout(killer);
  }

  /** The child says that it works: should it end, it is started again after the shortest wait. */
  noteRecovery(): void {
    this.#failures = 0;
  }

  async restart(): Promise<void> {
    await this.stop();
    this.start();
  }

  #launch(): void {
    const { argv, environment, directory } = this.#spec.command();
    const [program = '', ...args] = argv;
    const startedAt = performance.now();
    const child = spawn(program, args, {
      env: environment,
      ...(directory === undefined ? {} : { cwd: directory }),
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#child = child;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    let over = false;
    const end = (code: number | null, signal: NodeJS.Signals | null, error?: string) => {
      if (over) return;
      over = true;
      clearInterval(this.#watch);
      this.#child = undefined;
      resolve();
      const livedMilliseconds = performance.now() - startedAt;
      if (this.#wanted) this.#again({ code, signal, livedMilliseconds, ...(error === undefined ? {} : { error }) });
    };
    child.on('message', (message) => {
      this.#spoken();
      this.#spec.onMessage?.(message);
    });
    this.#watchSilence(child);
    child.on('exit', (code, signal) => end(code, signal));
    // Also fires when a signal could not be sent to a child that lives: that is no end.
    child.on('error', (error) => {
      if (child.pid === undefined) end(null, null, error.message);
    });
  }

  #watchSilence(child: ChildProcess): void {
    const { silence, onSilence } = this.#spec;
    this.#silentLooks = undefined;
    if (silence === undefined) return;
    const { lookMilliseconds, toldLooks, killedLooks } = silence;
    this.#watch = setInterval(() => {
      if (this.#silentLooks === undefined || !this.#wanted) return;
      const looks = ++this.#silentLooks;
      const isKilled = looks === killedLooks;
      if (looks === toldLooks || isKilled) onSilence?.(looks * lookMilliseconds, isKilled);
      if (isKilled) child.kill('SIGKILL');
    }, lookMilliseconds);
  }

  #spoken(): void {
    const { silence, onSilence } = this.#spec;
    if (silence !== undefined && (this.#silentLooks ?? 0) >= silence.toldLooks) onSilence?.(undefined, false);
    this.#silentLooks = 0;
  }

  #again(ending: Ending): void {
    const backoff = this.#spec.backoff ?? defaultBackoff;
    if (ending.livedMilliseconds >= backoff.recoveredMilliseconds) this.#failures = 0;
    this.#failures++;
    const wait = waitMilliseconds(backoff, this.#failures);
    const giveUp = () => {
      this.#wanted = false;
    };
    this.#spec.onEnd?.(ending, { waitMilliseconds: wait, giveUp });
    if (!this.#wanted) return;
    this.#timer = setTimeout(() => {
      this.restarts++;
      this.#launch();
    }, wait);
  }
}

/** In words: `was killed by SIGKILL`, `ended with status 1`, `could not be started: …`. */
export function describeEnding({ code, signal, error }: Ending): string {
  if (error !== undefined) return `could not be started: ${error}`;
  return signal === null ? `ended with status ${code}` : `was killed by ${signal}`;
}
