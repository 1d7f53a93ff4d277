/**
 * Owns the kinds of attack traffic: their names, their fixed order, and to which of them a packet belongs. Every packet
 * is of exactly one of the first twelve; `total` is all of them together. Never looks at rates.
 */

import { vectorNames } from '@levee/contract/schemas/detection.ts';

/** The position of a name is its number in slots and tables. */
export const vectors = vectorNames;

export type Vector = (typeof vectors)[number];

export const vectorCount = vectors.length;
export const TOTAL = vectors.indexOf('total');

const numbers = Object.fromEntries(vectors.map((name, number) => [name, number])) as Record<Vector, number>;

export function vectorNumber(name: Vector): number {
  return numbers[name];
}

/**
 * Services that answer with more than they were asked, by the UDP port that they answer from: chargen, DNS, portmap, NTP,
 * NetBIOS, SNMP, CLDAP, RIP, SQL Server's resolver, SSDP, ARD, WS-Discovery, mDNS, CoAP, Ubiquiti's discovery, memcached, Quake 3, Plex,
 * Jenkins and others that reflectors were found on.
 */
export const amplifierPorts: readonly number[] = [
  19, 53, 111, 123, 137, 161, 389, 427, 520, 1434, 1900, 3283, 3702, 5353, 5683, 10001, 11211, 27960, 32414, 37810,
];

const isAmplifier = new Uint8Array(65536);
for (const port of amplifierPorts) isAmplifier[port] = 1;

const FIN = 1;
const SYN = 2;
const RST = 4;
const PSH = 8;
const ACK = 16;

/**
 * The number of the vector of one packet, or of packets alike. `isFragment`: a later fragment, or a first one that more follow.
 * `tcpFlags`: the 14th octet of the TCP header; of a flow record (`isFlow`), what its packets had together: there a connection that
 * was opened, or reset after it carried data, is established traffic.
 */
export function classify(
  protocol: number,
  sourcePort: number,
  tcpFlags: number,
  isFragment: boolean,
  isFlow: boolean,
): number {
  if (isFragment) return 9;
  switch (protocol) {
    case 6:
      if ((tcpFlags & SYN) !== 0) {
        if ((tcpFlags & ACK) === 0) return (tcpFlags & (FIN | RST)) === 0 ? 1 : 5;
        return isFlow && (tcpFlags & ~(SYN | ACK)) !== 0 ? 3 : 2;
      }
      if ((tcpFlags & RST) !== 0) return isFlow && (tcpFlags & PSH) !== 0 ? 3 : 4;
      return (tcpFlags & ACK) !== 0 ? 3 : 5;
    case 17:
      return isAmplifier[sourcePort] === 1 ? 0 : 10;
    case 1:
    case 58:
      return 6;
    case 47:
      return 7;
    case 50:
      return 8;
    default:
      return 11;
  }
}
