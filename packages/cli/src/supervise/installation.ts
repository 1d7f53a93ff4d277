/**
 * Owns the control plane, the local edge and the local detector as supervised processes. Apart, so that the death of one touches
 * no other: the edge goes on filtering and the detector detecting without a control plane, which answers without either.
 */
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { keyFileName as detectorKeyFileName } from '@levee/detector/config.ts';
import { keyFileName } from '@levee/edge/sync/enroll.ts';
import { detectionFault, isDetectionHere } from '../config/detection-fault.ts';
import type { Loaded } from '../config/load.ts';
import { settings } from '../config/settings.ts';
import { CommandFailure, type Output } from '../output.ts';
import { controlProcess, detectorProcess, edgeObstacle, edgeProcess, type Place } from './children.ts';
import {
  type ChildMessage,
  describeNats,
  type EnforcementMessage,
  type FlowsMessage,
  type ReadyMessage,
} from './messages.ts';
import {
  describeEnding,
  type Ending,
  type ProcessSpec,
  type Silence,
  SupervisedProcess,
} from './supervised-process.ts';

/** The edge has looked at the kernel, and the detector opened its sockets, long before this. */
const SAID_DEADLINE_MILLISECONDS = 10_000;

export interface Enforcement {
  readonly mode: 'kernel' | 'dry' | 'off';
  readonly reason?: string;
}

/** Children say once a second that they do not hang. */
const silence: Silence = { lookMilliseconds: 1_000, toldLooks: 10 };
/**
 * A detector that hangs is ended: another goes on from what is ongoing. Of the control plane it is not known what it would be in the
 * middle of, and what the edge enforces stands without it.
 */
const detectorSilence: Silence = { ...silence, killedLooks: 30 };

/** Where flow telemetry is taken, why not elsewhere, and how it is with NATS. */
export type Flows = Pick<FlowsMessage, 'listen' | 'refused' | 'nats'>;

export function describeFlows({ listen, refused, nats }: Flows, servers: readonly string[]): string {
  const taken = listen.length === 0 ? 'no flows are taken' : `flows are taken at ${listen.join(', ')}`;
  return [taken, ...(nats === undefined ? [] : [describeNats(nats, servers)]), ...refused].join('; ');
}

export interface Running {
  readonly ready: ReadyMessage;
  /** As it was when everything had started. */
  readonly enforcement: Enforcement;
  readonly flows: Flows;
  stop(): Promise<void>;
}

/**
 * Resolves when the control plane answers and edge and detector have said what they can do; from then on all are kept
 * running until `stop`. Throws CommandFailure, with nothing left running, when the control plane does not start.
 */
export async function startInstallation(loaded: Loaded, output: Output, stopping?: AbortSignal): Promise<Running> {
  const obstacle = loaded.config.edgeDriver === 'off' ? undefined : edgeObstacle(loaded.config);
  const fault = obstacle ?? detectionFault(loaded.config);
  if (fault !== undefined) throw new CommandFailure(fault, 2);
  const installation = new Installation(loaded, output);
  stopping?.addEventListener('abort', () => void installation.stop());
  try {
    return await installation.start();
  } catch (error) {
    await installation.stop();
    throw error;
  }
}

class Installation {
  readonly #output: Output;
  readonly #place: Place;
  readonly #control: SupervisedProcess;
  readonly #edge: SupervisedProcess | undefined;
  readonly #detector: SupervisedProcess | undefined;
  readonly #ready = Promise.withResolvers<ReadyMessage>();
  readonly #said = Promise.withResolvers<Enforcement>();
  readonly #flows = Promise.withResolvers<Flows>();
  /** The first one: what it was started with, it keeps. */
  #first: ReadyMessage | undefined;
  #enforcement: Enforcement | undefined;
  #firstFlows: Flows | undefined;
  readonly #servers: readonly string[];

