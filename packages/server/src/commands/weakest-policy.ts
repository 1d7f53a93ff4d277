/**
 * What the policies for a destination and inside it let be done: for it, for pieces of it, and for all of it together. What is
 * done to a whole subnet is done to everybody in it, so the weakest policy inside bounds it. Owns when a whole subnet may be
 * given up. Writes nothing.
 */
import { policyDefaults } from '@levee/contract/schemas/detection.ts';
import { announcesRoutes, type MitigationPolicy } from '@levee/core/mitigation/decide.ts';
import { isBelow, type Part } from '@levee/core/mitigation/places.ts';
import { familyBits } from '@levee/core/net/prefix.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { loadPolicyParts, type PolicyInForce, type PolicySettings, policiesInForce } from './detection-policy.ts';
import type { Executor } from './executor.ts';

export function settingsOf(policies: readonly PolicyInForce[]): PolicySettings {
  return policies[0]?.settings ?? policyDefaults;
}

export function policyOf(settings: PolicySettings): MitigationPolicy {
  return {
    mitigation: settings.mitigation,
    overrideAccept: settings.override_accept,
    allowBlackhole: settings.mitigation === 'rtbh' || (announcesRoutes(settings) && settings.allow_rtbh),
  };
}

/**
 * All of a subnet is given up only where a policy names it, or a subnet around it: one for an account or for everything means
 * each address by itself.
 */
export function policyOfWhole(policies: readonly PolicyInForce[], dst: string): MitigationPolicy {
  const policy = policyOf(settingsOf(policies));
  const { family, length } = prefixFromTrusted(dst);
  const isNamed = length === familyBits(family) || (policies[0]?.subnet ?? null) !== null;
  return { ...policy, allowBlackhole: policy.allowBlackhole && isNamed };
}

/** Pieces of a subnet that somebody holds by himself or that a policy is for. */
export async function loadParts(executor: Executor, dst: string): Promise<Part[]> {
  const parts = await loadPolicyParts(executor, dst);
  return parts.map(({ dst: place, isHolders, settings }) => ({ dst: place, isHolders, policy: policyOf(settings) }));
}

/** What nobody in all of the destination (canonical) has anything against. */
export async function weakestPolicy(executor: Executor, dst: string): Promise<MitigationPolicy> {
  const whole = policyOfWhole(await policiesInForce(executor, dst), dst);
  const parts = await loadParts(executor, dst);
  return parts.reduce(
    (weakest, { policy }): MitigationPolicy => ({
      mitigation: isBelow(policy, weakest) ? policy.mitigation : weakest.mitigation,
      overrideAccept: policy.overrideAccept && weakest.overrideAccept,
      allowBlackhole: policy.allowBlackhole && weakest.allowBlackhole,
    }),
    whole,
  );
}
