/**
 * The messages between the control plane and a router's agent (`/agent/v1/…`), as types. Owns their shape only: how
 * they are sent, checked or stored belongs to the two ends. Not part of the public interface.
 */
import type { Filter } from './schemas/filter.ts';
import type { FirewallRuleFields } from './schemas/firewall-rule.ts';

/** Text `"<xid>.<position>.<log>"`; a router keeps it and hands it back, only the control plane compares it. */
export type AgentCursor = string;

/** The canonical fields that decide about packets (`descr` does not), and what names and orders the rule. */
export interface AgentRule extends Omit<FirewallRuleFields, 'descr'> {
  uuid: string;
  /** Creation order over the whole installation; a safe integer. */
  sequence: number;
}

/** The canonical fields of a filter, and what names and orders it. */
export interface AgentFilter {
  uuid: string;
  sequence: number;
  dst: string;
  /** The kind's id; a newer control plane may send one that this release does not know. */
  filter: number;
  priority: number;
  src?: Filter['src'];
  port?: Filter['port'];
  ratelimit?: number;
}

/** A tunnel as one router has it: the tunnel's fields and this router's end. */
export interface AgentTunnel {
  uuid: string;
  sequence: number;
  type: 'GRE' | 'Geneve';
  /** Only where it is false: GRE without a key. */
  keyed?: false;
  /** Subnets that are routed into it. */
  ips: string[];
  /** The customer's address outside. */
  endpoint: string;
  /** The router's address outside, of the endpoint's family. */
  local_endpoint: string;
  /** GRE's key or Geneve's VNI. */
  number: number;
  /** A /31 and a /127: the router has the even address, the customer the odd one. */
  inner_ipv4: string;
  inner_ipv6: string;
}

export interface AgentHello {
  type: 'hello';
  router: { uuid: string; name: string; location: string };
  /** Seconds between two heartbeats. */
  heartbeat_s: number;
  /**
   * What this stream's snapshots and changes tell of; absent: rules alone. An agent that follows one that tells less than
   * it enforces keeps what it has of the rest, reports no capabilities, and asks the next stream for a snapshot.
   */
  tells?: ('rules' | 'filters' | 'tunnels')[];
}

export interface AgentSnapshotBegin {
  type: 'snapshot_begin';
}

/** At most `agentRulesPerLine` rules a line. */
export interface AgentRules {
  type: 'rules';
  rules: AgentRule[];
}

/** At most `agentRulesPerLine` filters a line. */
export interface AgentFilters {
  type: 'filters';
  filters: AgentFilter[];
}

/** At most `agentRulesPerLine` tunnels a line; those alone that have an end on this router. */
export interface AgentTunnels {
  type: 'tunnels';
  tunnels: AgentTunnel[];
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
  filters?: AgentFilter[];
  tunnels?: AgentTunnel[];
  /** uuids of objects of any kind; also of tunnels that have no end on this router any more. */
  remove: string[];
}

export interface AgentHeartbeat {
  type: 'heartbeat';
}

export type AgentMessage =
  | AgentHello
  | AgentSnapshotBegin
  | AgentRules
  | AgentFilters
  | AgentTunnels
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

/** What was counted since the previous report: packets that a rule matched, or that a filter discarded. */
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

/** What a tunnel's probe of the customer's inner address found since the previous report. */
export interface AgentProbe {
  /** The tunnel's uuid. */
  uuid: string;
  sent: number;
  received: number;
  /** Of those received: milliseconds, to the thousandth. */
  rtt_ms?: { min: number; avg: number; max: number };
  /** RFC 3339, of the last answer ever; absent: none came yet. */
  last_answer_at?: string;
}

export interface AgentReport {
  /** All up to here is in force (kernel), or was taken note of (dry). */
  cursor?: AgentCursor;
  /**
   * In place of `cursor`, from an agent that began anew over what its last run left in the kernel and does not know yet how
   * far everything is: what it acknowledged before stands, up to here. `capabilities` are told as ever; of `failures` some
   * may be missing, and those told before stand, too.
   */
  resumes?: AgentCursor;
  /** Rules and filters have got further than `cursor`: tunnels hold it back. */
  waits_for?: 'tunnels';
  enforcement: AgentEnforcement;
  /** What this agent enforces besides rules: `filter:<kind's id>`, `tunnel:GRE`, `tunnel:Geneve`. Absent: nothing. */
  capabilities?: string[];
  /** Every object that the kernel refuses at present, the whole list each time. */
  failures: AgentFailure[];
  counters?: AgentCounters;
  probes?: AgentProbe[];
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
