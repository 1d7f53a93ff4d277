/**
 * Turns the kernel's running counters into what each rule has matched since the last report. Owns the baselines; reads
 * nothing itself. Nothing is counted twice; what a chain counted between the reading before its flush and the flush is
 * lost (the length of one commit).
 */
import type { AgentHit } from '@levee/contract/agent.ts';
import type { ChainCounter } from '../drivers/nft/port.ts';

/** Per counted rule of a chain, in order: the uuids that share its counter. */
export type CounterOwners = readonly (readonly string[])[];

export interface Tally {
  /** Begins a reading of counters that may take a while, with changes going on beside it. */
  reading(): Reading;
  /** The kernel zeroed these, or everything. */
  flushed(chains: readonly string[] | 'all'): void;
  /** Takes the counters as they stand for the starting point: somebody else has reported them, or nobody can. */
  rebase(chains: ReadonlyMap<string, readonly ChainCounter[]>): void;
  /** What was counted since the last call. */
  take(): AgentHit[];
}

export interface Reading {
  /** A chain that was flushed since the reading began is left for the next one. `ownersOf` is asked only on a change. */
  note(chain: string, counters: readonly ChainCounter[], ownersOf: () => CounterOwners, now: Date): void;
  end(): void;
}

interface Sum {
  packets: number;
  bytes: number;
  lastHitAt: Date;
  sharedBy: number;
}

export function createTally(): Tally {
  const baselines = new Map<string, readonly ChainCounter[]>();
  /** Of each reading under way, the chains that were flushed meanwhile. */
  const readings = new Set<{ all: boolean; chains: Set<string> }>();
  let sums = new Map<string, Sum>();

  const add = (uuid: string, packets: number, bytes: number, sharedBy: number, now: Date): void => {
    const sum = sums.get(uuid);
    if (sum === undefined) {
      sums.set(uuid, { packets, bytes, lastHitAt: now, sharedBy });
      return;
    }
    sum.packets += packets;
    sum.bytes += bytes;
    sum.lastHitAt = now;
    sum.sharedBy = Math.max(sum.sharedBy, sharedBy);
  };

  return {
    reading() {
      const stale = { all: false, chains: new Set<string>() };
      readings.add(stale);
      return {
        note(chain, counters, ownersOf, now) {
          if (stale.all || stale.chains.has(chain)) return;
          const baseline = baselines.get(chain) ?? [];
          if (counters.every(({ packets }, index) => packets === (baseline[index]?.packets ?? 0))) return;
          const owners = ownersOf();
          // Another shape than ours: somebody changed the chain, or a commit moved the dump under our hands.
          if (counters.length !== owners.length) return;
          baselines.set(chain, counters);
          for (const [index, counter] of counters.entries()) {
            const packets = counter.packets - (baseline[index]?.packets ?? 0);
            const bytes = counter.bytes - (baseline[index]?.bytes ?? 0);
            if (packets <= 0) continue;
            const uuids = owners[index] as readonly string[];
            for (const uuid of uuids) add(uuid, packets, bytes, uuids.length, now);
          }
        },
        end: () => void readings.delete(stale),
      };
    },
    flushed(chains) {
      if (chains === 'all') baselines.clear();
      else for (const chain of chains) baselines.delete(chain);
      for (const stale of readings) {
        if (chains === 'all') stale.all = true;
        else for (const chain of chains) stale.chains.add(chain);
      }
    },
    rebase(chains) {
      baselines.clear();
      for (const [chain, counters] of chains) baselines.set(chain, counters);
    },
    take() {
      const hits = [...sums].map(([uuid, { packets, bytes, lastHitAt, sharedBy }]) => ({
        uuid,
        packets,
        bytes,
        last_hit_at: lastHitAt.toISOString(),
        ...(sharedBy > 1 ? { shared_by: sharedBy } : {}),
      }));
      sums = new Map();
      return hits;
    },
  };
}
