/**
 * Owns what rules and filters do to one packet: the verdict, what decided it, and each one passed on the way.
 * It is the meaning that the compiler and the kernel are held to, so it must never read `nftables/` or share code
 * with it.
 *
 * Rules are taken by priority, then creation. Of those that match:
 * - `accept` and `drop` and `reject` without a limit end the evaluation; `reject` also answers (a TCP reset, else ICMP
 *   or ICMPv6 port unreachable) where an answer can be given: none goes to a later fragment;
 * - `continue` counts and goes on;
 * - with a limit, a packet above it is discarded whatever the action (by `reject` with an answer, those at most at the
 *   limit's rate); within it `accept` accepts, and `continue`, `drop` and `reject` go on.
 * What no rule decided goes on to the filters, those with a SYN proxy first, then by priority, then creation. Each discards the packet, has the router
 * answer it (`challenge`), or lets it on to the next; what none of them stopped goes through. The packet type is a
 * condition like any other here: that the router never forwards a frame that was not addressed to it is not the rules'
 * doing.
 */
import {
  applyFilter,
  type FilterEffect,
  type FilterFacts,
  type FilterStep,
  nothingRemembered,
} from '../filter/apply-filter.ts';
import { compareEntries, type Entry, isFilter } from '../filter/entry.ts';
import { findMismatch, type Mismatch } from './match.ts';
import type { Packet } from './packet.ts';
import type { Rule } from './rule.ts';

/** `challenge`: the router answers in the destination's place (SYN proxy), and the packet goes no further. */
export type Verdict = 'accept' | 'drop' | 'reject' | 'challenge';

/** What a matching rule did. `passed_within_limit`: drop or reject, which discard the excess only. */
export type Effect =
  | 'accepted'
  | 'dropped'
  | 'rejected'
  | 'counted'
  | 'passed_within_limit'
  | 'dropped_over_limit'
  | 'rejected_over_limit';

export type RuleStep =
  | { readonly rule: Rule; readonly matched: false; readonly mismatch: Mismatch }
  | { readonly rule: Rule; readonly matched: true; readonly effect: Effect };

export type TrailEntry = RuleStep | FilterStep;

export function entryOf(step: TrailEntry): Entry {
  return 'rule' in step ? step.rule : step.filter;
}

export interface Evaluation {
  readonly verdict: Verdict;
  /** The deciding rule's or filter's uuid. */
  readonly decidedBy: string;
  /** Every rule and filter looked at, in order; the deciding one last. */
  readonly trail: readonly TrailEntry[];
}

export interface EvaluationOptions {
  /**
   * Whether this packet is within the rule's limit. Asked once for each limited rule that the packet matches, in
   * order, and for no other: an answer may count the packet. Absent: always within.
   */
  readonly withinLimit?: (rule: Rule) => boolean;
  /** Asked for each filter that looks at the packet, in order. Absent: a router that has seen nothing yet. */
  readonly filters?: FilterFacts;
}

/** `decidedBy` when no rule and no filter decided. */
export const decidedByDefault = 'default';

/** `entries` in any order; those of other destinations are passed with the mismatch `destination`. */
export function evaluate(entries: readonly Entry[], packet: Packet, options: EvaluationOptions = {}): Evaluation {
  const trail: TrailEntry[] = [];
  for (const entry of inOrder(entries)) {
    const { step, verdict } = isFilter(entry)
      ? filterStep(applyFilter(entry, packet, options.filters ?? nothingRemembered))
      : ruleStep(entry, packet, options);
    trail.push(step);
    if (verdict !== undefined) return { verdict, decidedBy: entry.uuid, trail };
  }
  return { verdict: 'accept', decidedBy: decidedByDefault, trail };
}

/** No verdict: the packet goes on. */
interface Taken {
  readonly step: TrailEntry;
  readonly verdict?: Verdict;
}

function filterStep(step: FilterStep): Taken {
  return step.matched ? { step, ...verdictOf[step.effect] } : { step };
}

const verdictOf: Readonly<Record<FilterEffect, { readonly verdict?: Verdict }>> = {
  passed: {},
  undecided: {},
  challenged: { verdict: 'challenge' },
  discarded: { verdict: 'drop' },
  discarded_over_meter: { verdict: 'drop' },
  discarded_over_limit: { verdict: 'drop' },
};

function ruleStep(rule: Rule, packet: Packet, options: EvaluationOptions): Taken {
  const mismatch = findMismatch(rule, packet);
  if (mismatch !== undefined) return { step: { rule, matched: false, mismatch } };
  const limited = rule.rateLimitPacketsPerSecond !== undefined;
  const within = !limited || (options.withinLimit?.(rule) ?? true);
  const { effect, verdict } = apply(rule, limited, within);
  return { step: { rule, matched: true, effect }, ...(verdict && { verdict }) };
}

/** No verdict: the packet goes on to the next rule. */
function apply(rule: Rule, limited: boolean, within: boolean): { effect: Effect; verdict?: Verdict } {
  if (!within) {
    return rule.action === 'reject'
      ? { effect: 'rejected_over_limit', verdict: 'reject' }
      : { effect: 'dropped_over_limit', verdict: 'drop' };
  }
  switch (rule.action) {
    case 'accept':
      return { effect: 'accepted', verdict: 'accept' };
    case 'continue':
      return { effect: 'counted' };
    case 'drop':
      return limited ? { effect: 'passed_within_limit' } : { effect: 'dropped', verdict: 'drop' };
    case 'reject':
      return limited ? { effect: 'passed_within_limit' } : { effect: 'rejected', verdict: 'reject' };
  }
}

/** Many packets against one set: a list that is in order already is not sorted again. */
function inOrder(entries: readonly Entry[]): readonly Entry[] {
  for (let index = 1; index < entries.length; index += 1) {
    const [before, after] = [entries[index - 1], entries[index]];
    if (before && after && compareEntries(before, after) > 0) return entries.toSorted(compareEntries);
  }
  return entries;
}
