/**
 * The messages between the control plane and a router's agent (`/agent/v1/…`), as types. Owns their shape only: how
 * they are sent, checked or stored belongs to the two ends. Not part of the public interface.
 */
import type { FirewallRuleFields } from './schemas/firewall-rule.ts';

/** Text `"<xid>.<position>.<log>"`; a router keeps it and hands it back, only the control plane compares it. */
export type AgentCursor = string;

/** The canonical fields that decide about packets (`descr` does not), and what names and orders the rule. */
export interface AgentRule extends Omit<FirewallRuleFields, 'descr'> {
  uuid: string;
  /** Creation order over the whole installation; a safe integer. */
  sequence: number;
}

export interface AgentHello {
  type: 'hello';
  router: { uuid: string; name: string; location: string };
  /** Seconds between two heartbeats. */
  heartbeat_s: number;
}

export interface AgentSnapshotBegin {
  type: 'snapshot_begin';
}

/** At most `agentRulesPerLine` rules a line. */
export interface AgentRules {
  type: 'rules';
  rules: AgentRule[];
}

export interface AgentSnapshotEnd {
  type: 'snapshot_end';
  cursor: AgentCursor;
}

/** The present state of what changed, never its history. */
export interface AgentChanges {
  type: 'changes';
  cursor: AgentCursor;
  upsert: AgentRule[];
  /** uuids */
  remove: string[];
}

export interface AgentHeartbeat {
  type: 'heartbeat';
}

export type AgentMessage =
  | AgentHello
  | AgentSnapshotBegin
  | AgentRules
  | AgentSnapshotEnd
  | AgentChanges
  | AgentHeartbeat;

export const agentHeartbeatSeconds = 5;
export const agentRulesPerLine = 1000;

/** `dry`: the agent enforces nothing, and `reason` says why in one sentence. */
export interface AgentEnforcement {
  mode: 'kernel' | 'dry';
  reason?: string;
  /** Dry, yet a table that was loaded before is still in the kernel, or may be: removed rules may still drop packets. */
  table_left?: boolean;
}

export interface AgentFailure {
  uuid: string;
  reason: string;
}

/** What was counted since the previous report. */
export interface AgentHit {
  uuid: string;
  packets: number;
  bytes: number;
  /** RFC 3339 */
  last_hit_at: string;
  /** The count is the sum over that many destinations that share one compiled chain. */
  shared_by?: number;
}

/** The same (run, number) sent again is not added again. */
export interface AgentCounters {
  /** uuid of the agent's process */
  run: string;
  /** Rises by one a report that carries counters. */
  number: number;
  hits: AgentHit[];
}

export interface AgentReport {
  /** All up to here is in force (kernel), or was taken note of (dry). */
  cursor?: AgentCursor;
  enforcement: AgentEnforcement;
  /** What this agent enforces besides rules: `filter:<kind's id>`, `tunnel:GRE`, `tunnel:Geneve`. Absent: nothing. */
  capabilities?: string[];
  /** Every object that the kernel refuses at present, the whole list each time. */
  failures: AgentFailure[];
  counters?: AgentCounters;
  /** Free-form facts about the router: versions, uptime, drift, conntrack use. */
  status?: Record<string, unknown>;
}

export interface AgentEnrollment {
  token: string;
}

export interface AgentEnrolled {
  router_uuid: string;
  name: string;
  location: string;
  /** `lv_r_…`; shown this once. */
  key: string;
}
