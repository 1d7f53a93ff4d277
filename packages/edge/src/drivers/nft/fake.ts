/**
 * nftables in memory, for tests: the statements that the edge sends, with the kernel's strictness about what they name
 * (a chain that is not there, one that is still referred to, an element twice), one transaction at a time, counters and
 * notices. A world outlives the drivers opened on it, as a kernel outlives its agents.
 */
import type { ChainCounter, ElementCounter, NftDriver, NftKernel, NftResult } from './port.ts';

interface FakeTable {
  readonly chains: Map<string, string[]>;
  readonly sets: Map<string, Map<string, string>>;
}

type Tables = Map<string, FakeTable>;

export interface FakeNft {
  open(): { driver: NftDriver; kernel: NftKernel };
  /** From now on a statement for which this is not undefined is refused with that message. */
  refuse: (statement: string) => string | undefined;
  /** Called when a transaction arrives: before anything of it is done, and after. */
  onApply: (moment: 'before' | 'after') => void;
  /** A transaction of some other program's. */
  foreign(text: string): void;
  /** Packets meet the n-th counted rule of a chain, by way of the first element that leads there. */
  hit(table: string, chain: string, index: number, packets: number): void;
  /** Everything in a table but what a chain of that name holds, in one canonical text. */
  dump(table: string, exceptChain?: string): string;
  readonly transactions: number;
  /** Undefined: what is asked for is listed; else that is said instead. */
  refuseListing: string | undefined;
  readonly listings: number;
}

const tableName = 'levee';

class Refusal extends Error {}

export function createFakeNft(): FakeNft {
  let tables: Tables = new Map();
  let counters = new Map<string, { packets: number; bytes: number }[]>();
  /** Of elements, by set and key; what is taken out and put back begins at nothing. */
  let elementPackets = new Map<string, number>();
  let generation = 1;
  let foreignTouched = false;
  let transactions = 0;
  let listings = 0;

  const run = (text: string, keep: boolean): NftResult => {
    const next: Tables = structuredClone(tables);
    const flushed = new Set<string>();
    const removed: string[] = [];
    try {
      for (const statement of statementsOf(text)) {
        const refusal = world.refuse(statement);
        if (refusal !== undefined) throw new Refusal(`${refusal}\n${statement}`);
        execute(next, statement, flushed);
        removed.push(...removedElements(statement));
      }
    } catch (error) {
      if (error instanceof Refusal) return { ok: false, message: `Error: Could not process rule: ${error.message}` };
      throw error;
    }
    if (keep) {
      tables = next;
      generation += 1;
      if (flushed.has('*')) {
        counters = new Map();
        elementPackets = new Map();
      }
      for (const element of removed) elementPackets.delete(element);
      for (const chain of flushed) counters.delete(chain);
    }
    return { ok: true, output: '' };
  };

  const countersOf = (table: FakeTable | undefined, chain: string): ChainCounter[] => {
    const rules = table?.chains.get(chain)?.filter((rule) => /\bcounter\b/.test(rule)) ?? [];
    return rules.map((_, index) => counters.get(chain)?.[index] ?? { packets: 0, bytes: 0 });
  };

  const world: FakeNft = {
    refuse: () => undefined,
    onApply: () => undefined,
    get transactions() {
      return transactions;
    },
    refuseListing: undefined,
    get listings() {
      return listings;
    },
    open() {
      const driver: NftDriver = {
        name: 'fake',
        version: '1.0.6',
        async apply(text) {
          world.onApply('before');
          const result = run(text, true);
          if (result.ok) transactions += 1;
          world.onApply('after');
          return result;
        },
        check: async (text) => run(text, false),
        async list(what) {
          listings += 1;
          if (world.refuseListing !== undefined) return { ok: false, message: world.refuseListing };
          return list(tables, what);
        },
        close: async () => undefined,
      };
      const own = (): FakeTable | undefined => tables.get(tableName);
      const kernel: NftKernel = {
        generation: () => generation,
        isTableLoaded: () => own() !== undefined,
        chainCounters: (chain) => countersOf(own(), chain),
        comments: (chain) => (own()?.chains.get(chain) ?? []).flatMap((rule) => /comment "(.*)"/.exec(rule)?.[1] ?? []),
        allChainCounters: async () =>
          new Map([...(own()?.chains.keys() ?? [])].map((chain) => [chain, countersOf(own(), chain)] as const)),
        elements: async (set) => {
          const elements = own()?.sets.get(set);
          return (
            elements &&
            [...elements].map(([key, verdict]) => elementOf(key, verdict, elementPackets.get(`${set} ${key}`)))
          );
        },
        beginOwn: () => undefined,
        endOwn: () => undefined,
        foreignChange() {
          const seen = foreignTouched ? 'changed' : 'none';
          foreignTouched = false;
          return seen;
        },
        close: () => undefined,
      };
      return { driver, kernel };
    },
    foreign(text) {
      const result = run(text, true);
      if (!result.ok) throw new Error(result.message);
      foreignTouched = true;
    },
    hit(table, chain, index, packets) {
      const known = countersOf(tables.get(table), chain);
      if (known[index] === undefined) throw new Error(`no counted rule ${index} in ${chain}`);
      const owner = tables.get(table);
      const element = owner && elementTo(owner, chain);
      if (element !== undefined) elementPackets.set(element, (elementPackets.get(element) ?? 0) + packets);
      counters.set(
        chain,
        known.map((counter, at) =>
          at === index ? { packets: counter.packets + packets, bytes: counter.bytes + packets * 100 } : counter,
        ),
      );
    },
    dump(name, exceptChain) {
      const table = tables.get(name);
      if (table === undefined) return '';
      const lines: string[] = [];
      for (const [chain, rules] of table.chains)
        if (chain !== exceptChain) lines.push(`chain ${chain}: ${rules.join(' ; ')}`);
      for (const [set, elements] of table.sets) {
        lines.push(`set ${set}: ${[...elements].map(([key, verdict]) => `${key} ${verdict}`).sort()}`);
      }
      return lines.sort().join('\n');
    },
  };
  return world;
}

