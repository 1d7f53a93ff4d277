/** Owns what the system tells of a peer: its address in canonical text, and the network that it counts as. */
import { formatAddress, parseAddress } from '@levee/core/net/address.ts';

/** The first 24 bits of an IPv4 address or 56 of an IPv6 one, whose host parts one machine can take at will. */
export type Network = readonly [high: number, low: number];

/** `::ffff:192.0.2.1`, as a socket for both families has it, is 192.0.2.1; the scope of a link-local one goes. */
export function canonicalPeer(address: string): string {
  const bare = bareAddress(address);
  const parsed = parseAddress(bare);
  return parsed.ok ? formatAddress(parsed.address) : bare;
}

export function networkOf(address: string): Network {
  const bare = bareAddress(address);
  if (!bare.includes(':')) {
    const [first = 0, second = 0, third = 0] = bare.split('.', 3).map(Number);
    return [0, (first << 16) | (second << 8) | third];
  }
  const parsed = parseAddress(bare);
  if (!parsed.ok) return [0, 0];
  const { value } = parsed.address;
  // The lowest bit keeps ::/56 apart from 0.0.0.0/24.
  return [Number((value >> 96n) & 0xffff_ffffn) | 0, Number((value >> 72n) & 0xff_ffffn) | 0x100_0000];
}

function bareAddress(address: string): string {
  const bare = address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
  const scope = bare.indexOf('%');
  return scope < 0 ? bare : bare.slice(0, scope);
}
