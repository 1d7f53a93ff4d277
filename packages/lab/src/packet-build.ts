/**
 * Ethernet frames with IPv4 or IPv6 packets, as bytes: extension headers, fragments, transports, any protocol
 * number, a chosen total length, correct checksums. Must never decide what a packet means to a rule.
 */
import { crc32c, foldChecksum, pseudoHeaderSum, sumWords } from './checksum.ts';

/** An IPv6 extension header, or AH (RFC 4302) in either family, in the order in which they are to stand. */
export type ExtensionHeader =
  | { readonly kind: 'hop-by-hop' | 'routing' | 'destination-options' | 'authentication' }
  | { readonly kind: 'mobility' };

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
  | { readonly kind: 'icmp'; readonly type: number; readonly code: number }
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

const extensionNumber: Record<ExtensionHeader['kind'], number> = {
  'hop-by-hop': protocolNumber.hopByHop,
  routing: protocolNumber.routing,
  'destination-options': protocolNumber.destinationOptions,
  authentication: protocolNumber.authentication,
  mobility: protocolNumber.mobility,
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

/** Bytes of IP and transport headers: the least total length that such a packet can have. */
export function leastLength(spec: Pick<PacketSpec, 'family' | 'extensions' | 'transport' | 'fragment'>): number {
  const ip = spec.family === 4 ? 20 : 40 + (spec.fragment ? 8 : 0);
  const extensions = (spec.extensions ?? []).reduce((sum, header) => sum + extensionBytes(header), 0);
  const transport = spec.fragment && spec.fragment.offset > 0 ? 8 : transportHeaderBytes(spec.transport);
  return ip + extensions + transport;
}

/** One frame. */
export function buildFrame(spec: PacketSpec): Uint8Array {
  const least = leastLength(spec);
  const total = spec.totalLength ?? least;
  if (total < least || total > 65535) throw new RangeError(`total length ${total}: headers take ${least} bytes`);
  const extensionLength = (spec.extensions ?? []).reduce((sum, header) => sum + extensionBytes(header), 0);
  const fixed = spec.family === 4 ? 20 : 40 + (spec.fragment ? 8 : 0);
  const payload = buildTransport(spec, total - fixed - extensionLength);
  return assemble(spec, payload, spec.fragment);
}

/**
 * The whole datagram cut into fragments that reassemble to it: `sizes` are the payload bytes of all but the last
 * (multiples of 8).
 */
export function buildFragments(spec: PacketSpec, sizes: readonly number[]): Uint8Array[] {
  if (spec.family === 6 && (spec.extensions?.length ?? 0) > 0) {
    throw new RangeError('extension headers of a fragmented IPv6 datagram are not supported');
  }
  const fixed = spec.family === 4 ? 20 : 40;
  const whole = buildTransport({ ...spec, fragment: undefined }, (spec.totalLength ?? leastLength(spec)) - fixed);
  const frames: Uint8Array[] = [];
  let offset = 0;
  for (const size of [...sizes, whole.length]) {
    const end = Math.min(whole.length, offset + size);
    frames.push(assemble(spec, whole.subarray(offset, end), { offset, more: end < whole.length }));
    offset = end;
    if (end === whole.length) break;
  }
  return frames;
}

function assemble(
  spec: PacketSpec,
  payload: Uint8Array,
  fragment: { readonly offset: number; readonly more: boolean } | undefined,
): Uint8Array {
  const extensions = spec.extensions ?? [];
  const extensionLength = extensions.reduce((sum, header) => sum + extensionBytes(header), 0);
  const fixed = spec.family === 4 ? 20 : 40;
  const fragmentLength = spec.family === 6 && fragment ? 8 : 0;
  const total = fixed + fragmentLength + extensionLength + payload.length;
  const frame = new Uint8Array(14 + total);
  const view = new DataView(frame.buffer);
  frame.set(hardwareBytes(spec.destinationHardware), 0);
  frame.set(hardwareBytes(spec.sourceHardware), 6);
  view.setUint16(12, spec.family === 4 ? 0x0800 : 0x86dd);

  // The chain of numbers: each header names the one after it.
  const numbers = extensions.map((header) => extensionNumber[header.kind]);
  const perFragment =
    spec.family === 6
      ? extensions.findIndex((header) => header.kind !== 'hop-by-hop' && header.kind !== 'routing')
      : -1;
  const before = spec.family === 6 ? (perFragment < 0 ? extensions.length : perFragment) : 0;
  if (fragmentLength > 0) numbers.splice(before, 0, protocolNumber.fragment);
  numbers.push(transportNumber(spec.family, spec.transport));

  const source = addressBytes(spec.family, spec.source);
  const destination = addressBytes(spec.family, spec.destination);
  if (spec.family === 4) {
    view.setUint8(14, 0x45);
    view.setUint16(16, total);
    view.setUint16(18, spec.id & 0xffff);
    view.setUint16(20, fragment ? (fragment.more ? 0x2000 : 0) | (fragment.offset >> 3) : 0);
    view.setUint8(22, spec.hops ?? 64);
    view.setUint8(23, numbers[0] as number);
    frame.set(source, 26);
    frame.set(destination, 30);
    view.setUint16(24, foldChecksum(sumWords(frame.subarray(14, 34))));
  } else {
    view.setUint32(14, 0x60000000 | (spec.id & 0xfffff));
    view.setUint16(18, total - 40);
    view.setUint8(20, numbers[0] as number);
    view.setUint8(21, spec.hops ?? 64);
    frame.set(source, 22);
    frame.set(destination, 38);
  }

  let position = 14 + fixed;
  let index = 0;
  const headers: (ExtensionHeader | 'fragment')[] = [...extensions];
  if (fragmentLength > 0) headers.splice(before, 0, 'fragment');
  for (const header of headers) {
    const next = numbers[++index] as number;
    if (header === 'fragment') {
      view.setUint8(position, next);
      view.setUint16(position + 2, ((fragment?.offset ?? 0) & 0xfff8) | (fragment?.more ? 1 : 0));
      view.setUint32(position + 4, spec.id);
      position += 8;
    } else {
      writeExtension(view, position, header, next, destination);
      position += extensionBytes(header);
    }
  }
  frame.set(payload, position);
  return frame;
}

function extensionBytes(header: ExtensionHeader): number {
  switch (header.kind) {
    case 'routing':
      return 24;
    case 'authentication':
      return 24;
    default:
      return 8;
  }
}

function writeExtension(
  view: DataView,
  at: number,
  header: ExtensionHeader,
  next: number,
  destination: Uint8Array,
): void {
  view.setUint8(at, next);
  switch (header.kind) {
    case 'hop-by-hop':
    case 'destination-options':
      view.setUint8(at + 1, 0);
      view.setUint16(at + 2, 0x0104); // PadN over the remaining six octets
      break;
    case 'routing':
      // Type 2 (RFC 6275), no segment left: a router on the way passes it on.
      view.setUint8(at + 1, 2);
      view.setUint8(at + 2, 2);
      view.setUint8(at + 3, 0);
      for (let i = 0; i < destination.length; i++) view.setUint8(at + 8 + i, destination[i] as number);
      break;
    case 'authentication':
      view.setUint8(at + 1, 4); // (24 / 4) - 2
      view.setUint32(at + 4, 0x1000);
      view.setUint32(at + 8, 1);
      break;
    case 'mobility':
      view.setUint8(at + 1, 0);
      view.setUint8(at + 2, 0); // binding refresh request
      break;
  }
}

function transportHeaderBytes(transport: Transport): number {
  switch (transport.kind) {
    case 'tcp':
      return 20 + (((transport.options?.length ?? 0) + 3) & ~3);
    case 'udp':
    case 'udplite':
    case 'icmp':
      return 8;
    case 'sctp':
      return 16; // common header and an empty chunk
    case 'dccp':
      return 16;
    case 'raw':
      return 0;
  }
}

/** The IP payload of `length` bytes; what of it lies behind `fragment.offset` when that is given. */
function buildTransport(
  spec: Omit<PacketSpec, 'fragment'> & { fragment?: PacketSpec['fragment'] | undefined },
  length: number,
): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = (i * 7 + spec.id) & 0xff;
  if (spec.fragment && spec.fragment.offset > 0) return bytes;
  const view = new DataView(bytes.buffer);
  const { transport } = spec;
  const header = transportHeaderBytes(transport);
  bytes.fill(0, 0, header);
  const pseudo = (): number =>
    pseudoHeaderSum(
      addressBytes(spec.family, spec.source),
      addressBytes(spec.family, spec.destination),
      transportNumber(spec.family, transport),
      length,
    );
  switch (transport.kind) {
    case 'tcp':
      view.setUint16(0, transport.sourcePort);
      view.setUint16(2, transport.destinationPort);
      view.setUint32(4, transport.sequence ?? 0);
      view.setUint32(8, transport.acknowledgement ?? 0);
      view.setUint8(12, (header / 4) << 4);
      view.setUint8(13, transport.flags);
      view.setUint16(14, 64240);
      bytes.set(transport.options ?? [], 20);
      view.setUint16(16, foldChecksum(sumWords(bytes, pseudo())));
      break;
    case 'udp':
      view.setUint16(0, transport.sourcePort);
      view.setUint16(2, transport.destinationPort);
      view.setUint16(4, length);
      view.setUint16(6, foldChecksum(sumWords(bytes, pseudo())) || 0xffff);
      break;
    case 'udplite':
      view.setUint16(0, transport.sourcePort);
      view.setUint16(2, transport.destinationPort);
      view.setUint16(4, 0); // coverage: the whole packet (RFC 3828)
      view.setUint16(6, foldChecksum(sumWords(bytes, pseudo())) || 0xffff);
      break;
    case 'dccp':
      view.setUint16(0, transport.sourcePort);
      view.setUint16(2, transport.destinationPort);
      view.setUint8(4, 4); // data offset in words
      view.setUint8(8, (2 << 1) | 1); // Data, with 48-bit sequence numbers
      view.setUint16(14, spec.id & 0xffff);
      view.setUint16(6, foldChecksum(sumWords(bytes, pseudo())));
      break;
    case 'sctp':
      view.setUint16(0, transport.sourcePort);
      view.setUint16(2, transport.destinationPort);
      view.setUint32(4, spec.id);
      view.setUint8(12, 11); // COOKIE ACK, four bytes
      view.setUint16(14, 4);
      view.setUint32(8, crc32c(bytes), true);
      break;
    case 'icmp':
      view.setUint8(0, transport.type);
      view.setUint8(1, transport.code);
      view.setUint16(4, spec.id & 0xffff);
      view.setUint16(2, foldChecksum(sumWords(bytes, spec.family === 6 ? pseudo() : 0)));
      break;
    case 'raw':
      break;
  }
  return bytes;
}
