/**
 * Reads the kernel's counters at the right moments: all of them now and then, those of a chain before it is flushed.
 * Owns which way of reading is taken; the arithmetic is tally.ts's.
 */
import type { AgentHit } from '@levee/contract/agent.ts';
import type { Compiler } from '@levee/core/nftables/compiler.ts';
import type { NftKernel } from '../drivers/nft/port.ts';
import { createTally } from './tally.ts';

/** The event loop is held up no longer than this at a time. */
const sliceMilliseconds = 2;

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
  const readAll = async (compiler: () => Compiler, pace: 'quick' | 'gentle'): Promise<void> => {
    const reading = tally.reading();
    try {
      const chains = await kernel.allChainCounters(pace);
      const at = now();
      for (const [chain, counters] of chains) reading.note(chain, counters, () => compiler().counterOwners(chain), at);
    } finally {
      reading.end();
    }
  };
  return {
    async beforeFlush(chains, compiler) {
      if (chains === 'all') return readAll(() => compiler, 'quick');
      const reading = tally.reading();
      let began = performance.now();
      for (const chain of chains) {
        const owners = compiler.counterOwners(chain);
        if (owners.length > 0) reading.note(chain, kernel.chainCounters(chain), () => owners, now());
        if (performance.now() - began < sliceMilliseconds) continue;
        await new Promise((resolve) => setImmediate(resolve));
        began = performance.now();
      }
      reading.end();
    },
    afterFlush: (chains) => tally.flushed(chains),
    read: (compiler) => readAll(compiler, 'gentle'),
    async rebase() {
      tally.rebase(await kernel.allChainCounters('quick'));
    },
    take: () => tally.take(),
  };
}
