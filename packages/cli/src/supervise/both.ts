/**
 * Owns the control plane and the local edge as two supervised processes. Two, so that neither's death touches the
 * other: the edge goes on filtering without a control plane, and the control plane answers without an edge.
 */
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { keyFileName } from '@levee/edge/sync/enroll.ts';
import type { Loaded } from '../config/load.ts';
import { settings } from '../config/settings.ts';
import { CommandFailure, type Output } from '../output.ts';
import { controlProcess, edgeObstacle, edgeProcess, type Place } from './children.ts';
import type { ChildMessage, EnforcementMessage, ReadyMessage } from './messages.ts';
import { describeEnding, type Ending, type ProcessSpec, SupervisedProcess } from './supervised-process.ts';

/** The edge says whether it enforces as soon as it has looked at the kernel, long before this. */
const ENFORCEMENT_DEADLINE_MILLISECONDS = 10_000;

export interface Enforcement {
  readonly mode: 'kernel' | 'dry' | 'off';
  readonly reason?: string;
}

export interface Running {
  readonly ready: ReadyMessage;
  /** As it was when everything had started. */
  readonly enforcement: Enforcement;
  stop(): Promise<void>;
}

/**
 * Resolves when the control plane answers and the edge has said whether it enforces; from then on both are kept
 * running until `stop`. Throws CommandFailure, with nothing left running, when the control plane does not start.
 */
export async function startBoth(loaded: Loaded, output: Output, stopping?: AbortSignal): Promise<Running> {
  const obstacle = loaded.config.edgeDriver === 'off' ? undefined : edgeObstacle(loaded.config);
  if (obstacle !== undefined) throw new CommandFailure(obstacle, 2);
  const both = new Both(loaded, output);
  stopping?.addEventListener('abort', () => void both.stop());
  try {
    return await both.start();
  } catch (error) {
    await both.stop();
    throw error;
  }
}

class Both {
  readonly #output: Output;
  readonly #place: Place;
  readonly #control: SupervisedProcess;
  readonly #edge: SupervisedProcess | undefined;
  readonly #ready = Promise.withResolvers<ReadyMessage>();
  readonly #said = Promise.withResolvers<Enforcement>();
  /** The first one: what it was started with, it keeps. */
  #first: ReadyMessage | undefined;
  #enforcement: Enforcement | undefined;

  constructor(loaded: Loaded, output: Output) {
    this.#output = output;
    this.#place = makePlace(loaded.config.dataDirectory, loaded.config.edgeStateDirectory);
    this.#control = this.#supervise({
      name: 'control plane',
      command: () => controlProcess(loaded, this.#place, this.#first?.address),
      heard: (message) => message.type === 'ready' && this.#controlIsReady(message),
      ended: (why, giveUp) => {
        if (this.#first !== undefined) return;
        giveUp();
        this.#ready.reject(new CommandFailure(`the control plane did not start: ${why}`));
      },
    });
    const off = loaded.config.edgeDriver === 'off';
    this.#edge = off
      ? undefined
      : this.#supervise({
          name: 'edge',
          command: () => edgeProcess(loaded, this.#place),
          heard: (message) => message.type === 'enforcement' && this.#edgeSays(message),
          ended: (why) => this.#said.resolve({ mode: 'dry', reason: `the edge does not run: ${why}` }),
        });
    if (off) this.#said.resolve({ mode: 'off', reason: `no edge runs here (${settings.edgeDriver.environment}=off)` });
  }

  async start(): Promise<Running> {
    // An edge that was here before restores the last rules by itself, also when the control plane does not come up.
    if (existsSync(join(this.#place.edgeState, keyFileName))) this.#edge?.start();
    this.#control.start();
    const ready = await this.#ready.promise;
    const unknown: Enforcement = { mode: 'dry', reason: 'the edge has not said yet what it can do' };
    const late = delay(ENFORCEMENT_DEADLINE_MILLISECONDS, unknown, { ref: false });
    return { ready, enforcement: await Promise.race([this.#said.promise, late]), stop: () => this.stop() };
  }

  /** The edge first: its last report still finds the control plane. */
  async stop(): Promise<void> {
    this.#ready.reject(new CommandFailure('stopped before it was up'));
    await this.#edge?.stop();
    await this.#control.stop();
  }

  #controlIsReady(message: ReadyMessage): void {
    if (this.#first !== undefined) this.#output.progress('control plane: answers again');
    this.#first ??= message;
    this.#ready.resolve(message);
    if (message.routerKeyChanged) void this.#edge?.restart();
    else this.#edge?.start();
  }

  #edgeSays({ mode, reason }: EnforcementMessage): void {
    const now: Enforcement = { mode, ...(reason === undefined ? {} : { reason }) };
    const before = this.#enforcement;
    this.#enforcement = now;
    this.#said.resolve(now);
    if (before === undefined || (before.mode === mode && before.reason === reason)) return;
    this.#output.progress(mode === 'kernel' ? 'edge: enforces in the kernel' : `edge: enforces nothing: ${reason}`);
  }

  #supervise(spec: {
    name: string;
    command: ProcessSpec['command'];
    heard(message: ChildMessage): void;
    ended(why: string, giveUp: () => void): void;
  }): SupervisedProcess {
    let failure: string | undefined;
    const supervised: SupervisedProcess = new SupervisedProcess({
      name: spec.name,
      command: spec.command,
      onMessage: (message) => {
        const heard = message as ChildMessage;
        if (heard.type === 'failed') failure = heard.message;
        else supervised.noteRecovery();
        spec.heard(heard);
      },
      onEnd: (ending: Ending, next) => {
        const why = failure ?? `it ${describeEnding(ending)}`;
        failure = undefined;
        let givenUp = false;
        spec.ended(why, () => {
          givenUp = true;
          next.giveUp();
        });
        if (!givenUp)
          this.#output.progress(`${spec.name}: ${why}; starting it again in ${next.waitMilliseconds / 1000} s`);
      },
    });
    return supervised;
  }
}

function makePlace(dataDirectory: string, edgeState: string | undefined): Place {
  try {
    mkdirSync(dataDirectory, { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandFailure(`${settings.dataDirectory.environment}: ${dataDirectory} cannot be made (${code})`, 2);
  }
  const data = realpathSync(dataDirectory);
  return { data, edgeState: edgeState === undefined ? join(data, 'edge') : resolve(edgeState) };
}
