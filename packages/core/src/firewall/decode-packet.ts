/**
 * Owns the reading of a packet's bytes, from the IP header on, into the facts that rules look at, as a Linux router's
 * forward path reads them. Never judges whether a host would accept the packet, never throws.
 *
 * Sources: RFC 791, RFC 8200 (with RFC 6564's form for all extension headers), RFC 4302, RFC 9293; where they leave a
 * walk open, what kernel 6.18 was seen to do (decision 0012).
 */
import { protocolNumbers } from '@levee/contract/protocols.ts';
import type { Family } from '../net/prefix.ts';
import type { Packet } from './packet.ts';
import { portTransportNumbers } from './protocol-traits.ts';
import type { ConnectionState, PacketType } from './rule.ts';

export type DecodedPacket =
  | { readonly ok: true; readonly packet: Packet }
  /** What a router would not forward as IP at all. */
  | { readonly ok: false; readonly reason: 'no_ip_version' | 'truncated' | 'malformed_header' };

/** What the bytes do not say. */
export interface PacketSurroundings {
  readonly packetType: PacketType;
  readonly connectionState?: ConnectionState;
}

/** Bytes behind the length that the IP header states (padding of the link) are ignored. */
export function decodePacket(bytes: Uint8Array, surroundings: PacketSurroundings): DecodedPacket {
  return decode(bytes, surroundings);
}

export type DecodedSample =
  | {
      readonly ok: true;
      /** What lies behind the sample is left out, as every fact that is not known. */
      readonly packet: Packet;
      /** The packet is longer than what was sampled of it. */
      readonly isCut: boolean;
      /** It is cut before the header that ends the walk over IPv6's extension headers. */
      readonly lacksHeaders: boolean;
    }
  | Extract<DecodedPacket, { readonly ok: false }>;

/**
 * The first bytes of a packet, as an exporter sampled them. `lengthBytes`: the IP total length that it had. A cut payload is none:
 * what judges payloads takes them for whole.
 */
export function decodeSample(bytes: Uint8Array, lengthBytes: number, surroundings: PacketSurroundings): DecodedSample {
  const decoded = decode(bytes, surroundings, lengthBytes);
  if (!decoded.ok) return decoded;
  const { payload, ...facts } = decoded.packet;
  const isCut = bytes.length < lengthBytes;
  const lacksHeaders = isCut && facts.family === 6 && walkHeaders(bytes).endsEarly;
  return { ok: true, packet: isCut ? facts : decoded.packet, isCut, lacksHeaders };
}

/** `sampledLength`: the bytes may be fewer, and this is how many there were. */
function decode(bytes: Uint8Array, surroundings: PacketSurroundings, sampledLength?: number): DecodedPacket {
  const version = (bytes[0] ?? 0) >>> 4;
  if (version === 4) return decodeIpv4(bytes, surroundings, sampledLength);
  if (version === 6) return decodeIpv6(bytes, surroundings, sampledLength);
  return { ok: false, reason: 'no_ip_version' };
}

const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function decodeIpv4(bytes: Uint8Array, surroundings: PacketSurroundings, sampledLength?: number): DecodedPacket {
  if (bytes.length < 20) return { ok: false, reason: 'truncated' };
  const view = viewOf(bytes);
  const headerLength = (view.getUint8(0) & 15) * 4;
  const totalLength = sampledLength ?? view.getUint16(2);
  if (headerLength < 20 || totalLength < headerLength) return { ok: false, reason: 'malformed_header' };
  if (sampledLength === undefined && bytes.length < totalLength) return { ok: false, reason: 'truncated' };
  const fragmentField = view.getUint16(6);
  const fragment = { offsetBytes: (fragmentField & 0x1fff) * 8, more: (fragmentField & 0x2000) !== 0 };
  const upperProtocol = view.getUint8(9);
  return {
    ok: true,
    packet: {
      family: 4,
      source: BigInt(view.getUint32(12)),
      destination: BigInt(view.getUint32(16)),
      upperProtocol,
      extensionHeaders: [],
      ...((fragment.offsetBytes > 0 || fragment.more) && { fragment }),
      ...(fragment.offsetBytes === 0 && transportFacts(4, upperProtocol, bytes.subarray(headerLength, totalLength))),
      totalLengthBytes: totalLength,
      ...surroundings,
    },
  };
}

function decodeIpv6(bytes: Uint8Array, surroundings: PacketSurroundings, sampledLength?: number): DecodedPacket {
  if (bytes.length < 40) return { ok: false, reason: 'truncated' };
  const view = viewOf(bytes);
  const totalLength = sampledLength ?? view.getUint16(4) + 40;
  if (sampledLength === undefined && bytes.length < totalLength) return { ok: false, reason: 'truncated' };
  const { extensionHeaders, upperProtocol, transportAt, fragment } = walkHeaders(bytes.subarray(0, totalLength));
  const address = (at: number) => (view.getBigUint64(at) << 64n) | view.getBigUint64(at + 8);
  return {
    ok: true,
    packet: {
      family: 6,
      source: address(8),
      destination: address(24),
      ...(upperProtocol !== undefined && { upperProtocol }),
      extensionHeaders,
      ...(fragment && { fragment }),
      ...(upperProtocol !== undefined &&
        transportAt !== undefined &&
        transportFacts(6, upperProtocol, bytes.subarray(transportAt, totalLength))),
      totalLengthBytes: totalLength,
      ...surroundings,
    },
  };
}

