/**
 * Owns what a packet is to the evaluator: the facts about it that a rule may look at, as the router's forward path
 * sees them. Never the bytes.
 *
 * A fact that is absent is not known (nobody told, or the packet does not show it). A condition on an unknown fact
 * does not hold.
 *
 * Fragments. A later fragment (offset above 0) shows neither ports nor flags nor options: these are ignored even when
 * given. Where the router tracks connections it reassembles first: such a packet is described whole, without
 * `fragment`, with the length of the whole, and for IPv6 still with 44 among its extension headers, since
 * `ipv6-frag` asks how it arrived.
 */
import type { Family } from '../net/prefix.ts';
import type { ConnectionState, PacketType } from './rule.ts';

export interface Packet {
  readonly family: Family;
  readonly source: bigint;
  readonly destination: bigint;
  /**
   * IPv4: the header's protocol field. IPv6: the number of the first header that is not one of hop-by-hop (0), routing
   * (43), fragment (44) and destination options (60); 59 where nothing follows. An authentication header (51) is where
   * the walk ends in both families: what it protects is not looked into, so TCP behind it is `ah`, not `tcp`.
   * A later IPv6 fragment shows it only when its fragment header names it directly.
   */
  readonly upperProtocol?: number;
  /**
   * IPv6: which of the headers 0, 43, 44 and 60 the packet shows, also behind an authentication header; of a later
   * fragment those up to 44.
   */
  readonly extensionHeaders: readonly number[];
  readonly fragment?: { readonly offsetBytes: number; readonly more: boolean };
  readonly sourcePort?: number;
  readonly destinationPort?: number;
  /** The 14th octet of the TCP header. */
  readonly tcpFlags?: number;
  /** The first two octets of an ICMP or ICMPv6 message of three at least (RFC 792, RFC 4443). Rules do not look at them; filters do. */
  readonly icmpType?: number;
  readonly icmpCode?: number;
  /** Kinds of the TCP header's options without padding; empty when it has none. */
  readonly tcpOptionKinds?: readonly number[];
  /** IPv4: the total length field. IPv6: the payload length field plus 40. */
  readonly totalLengthBytes?: number;
  /** How the frame was addressed. The router forwards `host` frames only, whatever the rules say. */
  readonly packetType: PacketType;
  /** Absent where the router does not track. A SYN that it keeps from its tracking for a SYN proxy is new. */
  readonly connectionState?: ConnectionState;
  /**
   * What follows the header of UDP, UDP-Lite, TCP, ICMP (of 8 octets) or ICMPv6: empty where the packet ends inside the
   * header, absent in a later fragment. Rules do not look at it; filters do.
   */
  readonly payload?: Uint8Array;
}

/** Whether the transport header lies in this packet. */
export function showsTransportHeader(packet: Packet): boolean {
  return packet.fragment === undefined || packet.fragment.offsetBytes === 0;
}
