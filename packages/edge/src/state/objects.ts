/**
 * What the control plane sends, by what becomes of it here: entries decide about packets in the kernel's table, tunnels are
 * devices. Types, and how the two kinds of entries are told apart; reads no fields.
 */
import type { AgentFilter, AgentRule, AgentTunnel } from '@levee/contract/agent.ts';

export type AgentEntry = AgentRule | AgentFilter;

export function isAgentFilter(entry: AgentEntry): entry is AgentFilter {
  return 'filter' in entry;
}

export interface AgentObjects {
  readonly entries: readonly AgentEntry[];
  readonly tunnels: readonly AgentTunnel[];
  /** False: the stream tells of rules alone (an older control plane), and nothing is known of the rest. */
  readonly complete: boolean;
}
