/**
 * Which thresholds hold for a destination: of all policies that are for it the narrowest that says something about the
 * vector, and below all of them what an installation begins with. Pure. Never knows what is measured.
 */
import type { DetectionPolicySettings, RateLimits } from '@levee/contract/detector.ts';
import { type Vector, vectors } from './vector.ts';

/**
 * What an installation begins with: low enough to see what hurts one server with 1 Gbit/s, high enough for what its
 * customers do of their own. Each is a starting point that a policy replaces.
 */
export const defaultThresholds: Readonly<Record<Vector, Readonly<RateLimits>>> = {
  'udp-amplification': { pps: 10_000, bps: 100_000_000 },
  'tcp-syn': { pps: 10_000 },
  'tcp-syn-ack': { pps: 10_000 },
  'tcp-ack': { pps: 100_000, bps: 1_000_000_000 },
  'tcp-rst': { pps: 10_000 },
  'tcp-other': { pps: 5_000 },
  icmp: { pps: 5_000, bps: 50_000_000 },
  gre: { pps: 50_000, bps: 500_000_000 },
  esp: { pps: 50_000, bps: 500_000_000 },
  'ip-fragment': { pps: 10_000, bps: 100_000_000 },
  'udp-other': { pps: 50_000, bps: 500_000_000 },
  'ip-other': { pps: 5_000, bps: 50_000_000 },
  total: { pps: 200_000, bps: 2_000_000_000 },
};

/** All addresses of a /24 (IPv6: /64) together may have so many times what one may, where no policy says otherwise. */
export const AGGREGATE_FACTOR = 4;
export const defaultHoldSeconds = 30;
export const defaultBaselineFactor = 3;

export interface Threshold {
  /** Uuid of the policy that says it; `default`: none does. */
  readonly policy: string;
  readonly pps: number | undefined;
  readonly bps: number | undefined;
}

export interface EffectivePolicy {
  /** By the vector's number. */
  readonly thresholds: readonly Threshold[];
  readonly aggregateThresholds: readonly Threshold[];
  readonly holdSeconds: number;
  readonly baselineFactor: number;
}

/** `policies`: those that are for the destination, the narrowest first. */
export function effectivePolicy(policies: readonly DetectionPolicySettings[]): EffectivePolicy {
  const thresholds = vectors.map((vector): Threshold => {
    const found = policies.find(({ thresholds }) => thresholds[vector] !== undefined);
    const { pps, bps } = found?.thresholds[vector] ?? defaultThresholds[vector];
    return { policy: found?.uuid ?? 'default', pps, bps };
  });
  return {
    thresholds,
    aggregateThresholds: vectors.map((vector, number): Threshold => {
      // What a narrower policy says of one address is also said of many: the wider one's aggregate would contradict it.
      const found = policies.find(
        ({ aggregate_thresholds, thresholds }) =>
          aggregate_thresholds?.[vector] !== undefined || thresholds[vector] !== undefined,
      );
      const told = found?.aggregate_thresholds?.[vector];
      if (found !== undefined && told !== undefined) return { policy: found.uuid, pps: told.pps, bps: told.bps };
      const { policy = 'default', pps, bps } = thresholds[number] ?? {};
      return {
        policy,
        pps: pps === undefined ? undefined : pps * AGGREGATE_FACTOR,
        bps: bps === undefined ? undefined : bps * AGGREGATE_FACTOR,
      };
    }),
    holdSeconds: policies[0]?.hold_s ?? defaultHoldSeconds,
    baselineFactor: policies[0]?.baseline_factor ?? defaultBaselineFactor,
  };
}
