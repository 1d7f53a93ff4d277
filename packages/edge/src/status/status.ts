/**
 * What a router tells of itself: whether it enforces, with what, how it fares. Owns names and units of the report's
 * `status`; measures nothing but the conntrack table.
 */
import { release } from 'node:os';
import type { AgentEnforcement } from '@levee/contract/agent.ts';
import type { EnforcerStatistics } from '../plan/enforcer.ts';
import { type ConntrackUse, readConntrackUse } from './conntrack.ts';

export interface EdgeStatus {
  readonly versions: {
    readonly node: string;
    readonly kernel: string;
    readonly nft?: string;
    readonly driver?: string;
  };
  readonly uptime_s: number;
  readonly rules: number;
  readonly commits: number;
  readonly full_loads: number;
  readonly adoptions: number;
  readonly last_commit_ms: number;
  readonly drift: number;
  readonly counters: 'kernel' | 'unavailable';
  readonly conntrack?: ConntrackUse;
}

export interface StatusSources {
  readonly nft: { readonly version: string; readonly driver: string } | undefined;
  readonly counted: boolean;
  readonly statistics: EnforcerStatistics;
  readonly drift: () => number;
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
    commits: statistics.commits,
    full_loads: statistics.fullLoads,
    adoptions: statistics.adoptions,
    last_commit_ms: Math.round(statistics.lastCommitMilliseconds * 100) / 100,
    drift: sources.drift(),
    counters: sources.counted ? 'kernel' : 'unavailable',
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
