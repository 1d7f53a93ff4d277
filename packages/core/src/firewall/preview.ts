/**
 * What a draft rule would have matched among sampled packets, and what it would change within all that covers their
 * destinations. Pure; finds neither samples nor rules. What a sample cannot show is counted as undecided, never as one or the
 * other.
 */
import { compareEntries, type Entry } from '../filter/entry.ts';
import { prefixContainsAddress } from '../net/prefix.ts';
import { judgeSample, matchSample, type Sample, type SampleVerdict } from './judge-sample.ts';
import type { Rule } from './rule.ts';
import { readSample, type SampledPacket, type SampleSummary, summarise } from './sampled-packet.ts';

/** `packets`: those that the samples stand for. */
export interface Amount {
  readonly samples: number;
  readonly packets: number;
}

export interface PreviewExample extends SampleSummary {
  readonly atMs: number;
  readonly length: number;
  readonly scale: number;
  /** What becomes of it without the draft. */
  readonly verdict: SampleVerdict;
}

export interface Preview {
  readonly looked: Amount;
  /** Of no IP packet, or of one to another destination than the draft's. */
  readonly unusable: number;
  readonly matched: Amount;
  readonly undecided: Amount;
  /** Of the packets looked at, 0 … 1; 0 when there are none. */
  readonly matchedShare: number;
  /** What becomes of the matched ones without the draft. */
  readonly matchedNow: Readonly<Partial<Record<SampleVerdict, Amount>>>;
  readonly newlyDiscarded: Amount;
  readonly newlyAccepted: Amount;
  /** Those of which it cannot be said whether the draft changes anything. */
  readonly unclear: Amount;
  readonly examples: readonly PreviewExample[];
  readonly topSources: readonly { readonly source: string; readonly packets: number; readonly share: number }[];
}

export const MOST_EXAMPLES = 20;
export const MOST_SOURCES = 10;

export interface PreviewRun {
  /** Returns how many rules and filters were looked at, for whoever bounds the work. */
  add(sample: SampledPacket, entriesFor: (destination: string) => CoveringEntries): number;
  result(): Preview;
}

export interface CoveringEntries {
  readonly without: readonly Entry[];
  readonly withDraft: readonly Entry[];
}

export function coveringEntries(entries: readonly Entry[], draft: Rule): CoveringEntries {
  return { without: entries.toSorted(compareEntries), withDraft: [...entries, draft].toSorted(compareEntries) };
}

interface Tally {
  samples: number;
  packets: number;
}

const nothing = (): Tally => ({ samples: 0, packets: 0 });

export function startPreview(draft: Rule): PreviewRun {
  const [looked, matched, undecided] = [nothing(), nothing(), nothing()];
  const [newlyDiscarded, newlyAccepted, unclear] = [nothing(), nothing(), nothing()];
  const matchedNow: Partial<Record<SampleVerdict, Tally>> = {};
  const sources = new Map<string, number>();
  const found: PreviewExample[] = [];
  let unusable = 0;

  return {
    add(sampled, entriesFor) {
      const sample = readSample(sampled);
      const { scale } = sampled;
      if (sample === undefined || !isFor(draft, sample)) {
        unusable += 1;
        return 1;
      }
      count(looked, scale);
      const outcome = matchSample(draft, sample);
      if (outcome === 'unmatched') return 1;
      const summary = summarise(sample);
      const { without, withDraft } = entriesFor(summary.dst ?? '');
      const now = judgeSample(without, sample);
      const then = judgeSample(withDraft, sample);
      if (outcome === 'matched') {
        count(matched, scale);
        matchedNow[now] ??= nothing();
        count(matchedNow[now], scale);
        sources.set(summary.src ?? '', (sources.get(summary.src ?? '') ?? 0) + scale);
        found.push({ ...summary, atMs: sampled.atMs, length: sampled.length, scale, verdict: now });
      } else {
        count(undecided, scale);
      }
      const change = changeFrom(now, then);
      if (change !== undefined) count({ newlyDiscarded, newlyAccepted, unclear }[change], scale);
      return without.length + withDraft.length + 1;
    },
    result: () => ({
      looked,
      unusable,
      matched,
      undecided,
      matchedShare: looked.packets === 0 ? 0 : matched.packets / looked.packets,
      matchedNow,
      newlyDiscarded,
      newlyAccepted,
      unclear,
      examples: spread(found, MOST_EXAMPLES),
      topSources: [...sources]
        .sort(([one, a], [other, b]) => b - a || (one < other ? -1 : 1))
        .slice(0, MOST_SOURCES)
        .map(([source, packets]) => ({ source, packets, share: packets / matched.packets })),
    }),
  };
}

function isFor({ dst }: Rule, { packet }: Sample): boolean {
  return prefixContainsAddress(dst, { family: packet.family, value: packet.destination });
}

function count(tally: Tally, packets: number): void {
  tally.samples += 1;
  tally.packets += packets;
}

const discards = (verdict: SampleVerdict) => verdict === 'drop' || verdict === 'reject';

/** Undefined: it changes nothing. What went to the filters and is accepted now goes past them. */
function changeFrom(
  now: SampleVerdict,
  then: SampleVerdict,
): 'newlyDiscarded' | 'newlyAccepted' | 'unclear' | undefined {
  if (now === 'undecided' || then === 'undecided') return 'unclear';
  if (discards(now) === discards(then) && (now === 'filters') === (then === 'filters')) return undefined;
  return discards(then) ? 'newlyDiscarded' : 'newlyAccepted';
}

function spread<T>(all: readonly T[], most: number): T[] {
  if (all.length <= most) return [...all];
  return Array.from({ length: most }, (_, index) => all[Math.floor((index * all.length) / most)] as T);
}