/** Statements in line form; the block forms are taken apart into them, in that of a table what is named before what names it. */
function* statementsOf(text: string): Generator<string> {
  const lines = text.split('\n').map((line) => line.trim());
  let table: string | undefined;
  let chain: string | undefined;
  let inner: { kind: string; name: string } | undefined;
  let elements: string | undefined;
  let later: string[] = [];
  for (const line of lines) {
    if (line === '' || line.startsWith('#')) continue;
    if (elements !== undefined) {
      elements += ` ${line}`;
      if (line.endsWith('}')) {
        later.push(`add element ${table} ${inner?.name} ${elements.replace(/^elements = /, '')}`);
        elements = undefined;
      }
      continue;
    }
    if (table === undefined) {
      const opened = /^table (\w+ \w+) \{$/.exec(line);
      const filled = /^add (?:set|map) (\w+ \w+ \w+) \{.* elements = (\{.*\}); \}$/.exec(line);
      const body = /^add chain (\w+ \w+ \w+) \{$/.exec(line);
      if (chain !== undefined) {
        if (line === '}') chain = undefined;
        else yield `add rule ${chain} ${line}`;
      } else if (opened) {
        table = opened[1] as string;
        yield `add table ${table}`;
      } else if (body) {
        chain = body[1] as string;
        yield `add chain ${chain}`;
      } else if (filled) yield `add element ${filled[1]} ${filled[2]}`;
      else yield line;
    } else if (inner === undefined) {
      const opened = /^(set|map|chain) (\w+) \{$/.exec(line);
      if (opened) {
        inner = { kind: opened[1] as string, name: opened[2] as string };
        yield `add ${inner.kind} ${table} ${inner.name}`;
      } else if (line === '}') {
        yield* later;
        later = [];
        table = undefined;
      } else throw new Error(`the fake does not know: ${line}`);
    } else if (line === '}') inner = undefined;
    else if (line.startsWith('type '))
      continue; // what a set holds, where a chain hooks in
    else if (inner.kind === 'chain') later.push(`add rule ${table} ${inner.name} ${line}`);
    else if (line.startsWith('elements = ')) {
      if (line.endsWith('}')) later.push(`add element ${table} ${inner.name} ${line.replace(/^elements = /, '')}`);
      else elements = line;
    }
  }
}

function execute(tables: Tables, statement: string, flushed: Set<string>): void {
  const words = /^(add|delete|flush) (table|chain|rule|set|map|element) (\w+) (\w+)(?: (\w+)(?: (.*))?)?$/.exec(
    statement,
  );
  if (words === null) throw new Error(`the fake does not know: ${statement}`);
  const [, verb, kind, , tableName, name = '', rest = ''] = words as unknown as string[];
  const fail = (reason: string): never => {
    throw new Refusal(`${reason}\n${statement}`);
  };
  const missing = (): never => fail('No such file or directory');
  if (kind === 'table') {
    if (verb === 'add' && !tables.has(tableName as string)) {
      tables.set(tableName as string, { chains: new Map(), sets: new Map() });
    }
    if (verb === 'delete') {
      if (!tables.delete(tableName as string)) missing();
      flushed.add('*');
    }
    return;
  }
  const table = tables.get(tableName as string) ?? missing();
  switch (`${verb} ${kind}`) {
    case 'add chain':
      if (!table.chains.has(name)) table.chains.set(name, []);
      return;
    case 'add set':
    case 'add map':
      if (!table.sets.has(name)) table.sets.set(name, new Map());
      return;
    case 'flush chain':
      if (!table.chains.has(name)) missing();
      table.chains.set(name, []);
      flushed.add(name);
      return;
    case 'flush set':
      (table.sets.get(name) ?? missing()).clear();
      return;
    case 'delete chain':
      if (!table.chains.has(name)) missing();
      if (isReferred(table, name) || table.chains.get(name)?.length !== 0) fail('Device or resource busy');
      table.chains.delete(name);
      flushed.add(name);
      return;
    case 'delete set':
    case 'delete map':
      if (!table.sets.has(name)) missing();
      if ([...table.chains.values()].flat().some((rule) => rule.split(/[\s;]/).includes(`@${name}`))) {
        fail('Device or resource busy');
      }
      table.sets.delete(name);
      return;
    case 'add rule':
      if (!hasTargets(table, rest)) missing();
      (table.chains.get(name) ?? missing()).push(rest);
      return;
    case 'add element':
    case 'delete element': {
      const set = table.sets.get(name) ?? missing();
      for (const element of rest.replace(/^\{|\}$/g, '').split(',')) {
        const [key = '', verdict = ''] = element.split(' : ').map((part) => part.trim());
        if (verb === 'add') {
          if (set.has(key) && set.get(key) !== verdict) fail('File exists');
          if (!hasTargets(table, verdict)) missing();
          set.set(key, verdict);
        } else if (!set.delete(key)) missing();
      }
    }
  }
}

const targetsOf = (text: string): string[] =>
  [...text.matchAll(/\b(?:jump|goto) (\w+)/g)].map((match) => match[1] as string);

function hasTargets(table: FakeTable, text: string): boolean {
  const sets = [...text.matchAll(/@(\w+)/g)]
    .map((match) => match[1] as string)
    .filter((name) => !/^(th|nh|ll|ih)$/.test(name));
  return targetsOf(text).every((chain) => table.chains.has(chain)) && sets.every((set) => table.sets.has(set));
}

function isReferred(table: FakeTable, chain: string): boolean {
  for (const rules of table.chains.values()) if (rules.some((rule) => targetsOf(rule).includes(chain))) return true;
  for (const set of table.sets.values()) {
    for (const verdict of set.values()) if (targetsOf(verdict).includes(chain)) return true;
  }
  return false;
}

/** As `set key`. */
function removedElements(statement: string): string[] {
  const [, set, keys = ''] = /^delete element \w+ \w+ (\w+) \{(.*)\}$/.exec(statement) ?? [];
  return set === undefined ? [] : keys.split(',').map((key) => `${set} ${key.trim()}`);
}

/** The first element, as `set key`, whose packets may get to a chain. */
function elementTo(table: FakeTable, chain: string): string | undefined {
  const leads = (from: string): boolean =>
    from === chain || (table.chains.get(from) ?? []).flatMap(targetsOf).some((target) => leads(target));
  for (const [set, elements] of table.sets) {
    for (const [key, verdict] of elements) if (targetsOf(verdict).some(leads)) return `${set} ${key}`;
  }
  return undefined;
}

function elementOf(key: string, verdict: string, packets = 0): ElementCounter {
  const octets = key.split(/ \. |\./);
  return {
    key: octets.map((octet) => Number(octet).toString(16).padStart(2, '0')).join(''),
    chain: targetsOf(verdict)[0],
    packets,
    bytes: packets * 100,
  };
}

function list(tables: Tables, what: string): NftResult {
  const words = /^(table|chain|set) \w+ (\w+)(?: (\w+))?$/.exec(what);
  const table = words && tables.get(words[2] as string);
  const chain = table?.chains.get(words?.[3] ?? '');
  const set = table?.sets.get(words?.[3] ?? '');
  if (!table || (words?.[1] === 'chain' && !chain) || (words?.[1] === 'set' && !set)) {
    return { ok: false, message: `Error: No such file or directory\nlist ${what}` };
  }
  if (set) return { ok: true, output: `elements = { ${[...set.keys()].join(', ')} }\n` };
  return { ok: true, output: `${(chain ?? [...table.chains.values()].flat()).join('\n')}\n` };
}
