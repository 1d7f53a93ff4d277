/** ICMP and ICMPv6 echo messages as octets (RFC 792, RFC 4443 4.1). Owns their layout; knows no sockets. */
import type { Family } from '@levee/core/net/prefix.ts';

export interface Echo {
  /** 16 bits. */
  readonly sequence: number;
  readonly payload: Buffer;
}

const requestType: Readonly<Record<Family, number>> = { 4: 8, 6: 128 };
const replyType: Readonly<Record<Family, number>> = { 4: 0, 6: 129 };
const headerBytes = 8;

/** ICMPv6's checksum covers addresses, so that the kernel puts it in. */
export function writeRequest(family: Family, identifier: number, { sequence, payload }: Echo): Buffer {
  const message = Buffer.alloc(headerBytes + payload.length);
  message[0] = requestType[family];
  message.writeUInt16BE(identifier, 4);
  message.writeUInt16BE(sequence, 6);
  payload.copy(message, headerBytes);
  if (family === 4) message.writeUInt16BE(checksumOf(message), 2);
  return message;
}

/** Undefined: no echo reply. `withHeader`: an IPv4 header comes first. */
export function readReply(family: Family, bytes: Buffer, withHeader: boolean): Echo | undefined {
  const start = withHeader ? ((bytes[0] ?? 0) & 15) * 4 : 0;
  const message = bytes.subarray(start);
  if (message.length < headerBytes || message[0] !== replyType[family] || message[1] !== 0) return undefined;
  return { sequence: message.readUInt16BE(6), payload: message.subarray(headerBytes) };
}

/** RFC 1071. */
export function checksumOf(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
