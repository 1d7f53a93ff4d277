/**
 * Addresses, prefixes and ranges as values. An address is a family and an unsigned integer (32 or 128 bits);
 * its text form is canonical (RFC 5952 for IPv6).
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