  constructor(loaded: Loaded, output: Output) {
    this.#output = output;
    this.#place = makePlace(loaded.config);
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
    const deaf = !isDetectionHere(loaded.config);
    this.#servers = loaded.config.detectNats ?? [];
    this.#detector = deaf
      ? undefined
      : this.#supervise({
          name: 'detector',
          silence: detectorSilence,
          command: () => detectorProcess(loaded, this.#place, this.#firstFlows?.listen),
          heard: (message) => message.type === 'flows' && this.#detectorSays(message),
          ended: (why) => this.#flows.resolve({ listen: [], refused: [`the detector does not run: ${why}`] }),
        });
    if (deaf) this.#flows.resolve({ listen: [], refused: [] });
    if (off) this.#said.resolve({ mode: 'off', reason: `no edge runs here (${settings.edgeDriver.environment}=off)` });
  }

  async start(): Promise<Running> {
    // An edge that was here before restores the last rules by itself, also when the control plane does not come up.
    if (existsSync(join(this.#place.edgeState, keyFileName))) this.#edge?.start();
    if (existsSync(join(this.#place.detectorState, detectorKeyFileName))) this.#detector?.start();
    this.#control.start();
    const ready = await this.#ready.promise;
    const unknown: Enforcement = { mode: 'dry', reason: 'the edge has not said yet what it can do' };
    const unsaid: Flows = { listen: [], refused: ['the detector has not said yet where it receives'] };
    const by = <T>(said: Promise<T>, late: T) =>
      Promise.race([said, delay(SAID_DEADLINE_MILLISECONDS, late, { ref: false })]);
    const [enforcement, flows] = await Promise.all([by(this.#said.promise, unknown), by(this.#flows.promise, unsaid)]);
    return { ready, enforcement, flows, stop: () => this.stop() };
  }

  /** The control plane last: the others' last reports still find it. */
  async stop(): Promise<void> {
    this.#ready.reject(new CommandFailure('stopped before it was up'));
    await Promise.all([this.#edge?.stop(), this.#detector?.stop()]);
    await this.#control.stop();
  }

  #controlIsReady(message: ReadyMessage): void {
    if (this.#first !== undefined) this.#output.progress('control plane: answers again');
    this.#first ??= message;
    this.#ready.resolve(message);
    if (message.routerKeyChanged) void this.#edge?.restart();
    else this.#edge?.start();
    if (message.detectorKeyChanged) void this.#detector?.restart();
    else this.#detector?.start();
  }

  #detectorSays({ type: _, ...flows }: FlowsMessage): void {
    const isFirst = this.#firstFlows === undefined;
    this.#firstFlows ??= flows;
    this.#flows.resolve(flows);
    if (!isFirst) this.#output.progress(`detector: ${describeFlows(flows, this.#servers)}`);
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
    silence?: Silence;
    command: ProcessSpec['command'];
    heard(message: ChildMessage): void;
    ended(why: string, giveUp: () => void): void;
  }): SupervisedProcess {
    let failure: string | undefined;
    const supervised: SupervisedProcess = new SupervisedProcess({
      name: spec.name,
      command: spec.command,
      silence: spec.silence ?? silence,
      onSilence: (milliseconds, isKilled) => {
        const silent = `says nothing for ${(milliseconds ?? 0) / 1000} s`;
        const text = milliseconds === undefined ? 'speaks again' : isKilled ? `${silent} and is killed` : silent;
        this.#output.progress(`${spec.name}: ${text}`);
      },
      onMessage: (message) => {
        const heard = message as ChildMessage;
        if (heard.type === 'alive') return;
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

function makePlace({ dataDirectory, edgeStateDirectory, detectStateDirectory }: Loaded['config']): Place {
  try {
    mkdirSync(dataDirectory, { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandFailure(`${settings.dataDirectory.environment}: ${dataDirectory} cannot be made (${code})`, 2);
  }
  const data = realpathSync(dataDirectory);
  const stateIn = (given: string | undefined, name: string) =>
    given === undefined ? join(data, name) : resolve(given);
  return {
    data,
    edgeState: stateIn(edgeStateDirectory, 'edge'),
    detectorState: stateIn(detectStateDirectory, 'detector'),
  };
}
