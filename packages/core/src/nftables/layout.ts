/**
 * Owns what one prefix needs at one hook: its chain's items, the runs it hands down, whether packets to it are sent
 * to a chain of its own at all. Never knows how many others have the same body, nor what the kernel holds.
 */
import { hash } from 'node:crypto';
import type { Entry } from '../filter/entry.ts';
import type { Prefix } from '../net/prefix.ts';
import { asksIngress, countingChain, entryLine, standsAt } from './entry-text.ts';
import { type PlaneLetter, prefixChain, runChain } from './names.ts';
import { type Item, isRun, type Outline, outlineOf, type Run, weave } from './outline.ts';
import type { Plane } from './rule-text.ts';

/** A prefix that has entries: those of its own that stand somewhere, in evaluation order. */
export interface Site {
  readonly key: string;
  readonly prefix: Prefix;
  readonly entries: readonly Entry[];
}

export interface Chain {
  readonly name: string;
  readonly items: readonly Item[];
  /** Of the text: equal digests, equal chains. */
  readonly digest: string;
}

export interface Layout {
  readonly site: Site;
  /** What narrower prefixes inherit; the wider one's where this prefix adds nothing at the hook. */
  readonly outline: Outline | undefined;
  /** Chains that exist for this prefix alone. Runs that it shares with a wider one are the wider one's. */
  readonly chains: readonly Chain[];
  /** Parts of inherited runs that its chains jump to, directly or not; shared by all that split a run alike. */
  readonly parts: readonly Chain[];
  /** Where packets to the prefix go; undefined: they go where the wider prefix's go. */
  readonly target: Chain | undefined;
  /** No narrower prefix jumps into the target: another prefix's equal chain does as well. */
  readonly shareable: boolean;
  /** Ingress: some rule in force here is about packets of another type than `host`. */
  readonly asks: boolean;
}

export const planeLetters: Record<Plane, PlaneLetter> = { forward: 'c', ingress: 'i' };

/** `inherited`: the layout of the nearest wider prefix; `inner`: there are narrower ones. */
export function layoutOf(plane: Plane, site: Site, inherited: Layout | undefined, inner: boolean): Layout {
  const own = site.entries.filter((entry) => standsAt(entry, plane));
  const outline = inherited?.outline;
  const asks = plane === 'forward' || inherited?.asks === true || own.some(asksIngress);
  if (own.length === 0) return { site, outline, chains: [], parts: [], target: undefined, shareable: false, asks };
  const items = weave(own, outline);
  const letter = planeLetters[plane];
  const name = prefixChain(letter, site.key);
  if (!inner) {
    const target = asks ? chainOf(plane, name, items) : undefined;
    const parts = target ? partsIn(items).map((run) => chainOf(plane, run.chain, run.items)) : [];
    return { site, outline: undefined, chains: [], parts, target, shareable: true, asks };
  }
  const mine = outlineOf(items, outline, name, (run) => runChain(letter, site.key, run));
  const root = chainOf(plane, name, mine.root.items);
  const inheritedRuns = new Set(outline?.runs.values());
  const runs = [...mine.runs.values()].filter((run) => !inheritedRuns.has(run));
  return {
    site,
    outline: mine,
    chains: [root, ...runs.map((run) => chainOf(plane, run.chain, run.items))],
    // Its own runs are cut from all of its rules, never from parts.
    parts: [],
    target: asks ? root : undefined,
    shareable: false,
    asks,
  };
}

export function chainLines(plane: Plane, items: readonly Item[]): string[] {
  return items.map((item) => (isRun(item) ? `jump ${item.chain}` : entryLine(item, plane)));
}

/** The entries that count in a chain, in order. */
export function countedEntries(items: readonly Item[]): Entry[] {
  return items.filter((item): item is Entry => !isRun(item) && countingChain(item) === undefined);
}

function partsIn(items: readonly Item[]): Run[] {
  return items.filter(isRun).flatMap((run) => (run.part ? [run, ...partsIn(run.items)] : []));
}

function chainOf(plane: Plane, name: string, items: readonly Item[]): Chain {
  return { name, items, digest: hash('sha256', chainLines(plane, items).join('\n'), 'hex').slice(0, 32) };
}
