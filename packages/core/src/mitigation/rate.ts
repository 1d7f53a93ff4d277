/**
 * Owns the rates that measures let through: what the policy takes for harmless. A limit at the threshold, and not below it,
 * keeps an attack visible to a detector that sees only what got past the limit: it ends below half of the threshold. Pure.
 */
import type { VectorProfile } from '@levee/contract/detector.ts';
import { packetBytes } from './profile-shape.ts';

/** Thresholds of one vector, and what is usual of it. */
export interface VectorLimits {
  readonly pps?: number | undefined;
  readonly bps?: number | undefined;
  /** Packets and bits a second that are usual. Absent: it is not known, and may be as much as passes. */
  readonly baselinePps?: number | undefined;
  readonly baselineBps?: number | undefined;
}

/** Of a threshold: who has less of a vector in quiet times hardly has a use for it. */
const USED_SHARE = 0.01;

/** Only where that is known: then what is of the vector may go as a whole. */
export function isHardlyUsed({ pps, bps, baselinePps, baselineBps }: VectorLimits): boolean {
  const parts = [
    [baselinePps, pps],
    [baselineBps, bps],
  ] as const;
  const isLittle = (usual: number, threshold: number | undefined) => usual <= (threshold ?? 0) * USED_SHARE;
  const known = parts.filter(([usual]) => usual !== undefined);
  return known.length > 0 && known.every(([usual = 0, threshold]) => usual === 0 || isLittle(usual, threshold));
}

/** Usual traffic has so much room above what it usually is. */
const BASELINE_ROOM = 2;
const LEAST_PPS = 100;

/** Packets a second, of two significant digits: small differences make no other measure. */
export function allowedPps(profile: VectorProfile, { pps, bps, baselinePps, baselineBps = 0 }: VectorLimits): number {
  const octets = packetBytes(profile);
  const told = [pps, bps === undefined ? undefined : bps / 8 / octets].filter((each) => each !== undefined);
  const threshold = told.length > 0 ? Math.min(...told) : LEAST_PPS;
  const usual = baselinePps ?? baselineBps / 8 / octets;
  const allowed = Math.max(LEAST_PPS, threshold, usual * BASELINE_ROOM);
  return Math.min(4_294_967_295, twoDigits(allowed));
}

/** Bytes a second that a flowrule may let pass. */
export const MOST_BYTES = 1_000_000_000_000;

/** Bytes a second, as FlowSpec counts (RFC 8955, 7.1). Usual packets may be longer than those of the attack. */
export function allowedBytes(profile: VectorProfile, limits: VectorLimits): number {
  const usual = ((limits.baselineBps ?? 0) / 8) * BASELINE_ROOM;
  const allowed = Math.max(1, allowedPps(profile, limits) * packetBytes(profile), usual);
  return Math.min(MOST_BYTES, twoDigits(allowed));
}

function twoDigits(value: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return Math.round(value / unit) * unit;
}
