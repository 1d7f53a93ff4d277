/**
 * Owns the arithmetic of a rate limit: a bucket of tokens, one a packet, exact to the nanosecond. Never reads a clock.
 */
import { burstPackets } from './rule.ts';

/** Nanoseconds of a second; also a token's size, so that a rate of N packets a second adds N a nanosecond. */
const second = 1_000_000_000n;

export interface TokenBucket {
  readonly packetsPerSecond: number;
  /** In billionths of a packet. */
  readonly level: bigint;
  readonly atNanoseconds: bigint;
}

/** A bucket starts full: the burst passes at once. */
export function fullBucket(packetsPerSecond: number, atNanoseconds: bigint): TokenBucket {
  return { packetsPerSecond, level: capacity(packetsPerSecond), atNanoseconds };
}

/** One packet at that time; time that runs backwards adds nothing. A packet above the limit takes nothing. */
export function takePacket(
  bucket: TokenBucket,
  atNanoseconds: bigint,
): { readonly within: boolean; readonly bucket: TokenBucket } {
  const { packetsPerSecond } = bucket;
  const now = atNanoseconds > bucket.atNanoseconds ? atNanoseconds : bucket.atNanoseconds;
  const filled = bucket.level + (now - bucket.atNanoseconds) * BigInt(packetsPerSecond);
  const most = capacity(packetsPerSecond);
  const level = filled > most ? most : filled;
  const within = level >= second;
  return { within, bucket: { packetsPerSecond, level: within ? level - second : level, atNanoseconds: now } };
}

function capacity(packetsPerSecond: number): bigint {
  return BigInt(burstPackets(packetsPerSecond)) * second;
}
