/**
 * Owns the order and the text of one nft transaction: what is added before it is named, what is emptied before it
 * goes. No handles and no listing: everything is addressed by names of names.ts.
 * Never decides what changes.
 */
import { tableName } from './names.ts';

export interface SetDefinition {
  readonly name: string;
  readonly kind: 'set' | 'map';
  /** nft's text between the braces, a property each: type, flags, size and the like; no elements. */
  readonly properties: readonly string[];
}

interface ElementChange {
  readonly add: Set<string>;
  readonly remove: Set<string>;
}

const table = `inet ${tableName}`;
/** One command stays far below nft's line buffers, and an error message stays readable. */
const elementsPerCommand = 500;
/** In a line of a rule, a set or map; `@ih,0,8` is none. */
const setName = /@([a-z]\w*)(?![\w,])/g;

export class Transaction {
  readonly #newSets = new Map<string, SetDefinition>();
  readonly #oldSets = new Map<string, SetDefinition>();
  readonly #renewedSets = new Map<string, SetDefinition>();
  readonly #newChains = new Map<string, readonly string[]>();
  readonly #changedChains = new Map<string, readonly string[]>();
  readonly #oldChains: string[] = [];
  readonly #elements = new Map<string, ElementChange>();

  get empty(): boolean {
    return (
      this.#newSets.size + this.#renewedSets.size + this.#oldSets.size + this.#oldChains.length === 0 &&
      this.#newChains.size + this.#changedChains.size === 0 &&
      [...this.#elements.values()].every(({ add, remove }) => add.size + remove.size === 0)
    );
  }

  /** Chains whose counters go back to zero, or away. */
  get flushedChains(): string[] {
    return [...this.#changedChains.keys(), ...this.#oldChains];
  }

  /** A set that the same transaction was about to remove stays. */
  addSet(definition: SetDefinition): void {
    if (!this.#oldSets.delete(definition.name)) this.#newSets.set(definition.name, definition);
  }

  /** A set that the same transaction was about to add is never made. */
  removeSet(definition: SetDefinition): void {
    if (!this.#newSets.delete(definition.name)) this.#oldSets.set(definition.name, definition);
  }

  /** In place of the one of that name, which goes with all of its elements: every chain that names it is changed too. */
  renewSet(definition: SetDefinition): void {
    this.#renewedSets.set(definition.name, definition);
  }

  addChain(name: string, lines: readonly string[]): void {
    this.#newChains.set(name, lines);
  }

  changeChain(name: string, lines: readonly string[]): void {
    this.#changedChains.set(name, lines);
  }

  removeChain(name: string): void {
    this.#oldChains.push(name);
  }

  addElement(set: string, element: string): void {
    const { add, remove } = this.#elementsOf(set);
    if (!remove.delete(element)) add.add(element);
  }

  /** An element by its key alone. */
  removeElement(set: string, key: string): void {
    const { add, remove } = this.#elementsOf(set);
    if (!add.delete(key)) remove.add(key);
  }

  /**
   * The change of a table that is loaded. `sets`: those of the table after the change, by name. What is added is written in
   * the block form of a chain and of a set, with every set that a line names, as if it were new: the kernel takes what is
   * there already for granted, and nft 1.0.6 does not read the names of all chains and sets of the kernel before such a
   * command, as it does before `add rule`, `add element`, `flush set` and whatever deletes (decision 0028).
   */
  changeText(mark: readonly string[], sets: ReadonlyMap<string, SetDefinition>): string {
    const lines: string[] = [];
    for (const name of this.#newChains.keys()) lines.push(`add chain ${table} ${name}`);
    for (const name of this.flushedChains) lines.push(`flush chain ${table} ${name}`);
    for (const set of this.#renewedSets.values()) lines.push(`delete ${set.kind} ${table} ${set.name}`);
    const bodies = [...this.#newChains, ...this.#changedChains].filter(([, rules]) => rules.length > 0);
    for (const set of this.#namedSets(bodies, sets)) lines.push(setCommand(set));
    for (const [name, rules] of bodies) lines.push(`add chain ${table} ${name} {`, ...rules, '}');
    // A verdict is replaced by taking the element out and putting it back: within one transaction no packet sees it.
    for (const [set, { remove }] of this.#elements) {
      for (const keys of portions([...remove])) lines.push(`delete element ${table} ${set} { ${keys.join(', ')} }`);
    }
    for (const [name, { add }] of this.#elements) {
      for (const elements of portions([...add])) lines.push(setCommand(definitionOf(sets, name), elements));
    }
    for (const set of this.#oldSets.values()) lines.push(`delete ${set.kind} ${table} ${set.name}`);
    for (const name of this.#oldChains) lines.push(`delete chain ${table} ${name}`);
    return [...lines, ...mark, ''].join('\n');
  }

  /**
   * The table anew, in place of whatever bears its name. `frame`: chains beside those that were added; `hooks`: the
   * declaration of those that are base chains.
   */
  replaceText(
    mark: readonly string[],
    frame: ReadonlyMap<string, readonly string[]>,
    hooks: ReadonlyMap<string, string>,
  ): string {
    // The first line is for a kernel without the table, where deleting it would fail.
    const lines = [`add table ${table}`, `delete table ${table}`, `table ${table} {`];
    for (const set of this.#newSets.values()) {
      const elements = [...(this.#elements.get(set.name)?.add ?? [])];
      lines.push(`${set.kind} ${set.name} {`, ...set.properties);
      if (elements.length > 0) lines.push(`elements = { ${elements.join(',\n')} }`);
      lines.push('}');
    }
    for (const [name, rules] of [...frame, ...this.#newChains]) {
      const hook = hooks.get(name);
      lines.push(`chain ${name} {`, ...(hook === undefined ? [] : [hook]), ...rules, '}');
    }
    return [...lines, '}', ...mark, ''].join('\n');
  }

  /** New ones, and those that lines of these chains name. */
  #namedSets(
    chains: readonly (readonly [string, readonly string[]])[],
    sets: ReadonlyMap<string, SetDefinition>,
  ): Iterable<SetDefinition> {
    const named = new Map([...this.#renewedSets, ...this.#newSets]);
    for (const [, rules] of chains) {
      for (const [, name = ''] of rules.join('\n').matchAll(setName)) named.set(name, definitionOf(sets, name));
    }
    return named.values();
  }

  #elementsOf(set: string): ElementChange {
    const known = this.#elements.get(set);
    if (known) return known;
    const created = { add: new Set<string>(), remove: new Set<string>() };
    this.#elements.set(set, created);
    return created;
  }
}

function definitionOf(sets: ReadonlyMap<string, SetDefinition>, name: string): SetDefinition {
  const set = sets.get(name);
  if (set === undefined) throw new Error(`there is no set ${name}`);
  return set;
}

function setCommand({ kind, name, properties }: SetDefinition, elements: readonly string[] = []): string {
  const inside = elements.length > 0 ? [...properties, `elements = { ${elements.join(', ')} }`] : properties;
  return `add ${kind} ${table} ${name} { ${inside.join('; ')}; }`;
}

function portions(elements: readonly string[]): string[][] {
  const found: string[][] = [];
  for (let index = 0; index < elements.length; index += elementsPerCommand) {
    found.push(elements.slice(index, index + elementsPerCommand));
  }
  return found;
}
