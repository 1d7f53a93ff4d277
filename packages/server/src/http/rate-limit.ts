/**
 * Limits requests per key, and attempts with invalid keys per source, each replica for itself and in memory alone. Owns
 * the buckets' memory, which is bounded, and the RateLimit fields (draft-ietf-httpapi-ratelimit-headers-10). What a
 * bucket allows is core's.
 */
import { isIPv6 } from 'node:net';
import { type Rated, rateRequest, windowSeconds } from '@levee/core/account/request-rate.ts';
import { parseAddress } from '@levee/core/net/address.ts';
import { prefixOf } from '@levee/core/net/prefix.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import { withoutMapping } from './address-list.ts';

/** A whole window unused, and a bucket is full again: forgetting it changes nothing. */
const generationMilliseconds = windowSeconds * 1000;
/** In each of two generations; beyond it the buckets longest unused are forgotten early, and full for it. */
const rememberedBuckets = 50_000;

/** Milliseconds of a clock that runs forward. */
export type Clock = () => number;

export interface Buckets {
  take(name: string, perMinute: number): Rated;
  /** What a request would meet, without making it. */
  look(name: string, perMinute: number): Rated;
  /** Buckets in memory. */
  size(): number;
}

export function createBuckets(clock: Clock, remembered = rememberedBuckets): Buckets {
  let young = new Map<string, number>();
  let old = new Map<string, number>();
  let begun = clock();

  function look(name: string, perMinute: number): Rated {
    return rateRequest(young.get(name) ?? old.get(name), clock(), perMinute);
  }

  return {
    look,
    size: () => young.size + old.size,
    take(name, perMinute) {
      const rated = look(name, perMinute);
      const at = clock();
      if (at - begun >= generationMilliseconds || young.size >= remembered) {
        old = young;
        young = new Map();
        begun = at;
      }
      young.set(name, rated.fullAt);
      return rated;
    },
  };
}

/** Wrong keys a minute of one source, before it is told to wait. */
export const guessesPerMinute = 120;

export interface RateLimits {
  /** The fields that say how a key stands. */
  take(
    keyUuid: string,
    own: number | undefined,
  ): { readonly rated: Rated; readonly policy: string; readonly state: string };
  readonly guesses: Guesses;
}

export interface Guesses {
  /** Seconds to wait; undefined: go on. */
  refusedFor(address: string | undefined): number | undefined;
  /** Another key was invalid. */
  count(address: string | undefined): void;
}

/** `perMinute` 0: no limits at all. */
export function createRateLimits(perMinute: number, clock: Clock = () => performance.now()): RateLimits | undefined {
  if (perMinute === 0) return undefined;
  const keys = createBuckets(clock);
  const sources = createBuckets(clock);
  return {
    take(keyUuid, own) {
      const quota = own ?? perMinute;
      const rated = keys.take(keyUuid, quota);
      return {
        rated,
        policy: `"default";q=${quota};w=${windowSeconds}`,
        state: `"default";r=${rated.remaining};t=${rated.resetSeconds}`,
      };
    },
    guesses: {
      refusedFor(address) {
        if (address === undefined) return undefined;
        const { allowed, retrySeconds } = sources.look(sourceOf(address), guessesPerMinute);
        return allowed ? undefined : retrySeconds;
      },
      count(address) {
        if (address !== undefined) sources.take(sourceOf(address), guessesPerMinute);
      },
    },
  };
}

/** Whoever has one IPv6 address has its /64. */
export function sourceOf(given: string): string {
  const address = withoutMapping(given.split('%', 1)[0] ?? '');
  const read = isIPv6(address) ? parseAddress(address) : undefined;
  return read?.ok ? formatPrefix(prefixOf(read.address, 64)) : address;
}
