/**
 * Owns the pure questions about who may act on which addresses: reading a request's list of subnets, and finding the
 * granted subnet that an object's destination lies in. Never loads the grants, never guards them against a race: that
 * two accounts do not hold one address is the database's constraint.
 */
import { type Prefix, prefixContains, prefixesEqual } from '../net/prefix.ts';
import { PrefixIndex } from '../net/prefix-index.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { readPrefix } from '../net/read.ts';
import { type Path, type Problem, pointer, problem, showReceived } from '../problem.ts';

export type ParsedSubnets =
  | { readonly ok: true; readonly subnets: readonly Prefix[] }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export interface SubnetListBounds {
  readonly minimum: number;
  readonly maximum: number;
}

/**
 * A list of subnets (or single addresses) as a request gives it at `path`, in its order. The same subnet twice, or one
 * inside another, is a problem at the later one: it would be one grant with two fates.
 */
export function parseSubnets(value: unknown, path: Path, bounds: SubnetListBounds): ParsedSubnets {
  const allowed = `must be an array of ${bounds.minimum} to ${bounds.maximum} addresses or subnets`;
  if (!Array.isArray(value)) {
    return { ok: false, problems: [problem(path, 'wrong_type', `${allowed}, received ${showReceived(value)}`)] };
  }
  if (value.length < bounds.minimum || value.length > bounds.maximum) {
    return { ok: false, problems: [problem(path, 'out_of_range', `${allowed}, received ${showReceived(value)}`)] };
  }
  const problems: Problem[] = [];
  const subnets: Prefix[] = [];
  const seen = new PrefixIndex<Path>();
  for (let index = 0; index < value.length; index += 1) {
    const at = [...path, index];
    const subnet = readPrefix(value[index], at, problems);
    if (subnet === undefined) continue;
    subnets.push(subnet);
    const other = seen.longestMatch(subnet) ?? seen.inside(subnet)[0];
    if (other === undefined) {
      seen.set(subnet, at);
    } else if (prefixesEqual(other.prefix, subnet)) {
      problems.push(problem(at, 'duplicate', `${formatPrefix(subnet)} is listed already at ${pointer(other.value)}`));
    } else {
      const sentence = `${formatPrefix(subnet)} overlaps ${formatPrefix(other.prefix)} at ${pointer(other.value)}; list the wider one alone`;
      problems.push(problem(at, 'overlap', sentence));
    }
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, subnets };
}

/**
 * The granted subnet in which all of `wanted` lies. Two granted subnets that only together cover it do not: an object
 * hangs on one grant and goes when that goes.
 */
export function findGrantFor(wanted: Prefix, granted: readonly Prefix[]): Prefix | undefined {
  return granted.find((subnet) => prefixContains(subnet, wanted));
}

export type AddressAccess =
  | { readonly ok: true; readonly subnet: Prefix }
  | { readonly ok: false; readonly code: 'ip_not_allowed'; readonly problem: Problem };

/** Whether an account that was granted these subnets may act on `wanted`, named by the request's field at `path`. */
export function decideAddressAccess(wanted: Prefix, granted: readonly Prefix[], path: Path): AddressAccess {
  const subnet = findGrantFor(wanted, granted);
  if (subnet !== undefined) return { ok: true, subnet };
  // The grants are the caller's own, yet there may be thousands: the answer names none of them.
  const sentence = `${formatPrefix(wanted)} does not lie inside one of your subnets`;
  return { ok: false, code: 'ip_not_allowed', problem: problem(path, 'ip_not_allowed', sentence) };
}

/**
 * Whether a provider with these prefixes may hand out each of `subnets`: one problem for each that lies outside, with
 * pointers into the list at `path`.
 */
export function findOutside(subnets: readonly Prefix[], prefixes: readonly Prefix[], path: Path): Problem[] {
  const index = new PrefixIndex<true>();
  for (const prefix of prefixes) index.set(prefix, true);
  return subnets.flatMap((subnet, position) =>
    index.longestMatch(subnet) === undefined
      ? [problem([...path, position], 'ip_not_allowed', `${formatPrefix(subnet)} does not lie inside your prefixes`)]
      : [],
  );
}
