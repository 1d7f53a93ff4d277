/**
 * Owns the fields that rules and filters have alike, `src` and `port`: how they are read, whether they go together with
 * `dst`, their canonical form. Never knows what a rule or a filter does with them, never throws.
 *
 * Each reader answers undefined after it has added a problem; an absent value is the caller's matter.
 */
import { formatAddress } from '../net/address.ts';
import type { Address, AddressRange, Prefix } from '../net/prefix.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { rangeOfPrefix } from '../net/range.ts';
import { readAddress, readPrefix } from '../net/read.ts';
import { type Path, type Problem, problem, quote } from '../problem.ts';
import type { PortRange } from './rule.ts';
import { type CanonicalPorts, type CanonicalSource, portBounds } from './wire.ts';
import { fieldOf, readInteger, readObject, refuseUnknownFields } from './wire-values.ts';

/** What `src` says: one subnet or address, or the first and the last address. */
export type SourceRange =
  | { readonly range: AddressRange; readonly prefix: Prefix }
  | { readonly range: AddressRange; readonly first: Address; readonly last: Address };

export function readSource(value: unknown, path: Path, problems: Problem[]): SourceRange | undefined {
  const fields = readObject(value, path, problems);
  if (fields === undefined) return undefined;
  refuseUnknownFields(fields, ['start', 'end'], path, problems);
  const start = fieldOf(fields, 'start');
  const end = fieldOf(fields, 'end');
  const startPath = [...path, 'start'];
  if (start === undefined) {
    problems.push(
      problem(startPath, 'required', 'is required: one address, a subnet, or the first address of a range'),
    );
    if (end !== undefined) readAddress(end, [...path, 'end'], problems);
    return undefined;
  }
  if (end === undefined) {
    const prefix = readPrefix(start, startPath, problems);
    return prefix === undefined ? undefined : { range: rangeOfPrefix(prefix), prefix };
  }
  if (typeof start === 'string' && start.includes('/')) {
    const sentence = `must be one address when src.end is given, received the subnet ${quote(start)}; leave src.end out to match the subnet`;
    problems.push(problem(startPath, 'subnet_with_end', sentence));
    readAddress(end, [...path, 'end'], problems);
    return undefined;
  }
  const first = readAddress(start, startPath, problems);
  const last = readAddress(end, [...path, 'end'], problems);
  if (first === undefined || last === undefined) return undefined;
  if (first.family !== last.family) {
    const sentence = `start ${start} is IPv${first.family} and end ${end} is IPv${last.family}; both must be of one family`;
    problems.push(problem(path, 'mixed_families', sentence));
    return undefined;
  }
  if (first.value > last.value) {
    problems.push(problem(path, 'start_after_end', `start ${start} lies after end ${end}; start must not be greater`));
    return undefined;
  }
  return { range: { family: first.family, start: first.value, end: last.value }, first, last };
}

/** A range of one with its `end` given is kept apart from one without, so that the client reads back what it wrote. */
interface GivenPorts {
  readonly range: PortRange;
  readonly endGiven: boolean;
}

/** What `port` says. */
export interface Ports {
  readonly source: GivenPorts | undefined;
  readonly destination: GivenPorts | undefined;
}

export function readPorts(value: unknown, path: Path, problems: Problem[]): Ports | undefined {
  const fields = readObject(value, path, problems);
  if (fields === undefined) return undefined;
  const before = problems.length;
  refuseUnknownFields(fields, ['src', 'dst'], path, problems);
  const source = fieldOf(fields, 'src');
  const destination = fieldOf(fields, 'dst');
  if (source === undefined && destination === undefined) {
    if (problems.length > before) return undefined;
    const sentence = 'must have src or dst, received an object without them; leave it out to match any port';
    problems.push(problem(path, 'empty', sentence));
    return undefined;
  }
  return {
    source: source === undefined ? undefined : readPortRange(source, [...path, 'src'], problems),
    destination: destination === undefined ? undefined : readPortRange(destination, [...path, 'dst'], problems),
  };
}

function readPortRange(value: unknown, path: Path, problems: Problem[]): GivenPorts | undefined {
  const fields = readObject(value, path, problems);
  if (fields === undefined) return undefined;
  refuseUnknownFields(fields, ['start', 'end'], path, problems);
  const startValue = fieldOf(fields, 'start');
  const endValue = fieldOf(fields, 'end');
  const end = endValue === undefined ? undefined : readInteger(endValue, portBounds, [...path, 'end'], problems);
  if (startValue === undefined) {
    problems.push(problem([...path, 'start'], 'required', 'is required: a port, or the first port of a range'));
    return undefined;
  }
  const start = readInteger(startValue, portBounds, [...path, 'start'], problems);
  if (start === undefined || (endValue !== undefined && end === undefined)) return undefined;
  if (end !== undefined && start > end) {
    problems.push(problem(path, 'start_after_end', `start ${start} is greater than end ${end}`));
    return undefined;
  }
  return { range: { start, end: end ?? start }, endGiven: end !== undefined };
}

/** `dst` and `src`, where both could be read. */
export function checkOneFamily(dst: Prefix | undefined, source: SourceRange | undefined, problems: Problem[]): void {
  if (dst === undefined || source === undefined || source.range.family === dst.family) return;
  const sentence = `is IPv${source.range.family} and dst ${formatPrefix(dst)} is IPv${dst.family}; both must be of one family`;
  problems.push(problem(['src'], 'mixed_families', sentence));
}

export function canonicalSource(source: SourceRange): CanonicalSource {
  return 'prefix' in source
    ? { start: formatPrefix(source.prefix) }
    : { start: formatAddress(source.first), end: formatAddress(source.last) };
}

export function canonicalPorts({ source, destination }: Ports): CanonicalPorts {
  const range = (port: GivenPorts) =>
    port.endGiven ? { start: port.range.start, end: port.range.end } : { start: port.range.start };
  return {
    ...(source && { src: range(source) }),
    ...(destination && { dst: range(destination) }),
  };
}
