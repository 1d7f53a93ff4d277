/**
 * Reads the kernel's counters at the right moments: now and then those of all chains that had traffic, those of a chain
 * before it is flushed. Owns which way of reading is taken; the arithmetic is tally.ts's.
 */
import type { AgentHit } from '@levee/contract/agent.ts';
import type { Compiler } from '@levee/core/nftables/compiler.ts';
import type { NftKernel } from '../drivers/nft/port.ts';
import { createTally } from './tally.ts';

/** The event loop is held up no longer than this at a time. */
const sliceMilliseconds = 2;
/** After each slice of a reading that nobody waits for: a quarter of the time at most. */
const restMilliseconds = 6;
/** A chain read by itself costs as much as so many rules of one dump of everything (55 µs against 5.8 µs). */
const rulesPerChainRead = 10;

export interface Counters {
  beforeFlush(chains: readonly string[] | 'all', compiler: Compiler): Promise<void>;
  afterFlush(chains: readonly string[] | 'all'): void;
  /** Reads every counter that may have moved; changes may be applied meanwhile. */
  read(compiler: () => Compiler): Promise<void>;
  /** After an adoption: what stands in the kernel belongs to the former process. */
  rebase(): Promise<void>;
  take(): AgentHit[];
}

export function createCounters(kernel: NftKernel, now: () => Date = () => new Date()): Counters {
  const tally = createTally();
  /** What each destination's element had counted at the last reading. */
  let seen = new Map<string, number>();
  /** Since then: their elements may have begun at nothing. */
  let flushed: Set<string> | 'all' = 'all';
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
  /** The chains to which packets have been sent since the last reading. */
  const chainsWithTraffic = async (maps: readonly string[]): Promise<Set<string>> => {
    const anew = flushed;
    flushed = new Set();
    const counted = new Map<string, number>();
    const moved = new Set<string>();
    for (const map of maps) {
      for (const { key, chain, packets } of (await kernel.elements(map)) ?? []) {
        if (chain === undefined) continue;
        const name = `${map} ${key} ${chain}`;
        counted.set(name, packets);
        const before = anew === 'all' || anew.has(chain) ? 0 : (seen.get(name) ?? 0);
        if (packets !== before) moved.add(chain);
      }
    }
    seen = counted;
    return moved;
  };
  const readMoved = async (compiler: () => Compiler): Promise<void> => {
    const reading = tally.reading();
    try {
      // Elements before chains: a packet that comes in between moves its element at the next reading.
      const targets = await chainsWithTraffic(compiler().destinationMaps());
      const chains = compiler().countedChains(targets);
      if (chains.size * rulesPerChainRead > compiler().entryCount) return await readAll(compiler, 'gentle');
      let began = performance.now();
      for (const chain of chains) {
        reading.note(chain, kernel.chainCounters(chain), () => compiler().counterOwners(chain), now());
        if (performance.now() - began < sliceMilliseconds) continue;
        await new Promise((resolve) => setTimeout(resolve, restMilliseconds));
        began = performance.now();
      }
    } catch (error) {
      flushed = 'all';
      throw error;
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
    afterFlush(chains) {
      tally.flushed(chains);
      if (chains === 'all') flushed = 'all';
      else if (flushed !== 'all') for (const chain of chains) flushed.add(chain);
    },
    read: readMoved,
    async rebase() {
      flushed = 'all';
      tally.rebase(await kernel.allChainCounters('quick'));
    },
    take: () => tally.take(),
  };
}
