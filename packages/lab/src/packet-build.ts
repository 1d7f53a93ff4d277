/**
 * Ethernet frames with IPv4 or IPv6 packets, as bytes: extension headers, fragments, transports, any protocol
 * number, a chosen total length, correct checksums. Must never decide what a packet means to a rule.
 */
import { foldChecksum, sumWords } from './checksum.ts';
import {
  addressBytes,
  type ExtensionHeader,
  extensionNumber,
  hardwareBytes,
  type PacketSpec,
  protocolNumber,
  transportNumber,
} from './packet-spec.ts';
import { buildTransport, transportHeaderBytes } from './transport-build.ts';

const ethernetBytes = 14;
const fragmentHeaderBytes = 8;

type Fragment = NonNullable<PacketSpec['fragment']>;

/** Bytes of IP and transport headers: the least total length that such a packet can have. */
export function leastLength(spec: PacketSpec): number {
  const headers = headersOf(spec, spec.fragment);
  return fixedBytes(spec) + headers.length + (isLater(spec.fragment) ? 0 : transportHeaderBytes(spec.transport));
}

/** One frame. */
export function buildFrame(spec: PacketSpec): Uint8Array {
  const least = leastLength(spec);
  const total = spec.totalLength ?? least;
  if (total < least || total > 65535) throw new RangeError(`total length ${total}: headers take ${least} bytes`);
  const room = total - fixedBytes(spec) - headersOf(spec, spec.fragment).length;
  // A later fragment's bytes come from further inside the datagram: any will do.
  const payload = isLater(spec.fragment)
    ? Uint8Array.from({ length: room }, (_, index) => (index * 7 + spec.id) & 0xff)
    : buildTransport(spec, room);
  return assemble(spec, payload.subarray(0, spec.keepPayloadBytes ?? payload.length), spec.fragment);
}

/**
 * The whole datagram cut into fragments that reassemble to it: `sizes` are the payload bytes of all but the last
 * (multiples of 8). Without extension headers.
 */
export function buildFragments(spec: PacketSpec, sizes: readonly number[]): Uint8Array[] {
  if ((spec.extensions?.length ?? 0) > 0) throw new RangeError('a datagram with extension headers is not cut');
  const total = spec.totalLength ?? fixedBytes(spec) + transportHeaderBytes(spec.transport);
  const whole = buildTransport(spec, total - fixedBytes(spec));
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

function fixedBytes(spec: PacketSpec): number {
  return spec.family === 4 ? 20 : 40;
}

function isLater(fragment: Fragment | undefined): boolean {
  return fragment !== undefined && fragment.offset > 0;
}

function assemble(spec: PacketSpec, payload: Uint8Array, fragment: Fragment | undefined): Uint8Array {
  const headers = headersOf(spec, fragment);
  const fixed = fixedBytes(spec);
  const total = fixed + headers.length + payload.length;
  const frame = new Uint8Array(ethernetBytes + total);
  const view = new DataView(frame.buffer);
  frame.set(hardwareBytes(spec.destinationHardware), 0);
  frame.set(hardwareBytes(spec.sourceHardware), 6);
  view.setUint16(12, spec.family === 4 ? 0x0800 : 0x86dd);
  const first = numbersOf(spec, fragment)[0] as number;
  const source = addressBytes(spec.family, spec.source);
  const destination = addressBytes(spec.family, spec.destination);
  if (spec.family === 4) {
    view.setUint8(14, 0x45);
    view.setUint16(16, total);
    view.setUint16(18, spec.id & 0xffff);
    view.setUint16(20, fragment ? (fragment.more ? 0x2000 : 0) | (fragment.offset >> 3) : 0);
    view.setUint8(22, spec.hops ?? 64);
    view.setUint8(23, first);
    frame.set(source, 26);
    frame.set(destination, 30);
    view.setUint16(24, foldChecksum(sumWords(frame.subarray(14, 34))));
  } else {
    view.setUint32(14, 0x60000000 | (spec.id & 0xfffff));
    view.setUint16(18, total - 40);
    view.setUint8(20, first);
    view.setUint8(21, spec.hops ?? 64);
    frame.set(source, 22);
    frame.set(destination, 38);
  }
  frame.set(headers, ethernetBytes + fixed);
  frame.set(payload, ethernetBytes + fixed + headers.length);
  return frame;
}

/**
 * The headers between IP's own and the transport, in order. What stands before IPv6's fragment header is in every
 * fragment (RFC 8200, 4.5); what stands behind it belongs to the datagram and so to its first fragment only.
 */
function layersOf(spec: PacketSpec, fragment: Fragment | undefined): (ExtensionHeader | 'fragment')[] {
  const extensions = spec.extensions ?? [];
  if (spec.family === 4 || fragment === undefined) return [...extensions];
  const inEvery = (header: ExtensionHeader): boolean => header.kind === 'hop-by-hop' || header.kind === 'routing';
  return [...extensions.filter(inEvery), 'fragment', ...extensions.filter((header) => !inEvery(header))];
}

/** Each header's number in that order, then the transport's: each header names the one after it. */
function numbersOf(spec: PacketSpec, fragment: Fragment | undefined): number[] {
  const numbers = layersOf(spec, fragment).map((layer) =>
    layer === 'fragment' ? protocolNumber.fragment : extensionNumber[layer.kind],
  );
  return [...numbers, transportNumber(spec.family, spec.transport)];
}

function headersOf(spec: PacketSpec, fragment: Fragment | undefined): Uint8Array {
  const numbers = numbersOf(spec, fragment);
  const parts: Uint8Array[] = [];
  for (const [index, layer] of layersOf(spec, fragment).entries()) {
    const next = numbers[index + 1] as number;
    if (layer !== 'fragment') {
      parts.push(extensionBytes(spec, layer, next));
      continue;
    }
    const header = new DataView(new ArrayBuffer(fragmentHeaderBytes));
    header.setUint8(0, next);
    header.setUint16(2, ((fragment?.offset ?? 0) & 0xfff8) | (fragment?.more ? 1 : 0));
    header.setUint32(4, spec.id);
    parts.push(new Uint8Array(header.buffer));
    if (isLater(fragment)) break;
  }
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return bytes;
}

function extensionBytes(spec: PacketSpec, header: ExtensionHeader, next: number): Uint8Array {
  switch (header.kind) {
    case 'hop-by-hop':
    case 'destination-options':
      return Uint8Array.of(next, 0, 1, 4, 0, 0, 0, 0); // PadN over the remaining six octets
    case 'routing':
      // Type 2 (RFC 6275) with no segment left: a router on the way passes it on.
      return Uint8Array.of(next, 2, 2, 0, 0, 0, 0, 0, ...addressBytes(6, spec.destination));
    case 'authentication':
      // RFC 4302: length in words less 2, SPI, sequence number, twelve octets of check value.
      return Uint8Array.of(next, 4, 0, 0, 0, 0, 16, 0, 0, 0, 0, 1, ...new Uint8Array(12));
  }
}
