/**
 * Owns how many answers a second one network may be sent over UDP, where the sender's address may be forged: beyond it
 * every other answer is empty and says "come over TCP", which a victim cannot be made to do and a real client can; the
 * rest are not sent. Memory is fixed. Never looks at what was asked.
 *
 * Networks share a fixed number of buckets by a keyed hash. A table that forgets networks would give a new burst to
 * each one that it forgot; two networks in one bucket merely share a limit, and who will cannot be chosen from outside.
 */
import type { Network } from './peer-address.ts';

export type Verdict = 'answer' | 'truncate' | 'drop';

export interface ResponseLimit {
  judge(network: Network, nowMilliseconds: number): Verdict;
}

const bucketCount = 1 << 16;

/** @param perSecond answers, and as many in a burst; 0: no limit. @param secret three random 32-bit numbers */
export function createResponseLimit(perSecond: number, secret: Uint32Array): ResponseLimit {
  if (perSecond === 0) return { judge: () => 'answer' };
  const tokens = new Float64Array(bucketCount).fill(perSecond);
  const times = new Float64Array(bucketCount);
  const over = new Uint8Array(bucketCount);
  const [first = 0, second = 0, third = 0] = secret;
  return {
    judge([high, low], now) {
      const hash = mix(mix(high ^ first) ^ low ^ second) ^ third;
      const bucket = (hash ^ (hash >>> 16)) & (bucketCount - 1);
      const last = times[bucket] ?? 0;
      const since = Math.max(0, now - last);
      const present = Math.min(perSecond, (tokens[bucket] ?? 0) + (since * perSecond) / 1000);
      times[bucket] = Math.max(now, last);
      if (present >= 1) {
        tokens[bucket] = present - 1;
        return 'answer';
      }
      tokens[bucket] = present;
      over[bucket] = (over[bucket] ?? 0) ^ 1;
      return over[bucket] === 1 ? 'truncate' : 'drop';
    },
  };
}

/** The finishing steps of MurmurHash3 (public domain): every bit of the input moves half of the output. */
function mix(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
