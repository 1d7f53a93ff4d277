/**
 * Owns the compiler of firewall rules and filters: entries in, one nft transaction out, and the memory of what the last accepted
 * transaction made. Pure: the caller runs the text, and says by `commit` that the kernel took it.
 * Must never remember what was not committed.
 */
import type { Entry } from '../filter/entry.ts';
import type { Prefix } from '../net/prefix.ts';
import { applyDelta, type Delta, lengthsByFamily, variableChains } from './change.ts';
import { countingChain } from './entry-text.ts';
import { Journal } from './journal.ts';
import { countedEntries, planeLetters } from './layout.ts';
import { destinationMap, prefixKey, sharedChain } from './names.ts';
import { type Item, isRun } from './outline.ts';
import { opensForClients, proxiedFlowsText } from './proxied-flows.ts';
import type { Plane } from './rule-text.ts';
import { fixedChains, fixedElements, fixedSets, hookDeclarations, markCommands } from './skeleton.ts';
import { emptyState, holdersOf, isShared, type State } from './state.ts';
import { isWithin } from './tracking.ts';
import { Transaction } from './transaction.ts';
import { addSet } from './work.ts';

export { markChainName, tableName } from './names.ts';
export { needsIngress } from './rule-text.ts';

export interface CompilerOptions {
  /**
   * Where packets enter the router. Rules for packet types other than `host` are enforced there; without any device
   * they match nothing (`needsIngress` tells which). Up to kernel 6.15 each must exist when the table is loaded.
   */
  readonly ingressDevices?: readonly string[];
}

export interface Plan {
  /** One nft transaction; '' when nothing changes in the kernel (the mark then stays as it is, too). */
  readonly text: string;
  /** Their counters are zeroed: read them before. */
  readonly flushedChains: readonly string[];
  /**
   * What conntrack sees from this transaction on, and did not before. It may know connections of theirs from an earlier
   * time, which have gone on without it: unless it is told to forget their windows first (decision 0025), it takes
   * their packets for invalid.
   */
  readonly beginsTracking: readonly Prefix[];
  /** The kernel took it; without commit the compiler stays as it was. */
  commit(): void;
}

export interface Compiler {
  /** Of the committed state, disabled rules, which are compiled to nothing, included. */
  readonly entryCount: number;
  /** The whole table in one transaction, whatever is loaded under its name. `mark`: 16 lower-case hex digits. */
  replace(entries: Iterable<Entry>, mark: string): Plan;
  /** Removals come first. Before the first committed `replace` there is no table to change: then the table anew. */
  change(delta: { upsert: readonly Entry[]; remove: readonly string[] }, mark: string): Plan;
  /**
   * For each counter of a chain of the committed state, in order: the uuids whose packets it counts, several
   * when destinations share the chain. Empty for chains that count nothing.
   */
  counterOwners(chain: string): readonly (readonly string[])[];
  /** The maps by which packets find their chains, one a hook, family and prefix length in use. Their elements count. */
  destinationMaps(): string[];
  /** Of the committed state: the chains that count for packets sent to one of these, themselves included. */
  countedChains(targets: Iterable<string>): Set<string>;
}

