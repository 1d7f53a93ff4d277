/**
 * Owns the reading of a request's list of subnets. Never asks who holds them: that is the database's to decide, in the
 * same statement that acts on the answer, or two requests at once could both be right.
 */
import { type Prefix, prefixesEqual } from '../net/prefix.ts';
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
