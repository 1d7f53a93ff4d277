/**
 * Owns the rules of the enforcement benchmark: ten a destination, none of which meets the probe's packets, and the
 * changes that do. The same on both sides of the comparison.
 */

export const prefix = '10.0.0.0/8';
export const rulesPerDestination = 10;

/** The wire's fields of a rule. */
export interface Fields {
  readonly dst: string;
  readonly protocol: 'tcp' | 'udp';
  readonly action: 'accept' | 'drop';
  readonly priority: number;
  readonly src?: { start: string };
  readonly port?: { dst: { start: number; end?: number } };
}

export function destination(index: number): string {
  return `10.${1 + (index >>> 16)}.${(index >>> 8) & 255}.${index & 255}`;
}

/** What a customer has: services let in, networks and ranges kept out. Different for each destination. */
export function rulesOf(index: number): Fields[] {
  const dst = destination(index);
  return Array.from({ length: rulesPerDestination }, (_, number): Fields => {
    const priority = 100 + number;
    const start = 1 + ((index * 7 + number * 131) % 900);
    if (number % 3 === 0) return { dst, priority, protocol: 'tcp', action: 'accept', port: { dst: { start } } };
    if (number % 3 === 1)
      return { dst, priority, protocol: 'tcp', action: 'drop', port: { dst: { start, end: start + 20 } } };
    const src = { start: `198.18.${(index + number) & 255}.0/24` };
    return { dst, priority, protocol: 'udp', action: 'drop', src, port: { dst: { start } } };
  });
}

/** The rule that change number `number` adds: it drops what the probe sends, and only that. */
export function changeOf(number: number, destinations: number): Fields {
  // A stride without a common factor: changes walk over all destinations in no order.
  const index = (number * 7_919) % destinations;
  const port = { dst: { start: changePort(number) } };
  return { dst: destination(index), priority: 50, protocol: 'udp', action: 'drop', port };
}

export function changePort(number: number): number {
  return 2_000 + (number % 60_000);
}

export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
