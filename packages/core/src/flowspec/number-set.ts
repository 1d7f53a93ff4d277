/**
 * Owns sets of numbers as flow components have them (RFC 8955, 4.2.1.1) and their text. The wire has lists of comparisons
 * joined by AND and OR; what such a list says is a set, and one set has one text: values and ranges, ascending, as few as
 * possible, such as `53,1024-65535`. Never knows which component it is.
 */
import { quote } from '../problem.ts';

/** Inclusive. */
export interface NumberRange {
  readonly start: number;
  readonly end: number;
}

/** Ascending, with a gap between any two; never empty. */
export type NumberSet = readonly NumberRange[];

export interface NumberKind {
  readonly maximum: number;
  /** Words for some of the numbers. */
  readonly numberOf?: (word: string) => number | undefined;
  /** The word for a number, which `numberOf` reads. */
  readonly wordOf?: (number: number) => string | undefined;
}

export type NumberSetResult =
  | { readonly ok: true; readonly set: NumberSet }
  /** `sentence` says what was received and what is allowed. */
  | { readonly ok: false; readonly sentence: string };

/** A route carries each of them in up to eight octets, and all that it says in 4095 (RFC 8955, 4.1). */
export const mostRanges = 64;

/** Any order, overlaps included; no white space, no leading zeros. */
export function parseNumberSet(text: string, kind: NumberKind): NumberSetResult {
  const allowed = `must be numbers from 0 to ${kind.maximum} and ranges, separated by commas, such as ${exampleOf(kind)}`;
  const items = text.split(',', mostRanges + 1);
  if (items.length > mostRanges) return { ok: false, sentence: `must have at most ${mostRanges} values and ranges` };
  const ranges: NumberRange[] = [];
  for (const item of items) {
    const range = readRange(item, kind);
    if (range === undefined) return { ok: false, sentence: `${allowed}, received ${quote(item)}` };
    if (range.start > range.end) return { ok: false, sentence: `${item} begins after its end` };
    ranges.push(range);
  }
  return { ok: true, set: joined(ranges) };
}

function readRange(item: string, kind: NumberKind): NumberRange | undefined {
  // Words first: some have a hyphen.
  const word = kind.numberOf?.(item);
  if (word !== undefined) return { start: word, end: word };
  const found = /^(0|[1-9][0-9]{0,9})(?:-(0|[1-9][0-9]{0,9}))?$/.exec(item);
  if (found === null) return undefined;
  const start = Number(found[1]);
  const end = found[2] === undefined ? start : Number(found[2]);
  return start <= kind.maximum && end <= kind.maximum ? { start, end } : undefined;
}

/** Overlapping and adjacent ranges become one. */
function joined(ranges: readonly NumberRange[]): NumberSet {
  const set: NumberRange[] = [];
  for (const range of ranges.toSorted((a, b) => a.start - b.start)) {
    const last = set.at(-1);
    if (last === undefined || range.start > last.end + 1) set.push(range);
    else if (range.end > last.end) set[set.length - 1] = { start: last.start, end: range.end };
  }
  return set;
}

/** The one text of the set: a range of two is written as two values. */
export function formatNumberSet(set: NumberSet, kind: NumberKind): string {
  const value = (number: number) => kind.wordOf?.(number) ?? String(number);
  return set
    .map(({ start, end }) => {
      if (start === end) return value(start);
      return start + 1 === end ? `${value(start)},${value(end)}` : `${start}-${end}`;
    })
    .join(',');
}

export function isInSet(set: NumberSet, number: number): boolean {
  return set.some(({ start, end }) => start <= number && number <= end);
}

function exampleOf({ maximum, wordOf }: NumberKind): string {
  const first = Math.min(8, maximum - 1);
  return `${wordOf?.(17) ?? Math.floor(first / 2)},${first}-${maximum}`;
}
