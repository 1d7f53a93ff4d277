/**
 * Owns the shape of "this field of the request is wrong" and the sentence's wording: which field, what was received,
 * what is allowed. Never decides what is allowed.
 */

export interface Problem {
  /** JSON pointer (RFC 6901) into what was received; '' is the whole value. */
  readonly field: string;
  readonly code: string;
  readonly message: string;
}

/** A place in the received value: keys from the root. */
export type Path = readonly (string | number)[];

const longestShown = 64;

/** The received value in a message: never longer than a line, control characters escaped, never throws. */
export function showReceived(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (typeof value === 'string') return `the string ${quote(value)}`;
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : `an array of ${value.length}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** JSON text of at most 64 characters of it; a cut is shown by dots. */
export function quote(text: string): string {
  const shown = text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;
  return JSON.stringify(shown).replace(/[\u007f-\u009f\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** RFC 6901: `~` and `/` inside a key are escaped. */
export function pointer(path: Path): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** `sentence` follows the field's dotted name: "port.src.start: must be …". */
export function problem(path: Path, code: string, sentence: string): Problem {
  return { field: pointer(path), code, message: path.length === 0 ? sentence : `${path.join('.')}: ${sentence}` };
}
