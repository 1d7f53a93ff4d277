/**
 * What the edge asks of whoever keeps its tunnels. Types only: the reconciler that works on the kernel, and the one of the
 * tests, implement them. Nothing here knows cursors; tokens stand for them.
 */
import type { AgentFailure, AgentProbe, AgentTunnel } from '@levee/contract/agent.ts';

export interface TunnelReconciler {
  /**
   * Brings the kernel to what the last run left wanted; devices of ours that are right stay. Undefined: nothing is known
   * yet (no stored state, or one that knows rules alone), and every device stays until the first `want`. Called once,
   * before anything else. Resolves when all is in force or among the failures; never rejects.
   */
  start(tunnels: ReadonlyMap<string, AgentTunnel> | undefined): Promise<void>;
  /**
   * All that should be there now, by uuid. Returns at once and keeps the map unchanged; `token` rises. Of a tunnel only
   * uuid and sequence were checked: whatever else is wrong with one is its failure, and holds up no other.
   */
  want(tunnels: ReadonlyMap<string, AgentTunnel>, token: number): void;
  /**
   * The token up to which everything is in force or among the failures; a removed tunnel carries nothing any more. 0 after
   * `start`, or -1 as long as the device of one that was removed before may carry. Each rise is told by
   * `TunnelReconcilerEvents.changed`.
   */
  readonly applied: number;
  failures(): AgentFailure[];
  /** `tunnel:GRE`, `tunnel:Geneve`: what this kernel has. Known from the beginning. */
  readonly capabilities: readonly string[];
  /** What was found since the last call. */
  probes(): AgentProbe[];
  /** For the report: devices, those still to be deleted, drift. */
  status(): Record<string, unknown>;
  /** Ends probes and watches; leaves the kernel as it is. */
  stop(): Promise<void>;
}

/** What a reconciler tells without being asked. */
export interface TunnelReconcilerEvents {
  /** `applied` has risen, or what fails is another: there is something to report. Never called within `want`. */
  changed(): void;
}
