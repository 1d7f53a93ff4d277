/**
 * What a router tells of itself: whether it enforces, with what, how it fares. Owns names and units of the report's
 * `status`; measures nothing but what the kernel says of this namespace.
 */
import { release } from 'node:os';
import type { AgentEnforcement } from '@levee/contract/agent.ts';
import type { FilterKind } from '@levee/core/filter/filter-kind.ts';
import type { EnforcerStatistics } from '../plan/enforcer.ts';
import { type ConntrackUse, readConntrackUse } from './conntrack.ts';
import { type Forwarding, readForwarding } from './forwarding.ts';

export interface EdgeStatus {
  readonly versions: {
    readonly node: string;
    readonly kernel: string;
    readonly nft?: string;
    readonly driver?: string;
  };
  readonly uptime_s: number;
  readonly rules: number;
  readonly filters: number;
  readonly commits: number;
  readonly full_loads: number;
  readonly adoptions: number;
  readonly last_commit_ms: number;
  readonly drift: number;
  readonly counters: 'kernel' | 'unavailable';
  /** Of the tunnels' reconciler, in its words. */
  readonly tunnels?: Record<string, unknown>;
  /** Whether the router forwards packets at all. */
  readonly forwarding: Forwarding;
  readonly conntrack?: ConntrackUse;
}

export interface StatusSources {
  readonly nft: { readonly version: string; readonly driver: string } | undefined;
  readonly counted: boolean;
  readonly statistics: EnforcerStatistics;
  readonly drift: () => number;
  readonly tunnels: Record<string, unknown> | undefined;
}

export async function describeStatus(sources: StatusSources): Promise<EdgeStatus> {
  const { nft, statistics } = sources;
  const conntrack = await readConntrackUse();
  return {
    versions: {
      node: process.versions.node,
      kernel: release(),
      ...(nft ? { nft: nft.version, driver: nft.driver } : {}),
    },
    uptime_s: Math.round(process.uptime()),
    rules: statistics.rules,
    filters: statistics.filters,
    commits: statistics.commits,
    full_loads: statistics.fullLoads,
    adoptions: statistics.adoptions,
    last_commit_ms: Math.round(statistics.lastCommitMilliseconds * 100) / 100,
    drift: sources.drift(),
    counters: sources.counted ? 'kernel' : 'unavailable',
    ...(sources.tunnels ? { tunnels: sources.tunnels } : {}),
    forwarding: readForwarding(),
    ...(conntrack ? { conntrack } : {}),
  };
}

/**
 * `trouble`: the kernel is ours to use, yet takes no transactions at present. `left`: of an older table, while dry.
 */
export function describeEnforcement(
  dryReason: string | undefined,
  trouble: string | undefined,
  left: string | undefined,
): AgentEnforcement {
  if (dryReason !== undefined) {
    return left === undefined
      ? { mode: 'dry', reason: dryReason }
      : { mode: 'dry', reason: `${dryReason}; ${left}`, table_left: true };
  }
  return trouble === undefined ? { mode: 'kernel' } : { mode: 'kernel', reason: trouble };
}

/** `the edge enforces rules, filters (dns, ntp) and tunnels (GRE) in the kernel`, for the log. */
export function describeEnforced(
  dryReason: string | undefined,
  kinds: readonly FilterKind[],
  tunnelCapabilities: readonly string[],
): string {
  if (dryReason !== undefined) return 'the edge enforces nothing';
  const list = (what: string, names: readonly string[]): string =>
    names.length > 0 ? `${what} (${names.join(', ')})` : `no ${what}`;
  const filters = list(
    'filters',
    kinds.map(({ name }) => name),
  );
  const tunnels = list(
    'tunnels',
    tunnelCapabilities.map((capability) => capability.replace('tunnel:', '')),
  );
  return `the edge enforces rules, ${filters} and ${tunnels} in the kernel`;
}