interface HeaderWalk {
  readonly extensionHeaders: readonly number[];
  readonly upperProtocol?: number;
  /** Where the upper protocol's header begins; absent in a later fragment and behind an authentication header. */
  readonly transportAt?: number;
  readonly fragment?: { readonly offsetBytes: number; readonly more: boolean };
  /** The bytes end inside a header of which more follows. */
  readonly endsEarly: boolean;
}

const { hopopt, 'ipv6-route': routing, 'ipv6-frag': fragmentHeader, 'ipv6-opts': options, ah } = protocolNumbers;

function isWalkable(header: number): boolean {
  return header === hopopt || header === routing || header === fragmentHeader || header === options || header === ah;
}

/** A header of which the packet ends too early to know what follows shows nothing, itself included. */
function walkHeaders(bytes: Uint8Array): HeaderWalk {
  const view = viewOf(bytes);
  const extensionHeaders: number[] = [];
  let authenticated = false;
  let fragment: HeaderWalk['fragment'];
  const done = (upperProtocol?: number, transportAt?: number, endsEarly = false): HeaderWalk => {
    const shown = authenticated ? (ah ?? undefined) : upperProtocol;
    return {
      extensionHeaders,
      ...(shown !== undefined && { upperProtocol: shown }),
      ...(transportAt !== undefined && !authenticated && { transportAt }),
      ...(fragment && { fragment }),
      endsEarly,
    };
  };
  let at = 40;
  let header = view.getUint8(6);
  for (;;) {
    if (!isWalkable(header)) return done(header, at);
    if (at + (header === fragmentHeader || header === routing ? 4 : 2) > bytes.length)
      return done(undefined, undefined, true);
    if (header === ah) authenticated = true;
    else extensionHeaders.push(header);
    const following = view.getUint8(at);
    if (header === fragmentHeader) {
      const field = view.getUint16(at + 2);
      const offsetBytes = field & 0xfff8;
      // An atomic fragment (RFC 6946) is whole: only the header's presence tells of it.
      if (offsetBytes > 0 || (field & 1) !== 0) fragment = { offsetBytes, more: (field & 1) !== 0 };
      if (offsetBytes > 0) {
        // `ah` is asked for by what names it, and the fragment header does.
        return isWalkable(following) && following !== ah ? done() : done(following);
      }
      at += 8;
    } else {
      const length = view.getUint8(at + 1);
      at += header === ah ? (length + 2) * 4 : (length + 1) * 8;
    }
    header = following;
  }
}

type TransportFacts = Pick<
  Packet,
  'sourcePort' | 'destinationPort' | 'tcpFlags' | 'tcpOptionKinds' | 'icmpType' | 'icmpCode' | 'payload'
>;

const minimalTcpHeaderBytes = 20;
/** Of UDP, UDP-Lite, and what all ICMP messages have in common. */
const shortHeaderBytes = 8;

/** A field is shown when the packet reaches over it, even where the header is cut short behind. */
function transportFacts(family: Family, protocol: number, bytes: Uint8Array): TransportFacts {
  if (protocol === protocolNumbers[family === 4 ? 'icmp' : 'ipv6-icmp']) return icmpFacts(bytes);
  if (!portTransportNumbers.includes(protocol)) return {};
  const view = viewOf(bytes);
  return {
    // Three: the loads with which the kernel asks about fragments take no fewer (decision 0012).
    ...(bytes.length >= 3 && { sourcePort: view.getUint16(0) }),
    ...(bytes.length >= 4 && { destinationPort: view.getUint16(2) }),
    ...(protocol === protocolNumbers.tcp && tcpFacts(bytes)),
    ...((protocol === protocolNumbers.udp || protocol === protocolNumbers.udplite) && {
      payload: bytes.subarray(shortHeaderBytes),
    }),
  };
}

function icmpFacts(bytes: Uint8Array): TransportFacts {
  const [type, code] = bytes;
  const payload = bytes.subarray(shortHeaderBytes);
  // Three octets are what is loaded, as of ports.
  if (type === undefined || code === undefined || bytes.length < 3) return { payload };
  return { icmpType: type, icmpCode: code, payload };
}

function tcpFacts(bytes: Uint8Array): TransportFacts {
  const flags = bytes[13];
  if (flags === undefined) return { payload: bytes.subarray(bytes.length) };
  const headerLength = ((bytes[12] ?? 0) >>> 4) * 4;
  if (headerLength < minimalTcpHeaderBytes || headerLength > bytes.length) {
    return { tcpFlags: flags, payload: bytes.subarray(bytes.length) };
  }
  return {
    tcpFlags: flags,
    tcpOptionKinds: optionKinds(bytes.subarray(minimalTcpHeaderBytes, headerLength)),
    payload: bytes.subarray(headerLength),
  };
}

/**
 * The kernel's walk, which is laxer than RFC 9293, 3.1: the end of list (kind 0) is stepped over like padding, and so
 * is an option that states the length 0. An option that would reach beyond the header does not count.
 */
function optionKinds(options: Uint8Array): number[] {
  const kinds: number[] = [];
  for (let at = 0; at < options.length - 1; ) {
    const [kind = 0, stated = 0] = options.subarray(at, at + 2);
    const length = kind <= 1 || stated === 0 ? 1 : stated;
    if (kind > 1 && at + length <= options.length) kinds.push(kind);
    at += length;
  }
  return kinds;
}
