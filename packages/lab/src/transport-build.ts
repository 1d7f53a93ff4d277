/**
 * Transport headers with their payload and correct checksums. Must never know of fragments or IP headers beyond the
 * pseudo-header.
 */
import { crc32c, foldChecksum, pseudoHeaderSum, sumWords } from './checksum.ts';
import { addressBytes, type PacketSpec, type Transport, transportNumber } from './packet-spec.ts';

export function transportHeaderBytes(transport: Transport): number {
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

/** What stands behind the transport's header in a packet of `length` bytes of header and payload. */
export function payloadBytes(spec: PacketSpec, length: number): Uint8Array {
  return buildTransport(spec, length).subarray(transportHeaderBytes(spec.transport));
}

/** Header and payload, `length` bytes in all (at least the header's), with the checksum over the whole. */
export function buildTransport(spec: PacketSpec, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = (i * 7 + spec.id) & 0xff;
  const view = new DataView(bytes.buffer);
  const { transport } = spec;
  const header = transportHeaderBytes(transport);
  bytes.fill(0, 0, header);
  if (spec.payload) bytes.set(spec.payload, header);
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
      view.setUint16(4, (transport.identifier ?? spec.id) & 0xffff);
      view.setUint16(2, foldChecksum(sumWords(bytes, spec.family === 6 ? pseudo() : 0)));
      break;
    case 'raw':
      break;
  }
  return bytes;
}
