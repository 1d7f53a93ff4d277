/**
 * What an API key is limited to, and that a key which makes another gives it no more than it has itself: else whoever
 * got hold of a key that ends tomorrow, or works from one address, would make itself one without end. Pure.
 *
 * How many requests it may make is held to the same, but an operator's key gives what it wants to.
 */
import type { Problem } from '@levee/contract/errors.ts';
import { type Prefix, prefixContains } from '@levee/core/net/prefix.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';

/** Undefined: without that limit. */
export interface KeyLimits {
  readonly sources: readonly Prefix[] | undefined;
  readonly expiresAt: Date | undefined;
  /** Ids, in the order in which they were given. */
  readonly operations: ReadonlySet<string> | undefined;
  /** Undefined: as the installation has it. */
  readonly requestsPerMinute: number | undefined;
}

/** Whether what it makes that outlives the request must end when it does. How many requests it makes is no matter then. */
export function isLimited({ sources, expiresAt, operations }: KeyLimits): boolean {
  return sources !== undefined || expiresAt !== undefined || operations !== undefined;
}

/** `wanted`: of the new key. The problems point into the body of its creation; none: it is no wider than its maker. */
export function findWider(maker: KeyLimits, wanted: KeyLimits): readonly Problem[] {
  const problems: Problem[] = [];
  const { sources, expiresAt } = maker;
  if (expiresAt !== undefined && !(wanted.expiresAt !== undefined && wanted.expiresAt <= expiresAt)) {
    const received = wanted.expiresAt === undefined ? 'nothing' : wanted.expiresAt.toISOString();
    const message = `expires_at: must be ${expiresAt.toISOString()} or earlier, when the key that makes it ends; received ${received}`;
    problems.push({ field: '/expires_at', code: 'wider_than_own', message });
  }
  const most = maker.requestsPerMinute;
  if (most !== undefined && (wanted.requestsPerMinute ?? Number.POSITIVE_INFINITY) > most) {
    const received = wanted.requestsPerMinute ?? 'nothing';
    const message = `rate_limit: must be at most ${most}, the requests a minute of the key that makes it; received ${received}`;
    problems.push({ field: '/rate_limit', code: 'wider_than_own', message });
  }
  problems.push(...findOtherOperations(maker.operations, wanted.operations));
  if (sources === undefined) return problems;
  const allowed = `must lie inside the sources of the key that makes it, ${sources.map(formatPrefix).join(', ')}`;
  if (wanted.sources === undefined) {
    problems.push({ field: '/sources', code: 'wider_than_own', message: `sources: ${allowed}; received nothing` });
  }
  for (const [index, source] of (wanted.sources ?? []).entries()) {
    if (sources.some((own) => prefixContains(own, source))) continue;
    const message = `sources.${index}: ${allowed}; received ${formatPrefix(source)}`;
    problems.push({ field: `/sources/${index}`, code: 'wider_than_own', message });
  }
  return problems;
}

function findOtherOperations(own: KeyLimits['operations'], wanted: KeyLimits['operations']): readonly Problem[] {
  if (own === undefined) return [];
  const allowed = `must be one that the key which makes it may call: ${[...own].join(', ')}`;
  const code = 'wider_than_own';
  if (wanted === undefined) {
    return [{ field: '/operations', code, message: `operations: each ${allowed}; received nothing, which is all` }];
  }
  return [...wanted].flatMap((id, index) =>
    own.has(id)
      ? []
      : [{ field: `/operations/${index}`, code, message: `operations.${index}: ${allowed}; received ${id}` }],
  );
}
