/**
 * Owns how large a packet inside a tunnel may be, so that both ends and the customer's hosts agree. A path of 1500 octets
 * outside is assumed: it is what the public internet carries.
 */
import type { Family } from '../net/prefix.ts';
import type { TunnelType } from './tunnel.ts';

export interface TunnelSizes {
  /** Largest IP packet inside, octets. */
  readonly mtu: number;
  /** Largest TCP segment inside IPv4: 20 octets IP and 20 TCP less. */
  readonly mss: number;
  /** Largest TCP segment inside IPv6: 40 octets IP and 20 TCP less. */
  readonly mssIpv6: number;
}

/**
 * What Linux gives the devices, measured; other systems are told the same. GRE: 4 octets and 4 of key behind an IPv4
 * header of 20. Geneve: 8 octets UDP, 8 Geneve and 14 Ethernet behind an IP header of 20 or 40.
 *
 * GRE over IPv6 would have 1452 with a key and no encapsulation limit, 1448 with the limit (8 octets of destination
 * options, RFC 2473, 4.1.1) and no key: 1448 without the limit fits either way, so that both ends are set up without
 * one. A tunnel without key keeps the sizes of one that has it.
 */
const mtus: Readonly<Record<TunnelType, Readonly<Record<Family, number>>>> = {
  GRE: { 4: 1472, 6: 1448 },
  Geneve: { 4: 1450, 6: 1430 },
};

/** `outer`: family of the endpoints. */
export function sizesOf(type: TunnelType, outer: Family): TunnelSizes {
  const mtu = mtus[type][outer];
  return { mtu, mss: mtu - 40, mssIpv6: mtu - 60 };
}
