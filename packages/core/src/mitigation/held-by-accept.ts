/**
 * Whether a flowrule would hit, before it reaches the routers here, what a customer's rule accepts. Pure. Which of a
 * customer's rules come before the accepting one is not asked: what one of them drops, the flowrule may leave to it.
 */
import type { Rule } from '../firewall/rule.ts';
import type { Flowrule } from '../flowspec/flowrule.ts';
import type { HeldBy } from './measure.ts';
import { mayOverlap } from './overlap.ts';
import { matchOfFlowrule, matchOfRule } from './traffic-match.ts';

export interface AcceptedTraffic {
  readonly by: HeldBy;
  readonly reason: string;
  readonly ruleUuid: string;
}

/** Undefined: none of the rules accepts anything of it. A mark changes what packets look like, not whether they come. */
export function heldByAccept(flowrule: Flowrule, rules: readonly Rule[]): AcceptedTraffic | undefined {
  if (flowrule.treatment.action === 'mark') return undefined;
  const match = matchOfFlowrule(flowrule);
  const accepting = rules.find(
    (rule) => rule.action === 'accept' && !rule.disabled && mayOverlap(match, matchOfRule(rule)),
  );
  if (accepting === undefined) return undefined;
  const reason = `It would hit traffic that the rule ${accepting.uuid} accepts, and the policy does not override accept rules.`;
  return { by: 'accept', reason, ruleUuid: accepting.uuid };
}