export function createCompiler(options: CompilerOptions = {}): Compiler {
  const ingressDevices = options.ingressDevices ?? [];
  const planes: readonly Plane[] = ingressDevices.length > 0 ? ['forward', 'ingress'] : ['forward'];
  let state = emptyState(planes);
  let loaded = false;
  /** Plans made before the last commit no longer fit. */
  let commits = 0;

  function planOf(parts: Omit<Plan, 'commit'>, adopt: () => void): Plan {
    const madeAt = commits;
    return {
      ...parts,
      commit() {
        if (commits !== madeAt) throw new Error('another plan was committed since this one was made');
        commits += 1;
        adopt();
      },
    };
  }

  function replace(entries: Iterable<Entry>, mark: string): Plan {
    const fresh = emptyState(planes);
    const journal = new Journal({ keep: false });
    const transaction = new Transaction();
    for (const set of fixedSets()) addSet({ state: fresh, journal, transaction }, set);
    for (const [set, elements] of fixedElements()) {
      for (const element of elements) transaction.addElement(set, element);
    }
    const fixed = fixedChains(ingressDevices);
    const tracked = applyDelta(fresh, { upsert: entries, remove: [] }, journal, transaction);
    const frame = new Map([...fixed, ...variableChains(fresh)]);
    const own = transaction.replaceText(markCommands(mark), frame, hookDeclarations(ingressDevices));
    const text = `${fresh.synLengths.size > 0 ? proxiedFlowsText() : ''}${own}`;
    const beginsTracking = tracked.filter((prefix) => {
      const key = prefixKey(prefix);
      return !isWithin(fresh.tracked.get(key) ?? [], state.tracked.get(key) ?? []);
    });
    return planOf({ text, flushedChains: countedChains(state), beginsTracking }, () => {
      state = fresh;
      loaded = true;
    });
  }

  function change(delta: Delta, mark: string): Plan {
    const journal = new Journal({ keep: true });
    const transaction = new Transaction();
    const beginsTracking = applyDelta(state, delta, journal, transaction);
    const own = transaction.empty ? '' : transaction.changeText(markCommands(mark), state.sets);
    journal.rollback();
    const proxies = [...delta.upsert].some(opensForClients);
    const text = own !== '' && proxies ? `${proxiedFlowsText()}${own}` : own;
    return planOf({ text, flushedChains: transaction.flushedChains, beginsTracking }, () => journal.replay());
  }

  return {
    get entryCount() {
      return state.entries.size;
    },
    replace,
    change(delta, mark) {
      if (loaded) return change(delta, mark);
      const gone = new Set(delta.remove);
      return replace([...[...state.entries.values()].filter((entry) => !gone.has(entry.uuid)), ...delta.upsert], mark);
    },
    counterOwners: (chain) => ownersOf(state, chain),
    destinationMaps: () => destinationMapsOf(state),
    countedChains: (targets) => countedBehind(state, targets),
  };
}

function ownersOf(state: State, chain: string): readonly (readonly string[])[] {
  const owner = state.countingChains.get(chain);
  if (owner !== undefined) return [[owner]];
  for (const plane of state.planes) {
    const holders = holdersOf(plane, chain).map(countedEntries);
    const [first] = holders;
    if (first) return first.map((_, index) => holders.flatMap((entries) => entries[index]?.uuid ?? []));
  }
  return [];
}

function destinationMapsOf(state: State): string[] {
  return state.planes.flatMap(({ plane, lengths }) =>
    [...lengthsByFamily(lengths)].flatMap(([family, each]) =>
      each.map((length) => destinationMap(planeLetters[plane], family, length)),
    ),
  );
}

function countedBehind(state: State, targets: Iterable<string>): Set<string> {
  const found = new Set<string>();
  const follow = (chain: string, items: readonly Item[]): void => {
    // Runs are reached from many chains.
    if (found.has(chain)) return;
    found.add(chain);
    for (const item of items) {
      if (isRun(item)) {
        follow(item.chain, item.items);
        continue;
      }
      const own = countingChain(item);
      if (own !== undefined) found.add(own);
    }
  };
  for (const target of targets) {
    for (const plane of state.planes) {
      // Who shares a chain jumps to the same ones from it: one of them tells all.
      const [items] = holdersOf(plane, target);
      if (items) follow(target, items);
    }
  }
  return found;
}

function countedChains(state: State): string[] {
  const names = [...state.countingChains.keys()];
  for (const plane of state.planes) {
    names.push(...plane.chains.keys());
    for (const digest of plane.twins.keys()) {
      if (isShared(plane, digest)) names.push(sharedChain(planeLetters[plane.plane], digest));
    }
  }
  return names;
}
