/**
 * Owns what figures of an attack may be at most. Exporters may claim anything, by sampling rates of 2^32 too: what measures holds
 * its figures to this, and what records refuses others. So nothing that is claimed keeps an attack from being recorded, or from ending.
 */

/** Packets or bits a second: a thousand times the largest exchange there is. */
export const MOST_RATE = 1e15;
/** Of all packets of an attack together, and of all octets. */
export const MOST_COUNTED = Number.MAX_SAFE_INTEGER;
/** Octets of an IP packet: its total length field has 16 bits (RFC 791, 3.1). */
export const LONGEST_PACKET = 65_535;

/** 0 … `most`; what is no number is 0. */
export function bounded(value: number, most: number): number {
  return value > 0 ? Math.min(value, most) : 0;
}
