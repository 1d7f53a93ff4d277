/**
 * Owns who counts as one source, for meters and for memories: an IPv4 address, and of IPv6 a network of 64 bits, which is what one
 * subscriber or one server is given and can take any address from (RFC 4291, 2.5.4; RFC 6177). Decision 0016.
 */
import type { Packet } from '../firewall/packet.ts';
import type { Family } from '../net/prefix.ts';

/** Leading bits of an address that tell sources apart. */
export const sourceBits: Readonly<Record<Family, number>> = { 4: 32, 6: 64 };

const hostBits: Readonly<Record<Family, bigint>> = { 4: 0n, 6: 64n };

/** One text for each source at one destination. */
export function sourceAt({ family, source, destination }: Packet): string {
  return `${family} ${source >> hostBits[family]} ${destination}`;
}
