/**
 * Which kinds of filters this router enforces: those that can be compiled and this kernel takes, tried once. Owns the
 * names under which they are reported and the sentence about a kind that is not; loads nothing into the kernel.
 */
import { filterKinds } from '@levee/core/filter/catalogue.ts';
import { isFilter } from '@levee/core/filter/entry.ts';
import type { Filter } from '@levee/core/filter/filter.ts';
import type { FilterKind } from '@levee/core/filter/filter-kind.ts';
import { filterNeed } from '@levee/core/filter/need.ts';
import { parseFilter } from '@levee/core/filter/parse-filter.ts';
import type { Compiler } from '@levee/core/nftables/compiler.ts';
import type { NftDriver } from '../drivers/nft/port.ts';
import type { Obstacle } from './desired.ts';
import { isEnvironmental, refusalReason } from './refusal.ts';

export interface TriedKinds {
  /** In the kinds' order. */
  readonly enforced: readonly FilterKind[];
  /** `filter:<id>`, one a kind that is enforced. */
  readonly capabilities: readonly string[];
  readonly obstacle: Obstacle;
  /**
   * What a table holds for one filter of every kind: another release that means something else by a kind has another text,
   * and must not take over the table.
   */
  readonly meaning: string;
}

/** Documentation addresses (RFC 5737, RFC 3849): a filter for each family that the kind protects. */
const destinations = { 4: '192.0.2.1', 6: '2001:db8::1' } as const;
const anyPort = 4000;
const trialMark = '0'.repeat(16);

/** One filter a family; they are never loaded. */
function samplesOf(kind: FilterKind): Filter[] {
  const ports = kind.destinationPorts === 'required' ? { port: { dst: { start: anyPort } } } : {};
  return kind.families.map((family) => {
    const digits = (kind.id * 10 + family).toString(16).padStart(12, '0');
    const identity = { uuid: `00000000-0000-4000-8000-${digits}`, sequence: kind.id };
    const parsed = parseFilter({ dst: destinations[family], filter: kind.id, ratelimit: 1, ...ports }, identity);
    if (!parsed.ok) throw new Error(`no sample of kind ${kind.name}: ${parsed.problems[0]?.message}`);
    return parsed.filter;
  });
}

const trialText = (createCompiler: () => Compiler, kinds: readonly FilterKind[]): string =>
  createCompiler().replace(kinds.flatMap(samplesOf), trialMark).text;

/** A kernel that is out of memory, say, is no verdict on a kind: it counts as taken, and single filters may fail later. */
export async function tryFilterKinds(
  driver: Pick<NftDriver, 'check'>,
  createCompiler: () => Compiler,
): Promise<TriedKinds> {
  /** Why filters of a kind are not enforced here. */
  const beyond = new Map<FilterKind, string>();
  const judge = async (text: string): Promise<string | undefined> => {
    const result = await driver.check(text);
    return result.ok || isEnvironmental(result.message) ? undefined : result.message;
  };
  // A kind that the compiler cannot express is left out like one that the kernel refuses, and stops no other.
  const compiled = filterKinds.filter((kind) => {
    try {
      trialText(createCompiler, [kind]);
      return true;
    } catch (error) {
      beyond.set(kind, `${wordsOf(kind)} cannot be compiled: ${(error as Error).message}`);
      return false;
    }
  });
  const meaning = trialText(createCompiler, compiled);
  if ((await judge(meaning)) !== undefined) {
    for (const kind of compiled) {
      const message = await judge(trialText(createCompiler, [kind]));
      if (message === undefined) continue;
      beyond.set(kind, `this router's kernel lacks what ${wordsOf(kind)} need: ${refusalReason(message)}`);
    }
  }
  return judged(
    filterKinds.filter((kind) => !beyond.has(kind)),
    beyond,
    meaning,
  );
}

/** Without a kernel to try them on. */
export const untriedKinds: TriedKinds = judged([], new Map(), '');

const wordsOf = ({ id }: FilterKind): string => filterNeed(id).words;

function judged(enforced: readonly FilterKind[], beyond: ReadonlyMap<FilterKind, string>, meaning: string): TriedKinds {
  return {
    enforced,
    meaning,
    capabilities: enforced.map(({ id }) => filterNeed(id).capability),
    obstacle(entry) {
      return isFilter(entry) ? beyond.get(entry.kind) : undefined;
    },
  };
}
