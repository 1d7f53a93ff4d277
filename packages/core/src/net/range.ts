/**
 * Owns what lies between ranges of addresses and prefixes: either way, exactly. Never reads text.
 */
import { type Address, type AddressRange, familyBits, hostMask, type Prefix } from './prefix.ts';

export function rangeOfPrefix(prefix: Prefix): AddressRange {
  return {
    family: prefix.family,
    start: prefix.value,
    end: prefix.value | hostMask(prefix.family, prefix.length),
  };
}

export function rangeContainsAddress(range: AddressRange, address: Address): boolean {
  return range.family === address.family && range.start <= address.value && address.value <= range.end;
}

/** The fewest prefixes that hold exactly the range's addresses, ascending; at most 2 × bits − 2 of them. */
export function prefixesOfRange(range: AddressRange): Prefix[] {
  const bits = familyBits(range.family);
  const prefixes: Prefix[] = [];
  for (let start = range.start; start <= range.end; ) {
    let length = bits;
    while (length > 0) {
      const mask = hostMask(range.family, length - 1);
      if ((start & mask) !== 0n || (start | mask) > range.end) break;
      length -= 1;
    }
    prefixes.push({ family: range.family, value: start, length });
    start = (start | hostMask(range.family, length)) + 1n;
  }
  return prefixes;
}

/** The one prefix that holds exactly these addresses, if there is one. */
export function prefixOfRange(range: AddressRange): Prefix | undefined {
  const prefixes = prefixesOfRange(range);
  return prefixes.length === 1 ? prefixes[0] : undefined;
}
