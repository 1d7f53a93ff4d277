/**
 * A packet to be built, as data, and the numbers that headers carry. Must never hold bytes of headers: that is the
 * builders' part.
 */

/** An IPv6 extension header, or AH (RFC 4302) in either family, in the order in which they are to stand. */
export interface ExtensionHeader {
  readonly kind: 'hop-by-hop' | 'routing' | 'destination-options' | 'authentication';
}

export type Transport =
  | {
      readonly kind: 'tcp';
      readonly sourcePort: number;
      readonly destinationPort: number;
      readonly flags: number;
      readonly sequence?: number;
      readonly acknowledgement?: number;
      /** Padded to a multiple of 4 with end-of-list octets; at most 40. */
      readonly options?: Uint8Array;
    }
  | {
      readonly kind: 'udp' | 'udplite' | 'sctp' | 'dccp';
      readonly sourcePort: number;
      readonly destinationPort: number;
    }
  /** `identifier` of an echo: both directions' messages have the same. Absent: the packet's `id`. */
  | { readonly kind: 'icmp'; readonly type: number; readonly code: number; readonly identifier?: number }
  /** Any other protocol number: the payload follows the IP header. */
  | { readonly kind: 'raw'; readonly protocol: number };

export interface PacketSpec {
  readonly family: 4 | 6;
  readonly source: bigint;
  readonly destination: bigint;
  readonly sourceHardware: string;
  readonly destinationHardware: string;
  /** IPv4 identification (16 bits) or IPv6 flow label (20 bits): survives the router, whatever the rest is. */
  readonly id: number;
  /** Left to live; 64. */
  readonly hops?: number;
  readonly extensions?: readonly ExtensionHeader[];
  readonly transport: Transport;
  /** IP total length in bytes; the payload is filled up to it. At least the headers' length (the default). */
  readonly totalLength?: number;
  /** What follows the transport's header first; the rest is filled. */
  readonly payload?: Uint8Array;
  /** Cuts the packet off after so many bytes of the IP payload: a transport header that is not there in full. */
  readonly keepPayloadBytes?: number;
  /** Makes this packet one fragment of a datagram that is not there in full: bytes from `offset` (a multiple of 8). */
  readonly fragment?: { readonly offset: number; readonly more: boolean };
}

export const protocolNumber = {
  hopByHop: 0,
  icmp: 1,
  tcp: 6,
  udp: 17,
  dccp: 33,
  routing: 43,
  fragment: 44,
  authentication: 51,
  icmp6: 58,
  destinationOptions: 60,
  sctp: 132,
  mobility: 135,
  udplite: 136,
} as const;

export const extensionNumber: Record<ExtensionHeader['kind'], number> = {
  'hop-by-hop': protocolNumber.hopByHop,
  routing: protocolNumber.routing,
  'destination-options': protocolNumber.destinationOptions,
  authentication: protocolNumber.authentication,
};

export function addressBytes(family: 4 | 6, value: bigint): Uint8Array {
  const bytes = new Uint8Array(family === 4 ? 4 : 16);
  let rest = value;
  for (let i = bytes.length - 1; i >= 0; i--) {
    bytes[i] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return bytes;
}

export function hardwareBytes(text: string): Uint8Array {
  return Uint8Array.from(text.split(':'), (part) => Number.parseInt(part, 16));
}

/** The protocol number that stands before the transport's header. */
export function transportNumber(family: 4 | 6, transport: Transport): number {
  switch (transport.kind) {
    case 'raw':
      return transport.protocol;
    case 'icmp':
      return family === 4 ? protocolNumber.icmp : protocolNumber.icmp6;
    default:
      return protocolNumber[transport.kind];
  }
}
