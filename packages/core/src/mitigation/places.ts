/**
 * Owns on which destinations the measures of an attack stand: on the attack's own, and of a subnet that several hold, or that
 * narrower policies lie in, on the addresses that are attacked, each as its own policy has it. So nobody is limited for the
 * sake of a neighbour, and no policy is overridden by one that is wider. Pure. Decides no measure.
 */
import type { VectorProfile } from '@levee/contract/detector.ts';
import type { MitigationPolicy } from './decide.ts';
import { type Measures, mitigations } from './measure.ts';
import { WANTED_COVERAGE } from './profile-shape.ts';

/** Addresses of a subnet that have measures of their own. */
export const MOST_ADDRESSES = 8;

/** A piece of the attacked subnet for which somebody may want something else than what is wanted for all of it. */
export interface Part {
  /** Canonical, inside the subnet. */
  readonly dst: string;
  /** A customer holds it, besides who holds the rest. */
  readonly isHolders: boolean;
  /** In force there. */
  readonly policy: MitigationPolicy;
}

/** A piece whose policy does not let happen what the subnet's asks for; undefined: none is in the way. */
export function narrowestPart(policy: MitigationPolicy, parts: readonly Part[]): Part | undefined {
  const narrower = parts.filter(
    ({ policy: own }) =>
      isBelow(own, policy) ||
      (policy.overrideAccept && !own.overrideAccept) ||
      (policy.allowBlackhole && !own.allowBlackhole),
  );
  return narrower.toSorted((a, b) => rankOf(a.policy) - rankOf(b.policy))[0];
}

/** One policy lets less be done than the other. */
export function isBelow(one: MitigationPolicy, other: MitigationPolicy): boolean {
  return rankOf(one) < rankOf(other);
}

function rankOf({ mitigation }: MitigationPolicy): number {
  return mitigations.indexOf(mitigation);
}

/** A limit on all of the subnet is used up by whoever of its holders has the most traffic, attacked or not. */
export function limitsTogether({ flowrules, edge }: Measures, parts: readonly Part[]): boolean {
  return (
    parts.some(({ isHolders }) => isHolders) &&
    (flowrules.some(({ canonical }) => canonical.action === 'rate-limit') ||
      edge.some(({ canonical }) => canonical.ratelimit !== undefined))
  );
}

/**
 * Addresses with measures of their own, those first that have some already: which of many are attacked the most wavers.
 * `known`: canonical addresses on which measures stand.
 */
export function attackedAddresses(profiles: readonly VectorProfile[], known: readonly string[]): string[] {
  const packets = new Map<string, number>();
  for (const { pps, destinations } of profiles) {
    for (const { value, share } of destinations) packets.set(value, (packets.get(value) ?? 0) + share * pps);
  }
  const byPackets = [...packets].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([value]) => value);
  const stillSeen = known.filter((value) => packets.has(value));
  return [...new Set([...stillSeen, ...byPackets, ...known])];
}

/** They have so much of each vector that what is done for them is enough against the attack. */
export function areEnough(
  addresses: readonly string[],
  profiles: readonly VectorProfile[],
  wanted = WANTED_COVERAGE,
): boolean {
  return profiles.every(({ destinations }) => {
    const theirs = destinations.filter(({ value }) => addresses.includes(value));
    return theirs.reduce((sum, { share }) => sum + share, 0) >= wanted - 1e-9;
  });
}

/** The vectors that an address has its part of, with that part of their rates. What is usual of the subnet is not what is usual of it. */
export function profilesAt(profiles: readonly VectorProfile[], address: string): VectorProfile[] {
  return profiles.flatMap((profile) => {
    const part = profile.destinations.find(({ value }) => value === address)?.share;
    if (part === undefined) return [];
    const { pps, bps, baseline_pps: _pps, baseline_bps: _bps, ...rest } = profile;
    return [{ ...rest, pps: pps * part, bps: bps * part }];
  });
}
