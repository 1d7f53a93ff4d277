/**
 * What of the routers' reports can make an unsettled object settle: how far all of them are, what they are able to do,
 * which objects they refuse. Pure over the registry's memory; compares one look with the one before.
 */
import type { KnownRouter } from '../agents/router-registry.ts';
import { type Cursor, compareCursors } from '../store/cursor.ts';

/** Undefined: a router has acknowledged nothing, or there is none. */
export function lowestAcknowledged(routers: readonly KnownRouter[]): Cursor | undefined {
  let lowest = routers[0]?.acked;
  for (const { acked } of routers) {
    if (acked === undefined) return undefined;
    if (lowest === undefined || compareCursors(acked, lowest) < 0) lowest = acked;
  }
  return lowest;
}

/**
 * Text that differs when an object that all have acknowledged may have another state than before, other than by a refusal.
 * `silentAfter`: milliseconds without a report.
 */
export function conditionsOf(routers: readonly KnownRouter[], now: number, silentAfter: number): string {
  let text = '';
  for (const { uuid, enforcement, tableLeft, capabilities, lastSeenMilliseconds } of routers) {
    const silent = now - (lastSeenMilliseconds ?? 0) >= silentAfter;
    text += `${uuid} ${enforcement} ${tableLeft} ${silent} ${capabilities.size === 0 ? '' : [...capabilities].sort()}\n`;
  }
  return text;
}

/** Objects that any router refuses. */
export function refusedBy(routers: readonly KnownRouter[]): ReadonlySet<string> {
  const refused = new Set<string>();
  for (const { failures } of routers) for (const uuid of failures.keys()) refused.add(uuid);
  return refused;
}

/** Members of one and not of the other. */
export function differenceOf(a: ReadonlySet<string>, b: ReadonlySet<string>): string[] {
  return [...[...a].filter((each) => !b.has(each)), ...[...b].filter((each) => !a.has(each))];
}
