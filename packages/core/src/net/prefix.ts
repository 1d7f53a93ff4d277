/**
 * Owns addresses, prefixes and ranges as values, and their algebra. An address is a family and an unsigned integer
 * (32 or 128 bits). Never reads or writes text: that is `address.ts` and `prefix-text.ts`.
 */
export type Family = 4 | 6;

export interface Address {
  readonly family: Family;
  readonly value: bigint;
}

/** `value` has no bit set behind the first `length` ones. */
export interface Prefix {
  readonly family: Family;
  readonly value: bigint;
  readonly length: number;
}

/** Inclusive. */
export interface AddressRange {
  readonly family: Family;
  readonly start: bigint;
  readonly end: bigint;
}

/** Bits of an address of the family. */
export function familyBits(family: Family): 32 | 128 {
  return family === 4 ? 32 : 128;
}

/** The bits behind a prefix of that length, all set. */
export function hostMask(family: Family, length: number): bigint {
  return (1n << BigInt(familyBits(family) - length)) - 1n;
}

/** The prefix of that length in which the address lies. */
export function prefixOf(address: Address, length: number = familyBits(address.family)): Prefix {
  return {
    family: address.family,
    value: address.value & ~hostMask(address.family, length),
    length,
  };
}

/** Whether every address of `inner` lies in `outer`; a prefix contains itself. */
export function prefixContains(outer: Prefix, inner: Prefix): boolean {
  return (
    outer.family === inner.family &&
    outer.length <= inner.length &&
    (inner.value & ~hostMask(outer.family, outer.length)) === outer.value
  );
}

export function prefixContainsAddress(prefix: Prefix, address: Address): boolean {
  return prefix.family === address.family && (address.value & ~hostMask(prefix.family, prefix.length)) === prefix.value;
}

/** Prefixes overlap only when one contains the other. */
export function prefixesOverlap(a: Prefix, b: Prefix): boolean {
  return a.length <= b.length ? prefixContains(a, b) : prefixContains(b, a);
}

export function prefixesEqual(a: Prefix, b: Prefix): boolean {
  return a.family === b.family && a.length === b.length && a.value === b.value;
}

/** IPv4 first, then by first address, then the wider one first. */
export function comparePrefixes(a: Prefix, b: Prefix): number {
  return a.family - b.family || (a.value < b.value ? -1 : a.value > b.value ? 1 : a.length - b.length);
}
