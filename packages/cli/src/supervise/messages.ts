/**
 * Owns what the processes of one `levee up` say to each other over IPC: children to their supervisor, nothing back (it
 * speaks by signals). A process that was started by hand has no channel: saying is then a no-op.
 */

/** The control plane answers requests. */
export interface ReadyMessage {
  readonly type: 'ready';
  /** `http://127.0.0.1:8080`. */
  readonly address: string;
  /** Where the embedded DNS server answers: `127.0.0.1:5300`; empty: it does not run. */
  readonly dns: readonly string[];
  /** The first operator key, at the one start that made it. */
  readonly newOperatorKey?: string;
  /** The local router's key in the state directory was written anew: an edge that runs with the old one must restart. */
  readonly routerKeyChanged: boolean;
  /** The same of the local detector's. */
  readonly detectorKeyChanged: boolean;
}

/** The edge knows, or knows anew, whether it enforces. */
export interface EnforcementMessage {
  readonly type: 'enforcement';
  readonly mode: 'kernel' | 'dry';
  readonly reason?: string;
}

/** The detector receives, or cannot. */
export interface FlowsMessage {
  readonly type: 'flows';
  /** Where flow telemetry is taken: `127.0.0.1:6343`. */
  readonly listen: readonly string[];
  /** Where it was to be taken and is not, each with the reason. */
  readonly refused: readonly string[];
  /** Where it speaks with a NATS. */
  readonly nats?: { readonly connected: boolean; readonly reason?: string };
}

export function describeNats(
  { connected, reason }: NonNullable<FlowsMessage['nats']>,
  servers: readonly string[],
): string {
  const where = servers.join(', ');
  if (connected) return `connected with NATS (${where})`;
  return `NOT CONNECTED with NATS (${where}): ${reason ?? 'nobody has answered yet'}; it is tried again`;
}

/** Why it is about to end, for the person who started it. Trying again will not help. */
export interface FailedMessage {
  readonly type: 'failed';
  readonly message: string;
}

/** Its event loop turns. */
export interface AliveMessage {
  readonly type: 'alive';
}

export type ChildMessage = ReadyMessage | EnforcementMessage | FlowsMessage | FailedMessage | AliveMessage;

const beatMilliseconds = 1_000;

export function tellSupervisor(message: ChildMessage): Promise<void> {
  if (process.send === undefined || !process.connected) return Promise.resolve();
  return new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()));
}

/** From now on the supervisor hears once a second that this process does not hang. Keeps nothing running. */
export function beatToSupervisor(): void {
  if (process.send === undefined) return;
  setInterval(() => {
    if (process.connected)
      process.send?.({ type: 'alive' } satisfies AliveMessage, undefined, undefined, () => undefined);
  }, beatMilliseconds).unref();
}

/** Runs once when the supervisor is gone; never, when there was none. */
export function onSupervisorGone(close: () => void): void {
  if (process.send !== undefined) process.once('disconnect', close);
}

export function isSupervised(): boolean {
  return process.send !== undefined;
}
