/**
 * Owns reading unsigned numbers in network order. Must be handed places whose octets are there: lengths are checked by
 * whoever calls, once for a whole header or record.
 */

export function u8(data: Uint8Array, at: number): number {
  return data[at] as number;
}

export function u16(data: Uint8Array, at: number): number {
  return ((data[at] as number) << 8) | (data[at + 1] as number);
}

export function u32(data: Uint8Array, at: number): number {
  return (
    (((data[at] as number) << 24) |
      ((data[at + 1] as number) << 16) |
      ((data[at + 2] as number) << 8) |
      (data[at + 3] as number)) >>>
    0
  );
}

/** A number of 1 to 8 octets; past 2^53 it is the nearest that a double has. */
export function uint(data: Uint8Array, at: number, length: number): number {
  let value = 0;
  for (let index = 0; index < length; index += 1) value = value * 256 + (data[at + index] as number);
  return value;
}
