/**
 * Owns what the rules do to one packet: the verdict, the rule that decided it, and each rule passed on the way.
 * It is the meaning that the compiler and the kernel are held to, so it must never read `nftables/` or share code
 * with it.
 *
 * Rules are taken by priority, then creation. Of those that match:
 * - `accept` and `drop` and `reject` without a limit end the evaluation; `reject` also answers (a TCP reset, else ICMP
 *   or ICMPv6 port unreachable) where an answer can be given: none goes to a later fragment;
 * - `continue` counts and goes on;
 * - with a limit, a packet above it is discarded whatever the action (by `reject` with an answer, those at most at the
 *   limit's rate); within it `accept` accepts, and `continue`, `drop` and `reject` go on.
 * When no rule decided, the packet goes through. The packet type is a condition like any other here: that the router
 * never forwards a frame that was not addressed to it is not the rules' doing.
 */
import { findMismatch, type Mismatch } from './match.ts';
import type { Packet } from './packet.ts';
import { compareRules, type Rule } from './rule.ts';

export type Verdict = 'accept' | 'drop' | 'reject';

/** What a matching rule did. `passed_within_limit`: drop or reject, which discard the excess only. */
export type Effect =
  | 'accepted'
  | 'dropped'
  | 'rejected'
  | 'counted'
  | 'passed_within_limit'
  | 'dropped_over_limit'
  | 'rejected_over_limit';

export type TrailEntry =
  | { readonly rule: Rule; readonly matched: false; readonly mismatch: Mismatch }
  | { readonly rule: Rule; readonly matched: true; readonly effect: Effect };

export interface Evaluation {
  readonly verdict: Verdict;
  /** The deciding rule's uuid. */
  readonly decidedBy: string;
  /** Every rule looked at, in order; the deciding one last. */
  readonly trail: readonly TrailEntry[];
}

export interface EvaluationOptions {
  /**
   * Whether this packet is within the rule's limit. Asked once for each limited rule that the packet matches, in
   * order, and for no other: an answer may count the packet. Absent: always within.
   */
  readonly withinLimit?: (rule: Rule) => boolean;
}

/** `decidedBy` when no rule decided. */
export const decidedByDefault = 'default';

/** `rules` in any order; those of other destinations are passed with the mismatch `destination`. */
export function evaluate(rules: readonly Rule[], packet: Packet, options: EvaluationOptions = {}): Evaluation {
  const trail: TrailEntry[] = [];
  for (const rule of inOrder(rules)) {
    const mismatch = findMismatch(rule, packet);
    if (mismatch !== undefined) {
      trail.push({ rule, matched: false, mismatch });
      continue;
    }
    const limited = rule.rateLimitPacketsPerSecond !== undefined;
    const within = !limited || (options.withinLimit?.(rule) ?? true);
    const { effect, verdict } = apply(rule, limited, within);
    trail.push({ rule, matched: true, effect });
    if (verdict !== undefined) return { verdict, decidedBy: rule.uuid, trail };
  }
  return { verdict: 'accept', decidedBy: decidedByDefault, trail };
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
function inOrder(rules: readonly Rule[]): readonly Rule[] {
  for (let index = 1; index < rules.length; index += 1) {
    const [before, after] = [rules[index - 1], rules[index]];
    if (before && after && compareRules(before, after) > 0) return rules.toSorted(compareRules);
  }
  return rules;
}
