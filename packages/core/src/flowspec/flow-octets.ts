/**
 * Compiles what a flowrule matches into the octets of its route (RFC 8955, 4; RFC 8956, 3). One match has one text of
 * octets: values as short as they can be, ranges ascending, components by their numbers. Never looks at what is done
 * with the packets.
 */
import { flowComponents } from '@levee/contract/schemas/flowrule.ts';
import { familyBits, type Prefix } from '../net/prefix.ts';
import type { FlagExpression } from './flag-expression.ts';
import {
  type FlagComponent,
  type FlowComponent,
  type Flowrule,
  type NumberComponent,
  numberKinds,
} from './flowrule.ts';
import type { NumberSet } from './number-set.ts';

/** The destination is component 1, those in contract's list follow in its order. */
const destinationType = 1;
const typeOf = new Map(flowComponents.map((name, index): [FlowComponent, number] => [name, index + 2]));

/** Of an operator (RFC 8955, 4.2.1). */
const END = 0x80;
const AND = 0x40;
/** Of a numeric operator (4.2.1.1). */
const LESS = 0x04;
const GREATER = 0x02;
const EQUAL = 0x01;
/** Of a bitmask operator (4.2.1.2). */
const NOT = 0x02;
const MATCH = 0x01;

/** From this length on a route's length takes two octets (RFC 8955, 4.1). */
const longLength = 240;
export const longestFlow = 4095;

/** The route as it stands in an update, its length before it. Undefined: longer than a route may be. */
export function flowOctets({ dst, source, numbers, flags }: Flowrule): Uint8Array | undefined {
  const octets = [destinationType, ...prefixComponent(dst)];
  for (const name of flowComponents) {
    const type = typeOf.get(name) ?? 0;
    if (name === 'source-prefix') {
      if (source !== undefined) octets.push(type, ...prefixComponent(source));
    } else if (name in numberKinds) {
      const set = numbers[name as NumberComponent];
      if (set !== undefined) octets.push(type, ...numberComponent(set, numberKinds[name as NumberComponent].maximum));
    } else {
      const expression = flags[name as FlagComponent];
      if (expression !== undefined) octets.push(type, ...flagComponent(expression));
    }
  }
  const { length } = octets;
  if (length > longestFlow) return undefined;
  const lengthOctets = length < longLength ? [length] : [0xf0 | (length >> 8), length & 0xff];
  return Uint8Array.from([...lengthOctets, ...octets]);
}

/** As many octets as the length needs (RFC 4271, 4.3). */
export function prefixOctets({ family, value, length }: Prefix): number[] {
  const octets: number[] = [];
  for (let bits = 0; bits < length; bits += 8)
    octets.push(Number((value >> BigInt(familyBits(family) - 8 - bits)) & 0xffn));
  return octets;
}

/** IPv6 has an offset, of which nothing here makes use (RFC 8956, 3.1). */
function prefixComponent(prefix: Prefix): number[] {
  const octets = prefixOctets(prefix);
  return prefix.family === 4 ? [prefix.length, ...octets] : [prefix.length, 0, ...octets];
}

interface Comparison {
  readonly operator: number;
  readonly value: number;
}

function numberComponent(set: NumberSet, maximum: number): number[] {
  const comparisons = set.flatMap(({ start, end }): Comparison[] => {
    if (start === end) return [{ operator: EQUAL, value: start }];
    // Of a range that reaches the bound one comparison is left: all numbers are at least 0.
    if (end === maximum) return [{ operator: GREATER | EQUAL, value: start }];
    if (start === 0) return [{ operator: LESS | EQUAL, value: end }];
    return [
      { operator: GREATER | EQUAL, value: start },
      { operator: AND | LESS | EQUAL, value: end },
    ];
  });
  return comparisonOctets(comparisons);
}

function flagComponent(expression: FlagExpression): number[] {
  const comparisons = expression.flatMap(({ set, unset }): Comparison[] => {
    const isSet = { operator: MATCH, value: set };
    const isUnset = { operator: NOT, value: unset };
    if (unset === 0) return [isSet];
    return set === 0 ? [isUnset] : [isSet, { ...isUnset, operator: AND | NOT }];
  });
  return comparisonOctets(comparisons);
}

function comparisonOctets(comparisons: readonly Comparison[]): number[] {
  return comparisons.flatMap(({ operator, value }, index) => {
    const end = index === comparisons.length - 1 ? END : 0;
    if (value <= 0xff) return [operator | end, value];
    if (value <= 0xffff) return [operator | end | 0x10, value >> 8, value & 0xff];
    return [operator | end | 0x20, value >>> 24, (value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff];
  });
}
