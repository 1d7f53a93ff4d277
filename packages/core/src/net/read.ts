/**
 * Owns the reading of one unknown value of a request as an address or a prefix, and the problem that says why it is
 * none. Never throws.
 */
import { type Path, type Problem, problem, showReceived } from '../problem.ts';
import { parseAddress } from './address.ts';
import type { Address, Prefix } from './prefix.ts';
import { parsePrefix } from './prefix-text.ts';

export function readPrefix(value: unknown, path: Path, problems: Problem[]): Prefix | undefined {
  const allowed = 'must be an IPv4 or IPv6 address or a subnet, such as 203.0.113.7 or 2001:db8::/48';
  if (typeof value !== 'string') {
    problems.push(problem(path, 'wrong_type', `${allowed}, received ${showReceived(value)}`));
    return undefined;
  }
  const read = parsePrefix(value);
  if (read.ok) return read.prefix;
  problems.push(problem(path, read.code, read.sentence));
  return undefined;
}

export function readAddress(value: unknown, path: Path, problems: Problem[]): Address | undefined {
  if (typeof value !== 'string') {
    const allowed = 'must be one IPv4 or IPv6 address, such as 203.0.113.7 or 2001:db8::7';
    problems.push(problem(path, 'wrong_type', `${allowed}, received ${showReceived(value)}`));
    return undefined;
  }
  const read = parseAddress(value);
  if (read.ok) return read.address;
  problems.push(problem(path, read.code, read.sentence));
  return undefined;
}
