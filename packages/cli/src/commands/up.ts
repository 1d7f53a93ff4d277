/**
 * Owns `levee up`: the control plane and the local edge as two supervised processes, and what the person who starts
 * them is told. Two, so that neither's death touches the other: the edge goes on filtering without a control plane, and
 * the control plane answers without an edge.
 */
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import closeWithGrace from 'close-with-grace';
import type { Loaded } from '../config/load.ts';
import { CommandFailure, type Output } from '../output.ts';
import { controlProcess, edgeObstacle, edgeProcess, type Place } from '../supervise/children.ts';
import type { ChildMessage, EnforcementMessage, ReadyMessage } from '../supervise/messages.ts';
import { describeEnding, SupervisedProcess } from '../supervise/supervised-process.ts';
import { type Enforcement, renderUp } from './up-summary.ts';

/** The edge says whether it enforces as soon as it has looked at the kernel, long before this. */
const ENFORCEMENT_DEADLINE_MILLISECONDS = 10_000;

export interface Running {
  readonly ready: ReadyMessage;
  readonly enforcement: Enforcement;
  readonly processes: {
    readonly supervisor: number;
    readonly control: number | undefined;
    readonly edge: number | undefined;
  };
  stop(): Promise<void>;
}

/** Runs until it is told to stop; then ends the process. */
export async function up(loaded: Loaded, output: Output): Promise<void> {
  const startedAt = performance.now();
  const stopping = new AbortController();
  let running: Running | undefined;
  closeWithGrace({ delay: 45_000, logger: false }, async ({ err, signal }) => {
    if (err) output.progress(`internal error: ${err.stack ?? err.message}`);
    if (signal) output.progress(`${signal}: stopping`);
    stopping.abort();
    await running?.stop();
  });
  running = await startAll(loaded, output, stopping.signal);
  const seconds = (performance.now() - startedAt) / 1000;
  const { text, value } = renderUp(running, loaded.config, seconds);
  output.result(text, value);
}

/** Resolves when the control plane answers and the edge has said whether it enforces. */
export async function startAll(loaded: Loaded, output: Output, stopping?: AbortSignal): Promise<Running> {
  const { config } = loaded;
  const obstacle = config.edgeDriver === 'off' ? undefined : edgeObstacle(config);
  if (obstacle !== undefined) throw new CommandFailure(obstacle, 2);
  const place = makePlace(config.dataDirectory, config.edgeStateDirectory);

  const ready = Promise.withResolvers<ReadyMessage>();
  const enforcement = Promise.withResolvers<EnforcementMessage>();
  let first: ReadyMessage | undefined;
  let known: EnforcementMessage | undefined;
  const failures: { control?: string | undefined; edge?: string | undefined } = {};

  const control = new SupervisedProcess({
    name: 'control plane',
    command: () => controlProcess(loaded, place, first?.address),
    onMessage(message) {
      const told = message as ChildMessage;
      if (told.type === 'failed') failures.control = told.message;
      if (told.type !== 'ready') return;
      control.noteRecovery();
      if (first !== undefined) output.progress('control plane: answers again');
      first ??= told;
      if (edge !== undefined && told.routerKeyChanged) void edge.restart();
      edge?.start();
      ready.resolve(told);
    },
    onEnd(ending, next) {
      const why = failures.control ?? describeEnding(ending);
      failures.control = undefined;
      if (first !== undefined) return sayEnding('control plane', why, next.waitMilliseconds);
      next.giveUp();
      ready.reject(new CommandFailure(`the control plane did not start: ${why}`));
    },
  });

  const edge =
    config.edgeDriver === 'off'
      ? undefined
      : new SupervisedProcess({
          name: 'edge',
          command: () => edgeProcess(loaded, place),
          onMessage(message) {
            const told = message as ChildMessage;
            if (told.type === 'failed') failures.edge = told.message;
            if (told.type !== 'enforcement') return;
            edge?.noteRecovery();
            if (known !== undefined && (known.mode !== told.mode || known.reason !== told.reason)) {
              output.progress(
                `edge: ${told.mode === 'kernel' ? 'enforces in the kernel' : `enforces nothing: ${told.reason}`}`,
              );
            }
            known = told;
            enforcement.resolve(told);
          },
          onEnd(ending, next) {
            const why = failures.edge ?? describeEnding(ending);
            failures.edge = undefined;
            sayEnding('edge', why, next.waitMilliseconds);
            enforcement.resolve({ type: 'enforcement', mode: 'dry', reason: `the edge does not run: it ${why}` });
          },
        });

  function sayEnding(name: string, why: string, wait: number): void {
    output.progress(`${name}: ${why}; starting it again in ${wait / 1000} s`);
  }

  const stop = async () => {
    await edge?.stop();
    await control.stop();
  };
  stopping?.addEventListener('abort', () => {
    void stop();
    ready.reject(new CommandFailure('stopped before it was up'));
  });
  try {
    // An edge that was here before restores the last rules by itself, also when the control plane does not come up.
    if (existsSync(join(place.edgeState, 'router.key'))) edge?.start();
    control.start();
    await ready.promise;
  } catch (error) {
    await stop();
    throw error;
  }
  const unknown: EnforcementMessage = {
    type: 'enforcement',
    mode: 'dry',
    reason: 'the edge has not said yet what it can do',
  };
  const late = delay(ENFORCEMENT_DEADLINE_MILLISECONDS, unknown, { ref: false });
  const off: Enforcement = { mode: 'off', reason: 'no edge runs on this machine (LEVEE_EDGE_DRIVER=off)' };
  return {
    ready: first as unknown as ReadyMessage,
    enforcement: edge === undefined ? off : await Promise.race([enforcement.promise, late]),
    get processes() {
      return { supervisor: process.pid, control: control.pid, edge: edge?.pid };
    },
    stop,
  };
}

function makePlace(dataDirectory: string, edgeState: string | undefined): Place {
  mkdirSync(dataDirectory, { recursive: true, mode: 0o700 });
  const data = realpathSync(dataDirectory);
  return { data, edgeState: edgeState === undefined ? join(data, 'edge') : resolve(edgeState) };
}
