/**
 * Owns how a prefix hands its rules and filters down: merged with what it inherits itself, cut into runs that narrower prefixes
 * reach by jump instead of copying (a /16 with 100 rules over 5 000 /32s must not become 500 000 rules).
 *
 * Runs begin at rules whose UUID's hash says so, at several levels (as chunks in a Merkle search tree): a rule that
 * comes or goes changes the run it lies in and none of the others, and a prefix in the middle keeps the runs of the wider
 * one wherever it has no rule of its own inside them. Cutting by position would move every boundary behind a new rule;
 * naming runs by content would rewrite the chains of all narrower prefixes at every change of the wide one.
 *
 * Never knows chains' texts or the kernel.
 */
import { compareEntries, type Entry } from '../filter/entry.ts';
import { endsChain } from './entry-text.ts';
import { ruleDigits } from './names.ts';

/** What a chain holds, in order: a rule or a filter, or a jump to a run. */
export type Item = Entry | Run;

export interface Run {
  readonly chain: string;
  readonly items: readonly Item[];
  readonly first: Entry;
  readonly last: Entry;
  /** Entries, those of inner runs included. */
  readonly size: number;
  /** Nothing behind it is reached. */
  readonly ends: boolean;
  /** Of another run, made for the prefixes that have a rule inside that one: it exists as long as one of them does. */
  readonly part: boolean;
}

export interface Outline {
  /** All of it. */
  readonly root: Run;
  /** Its inner runs, whoever's they are, by level and beginning. */
  readonly runs: ReadonlyMap<string, Run>;
  /** The entries in order. */
  readonly entries: readonly Entry[];
  /** Parts of its runs that narrower prefixes have asked for, by chain. */
  readonly parts: Map<string, Run>;
}

export function isRun(item: Item): item is Run {
  return 'items' in item;
}

/** A run shorter than this is copied: a jump would cost the packet more than it saves. */
const shortestRun = 4;
/** A chain of at most this many items is not cut. */
const shortChain = 8;
/** With eight items a run on average: 4 096 rules. The kernel follows 16 jumps; a rule's own chains take three. */
const levels = 4;
const bitsPerLevel = 3;

/**
 * Own entries and inherited ones in evaluation order, inherited runs kept whole where no own rule falls inside, and in
 * parts around one that does; ends behind the first rule that lets nothing past.
 */
export function weave(own: readonly Entry[], inherited: Outline | undefined): Item[] {
  const out: Item[] = [];
  let behind: Entry | undefined;
  for (const mine of [...own, undefined]) {
    if (inherited !== undefined && pushPart(out, inherited, inherited.root, behind, mine)) return out;
    if (mine === undefined) return out;
    out.push(mine);
    if (endsChain(mine)) return out;
    behind = mine;
  }
  return out;
}

/** The entries of a run between two others (exclusive; undefined: no bound). Whether nothing further is reached. */
function pushPart(out: Item[], outline: Outline, run: Run, from: Entry | undefined, to: Entry | undefined): boolean {
  if (from !== undefined && compareEntries(run.last, from) < 0) return false;
  if (to !== undefined && compareEntries(run.first, to) > 0) return false;
  const cutsFront = from !== undefined && compareEntries(run.first, from) < 0;
  const cutsBack = to !== undefined && compareEntries(run.last, to) > 0;
  if (!cutsFront && !cutsBack) return pushRun(out, run);
  const items: Item[] = [];
  for (const item of run.items) {
    if (isRun(item)) pushPart(items, outline, item, from, to);
    else if (!(from && compareEntries(item, from) < 0) && !(to && compareEntries(item, to) > 0)) items.push(item);
  }
  // A part between two own rules is hardly anyone else's.
  if (items.length === 0 || (cutsFront && cutsBack)) return pushAll(out, items);
  return pushRun(out, partOf(outline, run, items, cutsFront ? 'from' : 'to'));
}

function pushRun(out: Item[], run: Run): boolean {
  if (run.size < shortestRun) return pushAll(out, run.items);
  out.push(run);
  return run.ends;
}

function pushAll(out: Item[], items: readonly Item[]): boolean {
  out.push(...items);
  const last = items.at(-1);
  return last !== undefined && (isRun(last) ? last.ends : endsChain(last));
}

/** The part of a run up to, or from, one of its rules: the same for every prefix that splits the run there. */
function partOf(outline: Outline, run: Run, items: readonly Item[], side: 'from' | 'to'): Run {
  const draft = runOf(run.chain, items);
  const chain = `${run.chain}_${side}_${ruleDigits((side === 'to' ? draft.last : draft.first).uuid)}`;
  const known = outline.parts.get(chain);
  if (known) return known;
  const part = { ...draft, chain, part: true };
  outline.parts.set(chain, part);
  return part;
}

/** `items` is a weave and not empty; `runName` names a new run of this prefix. */
export function outlineOf(
  items: readonly Item[],
  inherited: Outline | undefined,
  rootChain: string,
  runName: (run: string) => string,
): Outline {
  const entries = items.flatMap(entriesOf);
  const runs = new Map<string, Run>();
  let current: readonly Item[] = entries;
  for (let level = 1; level <= levels && current.length > shortChain; level += 1) {
    current = groupsOf(current, level).flatMap((group, index) => {
      if (group.length < shortestRun) return group;
      const key = `${level}_${index === 0 ? 'first' : ruleDigits(runOf('', group).first.uuid)}`;
      const theirs = inherited?.runs.get(key);
      const run = theirs && sameItems(theirs.items, group) ? theirs : runOf(runName(key), group);
      runs.set(key, run);
      return [run];
    });
  }
  return { root: runOf(rootChain, current), runs, entries, parts: new Map() };
}

function runOf(chain: string, items: readonly Item[]): Run {
  const first = firstOf(items);
  const last = items.at(-1);
  if (first === undefined || last === undefined) throw new Error('a run without entries');
  return {
    chain,
    items,
    first,
    last: isRun(last) ? last.last : last,
    size: items.reduce((sum, item) => sum + (isRun(item) ? item.size : 1), 0),
    ends: isRun(last) ? last.ends : endsChain(last),
    part: false,
  };
}

function entriesOf(item: Item): readonly Entry[] {
  return isRun(item) ? item.items.flatMap(entriesOf) : [item];
}

function firstOf(items: readonly Item[]): Entry | undefined {
  const item = items[0];
  return item === undefined ? undefined : isRun(item) ? item.first : item;
}

function groupsOf(items: readonly Item[], level: number): Item[][] {
  const groups: Item[][] = [];
  for (const item of items) {
    const group = groups.at(-1);
    const begins = beginningLevel((isRun(item) ? item.first : item).uuid) >= level;
    if (group === undefined || begins) groups.push([item]);
    else group.push(item);
  }
  return groups;
}

/** The highest level at which a run begins with this rule. FNV-1a, then a final mix: the low bits decide. */
function beginningLevel(uuid: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < uuid.length; index += 1) hash = Math.imul(hash ^ uuid.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  hash ^= hash >>> 13;
  return Math.floor((31 - Math.clz32((hash & -hash) | 0)) / bitsPerLevel);
}

function sameItems(a: readonly Item[], b: readonly Item[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}
