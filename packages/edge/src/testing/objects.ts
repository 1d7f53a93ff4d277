/** What a control plane of this release hands over, for tests. */
import type { AgentTunnel } from '@levee/contract/agent.ts';
import type { AgentEntry, AgentObjects } from '../state/objects.ts';

export function objectsOf(entries: readonly AgentEntry[] = [], tunnels: readonly AgentTunnel[] = []): AgentObjects {
  return { entries, tunnels, complete: true };
}

/** As an older one tells them. */
export function rulesAlone(entries: readonly AgentEntry[]): AgentObjects {
  return { entries, tunnels: [], complete: false };
}
