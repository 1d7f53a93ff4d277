/**
 * Owns the answer to "which policy holds here", for addresses and for subnets: of those that are for the destination the
 * one of the longest subnet first, be it its own or its account's; of one length the higher rank. Destinations with the
 * same policies have the same object.
 */
import type { DetectionPolicySettings } from '@levee/contract/detector.ts';
import { familyBits, type Prefix } from '../net/prefix.ts';
import { PrefixIndex } from '../net/prefix-index.ts';
import { parsePrefix } from '../net/prefix-text.ts';
import { type EffectivePolicy, effectivePolicy } from './policy.ts';

interface Candidate {
  readonly policy: DetectionPolicySettings;
  readonly length: number;
}

export class PolicyIndex {
  readonly #everywhere: Candidate[] = [];
  readonly #bySubnet = new PrefixIndex<Candidate[]>();
  readonly #known = new Map<string, EffectivePolicy>();

  /** Subnets that are none are left out: the control plane has judged them. */
  constructor(policies: readonly DetectionPolicySettings[]) {
    for (const policy of policies) {
      // An account without addresses has policies for nothing, not for everything.
      if (policy.rank === 0) this.#everywhere.push({ policy, length: 0 });
      for (const text of policy.rank === 0 ? [] : policy.subnets) {
        const read = parsePrefix(text);
        if (!read.ok) continue;
        const there = this.#bySubnet.get(read.prefix) ?? [];
        there.push({ policy, length: read.prefix.length });
        this.#bySubnet.set(read.prefix, there);
      }
    }
  }

  /** Of policies for a part of a subnet nothing holds for the whole. */
  of(destination: Prefix): EffectivePolicy {
    const found = [...this.#everywhere, ...this.#bySubnet.covering(destination).flatMap(({ value }) => value)].sort(
      (a, b) => b.length - a.length || b.policy.rank - a.policy.rank || (a.policy.uuid < b.policy.uuid ? -1 : 1),
    );
    const name = found.map(({ policy }) => policy.uuid).join();
    let effective = this.#known.get(name);
    if (effective === undefined) {
      effective = effectivePolicy(found.map(({ policy }) => policy));
      this.#known.set(name, effective);
    }
    return effective;
  }

  /** Whether all addresses of the subnet have the same. */
  isUniform(subnet: Prefix): boolean {
    if (subnet.length === familyBits(subnet.family)) return true;
    return this.#bySubnet.inside(subnet).every(({ prefix }) => prefix.length === subnet.length);
  }
}
