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
  /** Packets a second. */
  readonly baselinePps?: number | undefined;
}

/** Usual traffic has so much room above what it usually is. */
const BASELINE_ROOM = 2;
const LEAST_PPS = 100;

/** Packets a second, of two significant digits: small differences make no other measure. */
export function allowedPps(profile: VectorProfile, { pps, bps, baselinePps }: VectorLimits): number {
  const octets = packetBytes(profile);
  const told = [pps, bps === undefined ? undefined : bps / 8 / octets].filter((each) => each !== undefined);
  const threshold = told.length > 0 ? Math.min(...told) : LEAST_PPS;
  const allowed = Math.max(LEAST_PPS, threshold, (baselinePps ?? 0) * BASELINE_ROOM);
  return Math.min(4_294_967_295, twoDigits(allowed));
}

/** Bytes a second, as FlowSpec counts (RFC 8955, 7.1). */
export function allowedBytes(profile: VectorProfile, limits: VectorLimits): number {
  return Math.min(1_000_000_000_000, Math.max(1, twoDigits(allowedPps(profile, limits) * packetBytes(profile))));
}

function twoDigits(value: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return Math.round(value / unit) * unit;
}
