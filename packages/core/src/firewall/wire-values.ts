/**
 * Owns the reading of one unknown value as one thing (an integer within bounds, one of some words, a text) and the
 * problem that says why it is not that. Never looks at two fields together, never throws.
 *
 * Each reader answers undefined after it has added a problem; an absent value is the caller's matter.
 */
import { type Path, type Problem, pointer, problem, quote, showReceived } from '../problem.ts';
import { descriptionMaximum, type TcpFlagName, tcpFlagBits, tcpFlagNames } from './wire.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Problems listed for one object's unknown fields before they are only counted: an answer stays small. */
const unknownFieldsListed = 20;

/** The value's own fields, when it is a JSON object. */
export function readObject(value: unknown, path: Path, problems: Problem[]): Fields | undefined {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  problems.push(problem(path, 'wrong_type', `must be a JSON object, received ${showReceived(value)}`));
  return undefined;
}

/** The field's value; undefined when absent. Only own fields count: `constructor` and its like are absent. */
export function fieldOf(fields: Fields, name: string): unknown {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

/** `besides`: fields that are allowed in the request and were taken out before. */
export function refuseUnknownFields(
  fields: Fields,
  known: readonly string[],
  path: Path,
  problems: Problem[],
  besides: readonly string[] = [],
): void {
  const unknown = Object.keys(fields).filter((name) => !known.includes(name));
  const allowed = `allowed are ${[...known, ...besides].join(', ')}`;
  for (const name of unknown.slice(0, unknownFieldsListed)) {
    if (name.length > 64) {
      // A pointer to a name of any length would echo a whole body back.
      const sentence = `has no field with a name of ${name.length} characters, ${quote(name)}; ${allowed}`;
      problems.push(problem(path, 'unknown_field', sentence));
      continue;
    }
    const shown = /^[\w-]+$/.test(name) ? name : quote(name);
    const message = `${[...path, shown].join('.')}: is not a known field; ${allowed}`;
    problems.push({ field: pointer([...path, name]), code: 'unknown_field', message });
  }
  if (unknown.length > unknownFieldsListed) {
    const rest = unknown.length - unknownFieldsListed;
    problems.push(problem(path, 'unknown_field', `has ${rest} more fields that are not known; ${allowed}`));
  }
}

export function readInteger(
  value: unknown,
  bounds: { readonly minimum: number; readonly maximum: number },
  path: Path,
  problems: Problem[],
): number | undefined {
  const allowed = `must be an integer from ${bounds.minimum} to ${bounds.maximum}, received ${showReceived(value)}`;
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    problems.push(problem(path, 'wrong_type', allowed));
    return undefined;
  }
  if (value < bounds.minimum || value > bounds.maximum) {
    problems.push(problem(path, 'out_of_range', allowed));
    return undefined;
  }
  // -0 would be stored and answered as another text than 0.
  return value === 0 ? 0 : value;
}

export function readBoolean(value: unknown, path: Path, problems: Problem[]): boolean | undefined {
  if (typeof value === 'boolean') return value;
  problems.push(problem(path, 'wrong_type', `must be true or false, received ${showReceived(value)}`));
  return undefined;
}

export function readWord<const Word extends string>(
  value: unknown,
  words: readonly Word[],
  path: Path,
  problems: Problem[],
): Word | undefined {
  const word = words.find((candidate) => candidate === value);
  if (word === undefined) {
    const code = typeof value === 'string' ? 'not_allowed' : 'wrong_type';
    const meant = typeof value === 'string' && value.length < 64 ? value.trim().toLowerCase() : '';
    const hint = words.some((candidate) => candidate === meant) ? `; did you mean ${meant}?` : '';
    problems.push(problem(path, code, `must be one of ${words.join(', ')}, received ${showReceived(value)}${hint}`));
  }
  return word;
}

/** A one-line text: no control characters, and well-formed, for half a surrogate pair cannot be stored as UTF-8. */
export function readDescription(value: unknown, path: Path, problems: Problem[]): string | undefined {
  if (typeof value !== 'string') {
    problems.push(problem(path, 'wrong_type', `must be a string, received ${showReceived(value)}`));
    return undefined;
  }
  const before = problems.length;
  // The length in UTF-16 units bounds the work; no text of at most 255 characters has more than 510.
  const characters = value.length > descriptionMaximum ? [...value.slice(0, 4 * descriptionMaximum)].length : 0;
  if (characters > descriptionMaximum) {
    const received = value.length > 4 * descriptionMaximum ? `more than ${2 * descriptionMaximum}` : `${characters}`;
    problems.push(
      problem(path, 'too_long', `must have at most ${descriptionMaximum} characters, received ${received}`),
    );
  }
  const control = /\p{Cc}/u.exec(value);
  if (control !== null) {
    const name = control[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
    problems.push(
      problem(path, 'control_character', `must have no control characters, received U+${name} at ${control.index}`),
    );
  }
  if (!value.isWellFormed()) {
    problems.push(problem(path, 'malformed_text', 'must be well-formed Unicode, received half a surrogate pair'));
  }
  return problems.length === before ? value : undefined;
}

/** The listed flags as bits; a flag listed twice counts once. None are no condition, as though the list were absent. */
export function readTcpFlags(value: unknown, path: Path, problems: Problem[]): number | undefined {
  const allowed = `must be an array of up to ${tcpFlagNames.length} of ${tcpFlagNames.join(', ')}`;
  if (!Array.isArray(value)) {
    problems.push(problem(path, 'wrong_type', `${allowed}, received ${showReceived(value)}`));
    return undefined;
  }
  if (value.length === 0) return undefined;
  if (value.length > tcpFlagNames.length) {
    problems.push(problem(path, 'too_long', `${allowed}, received ${showReceived(value)}`));
    return undefined;
  }
  let bits = 0;
  const before = problems.length;
  for (let index = 0; index < value.length; index += 1) {
    const flag: TcpFlagName | undefined = readWord(value[index], tcpFlagNames, [...path, index], problems);
    if (flag !== undefined) bits |= tcpFlagBits[flag];
  }
  return problems.length === before ? bits : undefined;
}
