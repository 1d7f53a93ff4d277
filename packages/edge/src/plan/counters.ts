/**
 * Reads the kernel's counters at the right moments: all of them now and then, those of a chain before it is flushed.
 * Owns which way of reading is taken; the arithmetic is tally.ts's.
 */
import type { AgentHit } from '@levee/contract/agent.ts';
import type { Compiler } from '@levee/core/nftables/compiler.ts';
import type { NftKernel } from '../drivers/nft/port.ts';
import { createTally } from './tally.ts';

/** Above this many chains one dump of the table is cheaper than a dump a chain (about 25 µs each). */
const chainsReadSingly = 400;

export interface Counters {
  beforeFlush(chains: readonly string[] | 'all', compiler: Compiler): Promise<void>;
  afterFlush(chains: readonly string[] | 'all'): void;
  /** Reads every counter; changes may be applied meanwhile. */
  read(compiler: () => Compiler): Promise<void>;
  /** After an adoption: what stands in the kernel belongs to the former process. */
  rebase(): Promise<void>;
  take(): AgentHit[];
}

export function createCounters(kernel: NftKernel, now: () => Date = () => new Date()): Counters {
  const tally = createTally();
  const readAll = async (compiler: () => Compiler): Promise<void> => {
    const reading = tally.reading();
    try {
      const chains = await kernel.allChainCounters();
      const at = now();
      for (const [chain, counters] of chains) reading.note(chain, counters, compiler().counterOwners(chain), at);
    } finally {
      reading.end();
    }
  };
  return {
    async beforeFlush(chains, compiler) {
      if (chains === 'all' || chains.length > chainsReadSingly) return readAll(() => compiler);
      const reading = tally.reading();
      for (const chain of chains) {
        reading.note(chain, kernel.chainCounters(chain), compiler.counterOwners(chain), now());
      }
      reading.end();
    },
    afterFlush: (chains) => tally.flushed(chains),
    read: readAll,
    async rebase() {
      tally.rebase(await kernel.allChainCounters());
    },
    take: () => tally.take(),
  };
}
