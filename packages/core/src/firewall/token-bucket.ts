/**
 * Owns the arithmetic of a limit: a bucket of tokens, one a packet or one a byte, exact to the nanosecond. Never reads a
 * clock.
 */
import { burstPackets } from './rule.ts';

/** Nanoseconds of a second; also a token's size, so that a rate of N tokens a second adds N a nanosecond. */
const second = 1_000_000_000n;

export interface TokenBucket {
  readonly perSecond: number;
  /** Tokens that it holds at most. */
  readonly burst: number;
  /** In billionths of a token. */
  readonly level: bigint;
  readonly atNanoseconds: bigint;
}

/** A bucket starts full: the burst passes at once. `burst` absent: that of a rule's limit. */
export function fullBucket(
  perSecond: number,
  atNanoseconds: bigint,
  burst: number = burstPackets(perSecond),
): TokenBucket {
  return { perSecond, burst, level: BigInt(burst) * second, atNanoseconds };
}

/**
 * One packet at that time, for `tokens` of them; time that runs backwards adds nothing. A packet above the limit takes
 * nothing.
 */
export function takePacket(
  bucket: TokenBucket,
  atNanoseconds: bigint,
  tokens = 1,
): { readonly within: boolean; readonly bucket: TokenBucket } {
  const { perSecond, burst } = bucket;
  const now = atNanoseconds > bucket.atNanoseconds ? atNanoseconds : bucket.atNanoseconds;
  const filled = bucket.level + (now - bucket.atNanoseconds) * BigInt(perSecond);
  const most = BigInt(burst) * second;
  const level = filled > most ? most : filled;
  const price = BigInt(tokens) * second;
  const within = level >= price;
  return { within, bucket: { perSecond, burst, level: within ? level - price : level, atNanoseconds: now } };
}
