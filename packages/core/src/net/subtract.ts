/** Owns what is left of a prefix when others are taken out of it. Never reads text. */
import { comparePrefixes, type Prefix, prefixContains } from './prefix.ts';
import { prefixesOfRange, rangeOfPrefix } from './range.ts';

/** What is left of `prefix`, as the fewest prefixes. `taken` do not overlap each other. */
export function subtract(prefix: Prefix, taken: readonly Prefix[]): Prefix[] {
  if (taken.some((each) => prefixContains(each, prefix))) return [];
  const inside = taken.filter((each) => prefixContains(prefix, each)).sort(comparePrefixes);
  const whole = rangeOfPrefix(prefix);
  const pieces: Prefix[] = [];
  let from = whole.start;
  for (const each of inside) {
    const { start, end } = rangeOfPrefix(each);
    if (start > from) pieces.push(...prefixesOfRange({ family: prefix.family, start: from, end: start - 1n }));
    from = end + 1n;
  }
  if (from <= whole.end) pieces.push(...prefixesOfRange({ family: prefix.family, start: from, end: whole.end }));
  return pieces;
}
