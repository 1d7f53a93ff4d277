/**
 * Owns conditions on bits as flow components have them (RFC 8955, 4.2.1.2) and their text: alternatives separated by
 * commas, each of names joined by `&`, with `!` before those that must not be set: `syn&!ack,rst`. The wire can say each
 * alternative in two comparisons. Never knows which component it is.
 */
import { quote } from '../problem.ts';

/** All bits of `set` are set, none of `unset`. Never both for one bit, never neither for all. */
export interface FlagAlternative {
  readonly set: number;
  readonly unset: number;
}

/** At least one; none says what another says already. */
export type FlagExpression = readonly FlagAlternative[];

/** Names by their bits, in the order in which a text lists them. */
export type FlagBits = Readonly<Record<string, number>>;

export type FlagExpressionResult =
  | { readonly ok: true; readonly expression: FlagExpression }
  /** `sentence` says what was received and what is allowed. */
  | { readonly ok: false; readonly sentence: string };

export const mostAlternatives = 16;

export function parseFlagExpression(text: string, bits: FlagBits): FlagExpressionResult {
  const names = Object.keys(bits);
  const parts = text.split(',', mostAlternatives + 1);
  if (parts.length > mostAlternatives) {
    return { ok: false, sentence: `must have at most ${mostAlternatives} alternatives` };
  }
  const alternatives: FlagAlternative[] = [];
  for (const part of parts) {
    let set = 0;
    let unset = 0;
    for (const literal of part.split('&', 2 * names.length + 1)) {
      const isUnset = literal.startsWith('!');
      const name = isUnset ? literal.slice(1) : literal;
      if (!Object.hasOwn(bits, name)) {
        const allowed = `must be alternatives of ${names.join(', ')}, joined by & and separated by commas, with ! for one that is not set`;
        return { ok: false, sentence: `${allowed}, received ${quote(part)}` };
      }
      if (isUnset) unset |= bits[name] ?? 0;
      else set |= bits[name] ?? 0;
    }
    if ((set & unset) !== 0) return { ok: false, sentence: `${quote(part)} wants a flag both set and not set` };
    alternatives.push({ set, unset });
  }
  return { ok: true, expression: withoutRepetition(alternatives) };
}

/** What matches `b` matches `a` as well. */
function covers(a: FlagAlternative, b: FlagAlternative): boolean {
  return (a.set & ~b.set) === 0 && (a.unset & ~b.unset) === 0;
}

function withoutRepetition(alternatives: readonly FlagAlternative[]): FlagExpression {
  const kept: FlagAlternative[] = [];
  // The fewer conditions, the more it covers.
  const bySize = alternatives.toSorted((a, b) => bitsIn(a.set | a.unset) - bitsIn(b.set | b.unset));
  for (const each of bySize) if (!kept.some((other) => covers(other, each))) kept.push(each);
  return kept.sort((a, b) => a.set - b.set || a.unset - b.unset);
}

function bitsIn(value: number): number {
  let count = 0;
  for (let rest = value; rest !== 0; rest &= rest - 1) count++;
  return count;
}

export function formatFlagExpression(expression: FlagExpression, bits: FlagBits): string {
  return expression
    .map(({ set, unset }) =>
      Object.entries(bits)
        .filter(([, bit]) => ((set | unset) & bit) !== 0)
        .map(([name, bit]) => ((set & bit) === 0 ? `!${name}` : name))
        .join('&'),
    )
    .join(',');
}
