/** Reads octets of a payload for a kind's meaning. Whatever lies beyond the end is undefined, and equals nothing. */

/** Network order; undefined when they are not all there. At most six octets. */
export function octetsAt(payload: Uint8Array, at: number, count: number): number | undefined {
  if (at + count > payload.length) return undefined;
  let value = 0;
  for (let index = at; index < at + count; index += 1) value = value * 256 + (payload[index] ?? 0);
  return value;
}

export function holdsAt(payload: Uint8Array, at: number, wanted: Uint8Array | readonly number[]): boolean {
  if (at + wanted.length > payload.length) return false;
  for (const [index, octet] of wanted.entries()) if (payload[at + index] !== octet) return false;
  return true;
}
