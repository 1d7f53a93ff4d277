/**
 * Checksums that packets carry: the Internet checksum (RFC 1071) with its pseudo-headers (RFC 9293, RFC 8200 8.1)
 * and CRC-32C (RFC 9260 appendix A). Owns nothing else.
 */

/** Sum of 16-bit words, not folded; feed it on to add further parts. Parts but the last must be of even length. */
export function sumWords(bytes: Uint8Array, start = 0): number {
  let sum = start;
  const even = bytes.length & ~1;
  for (let i = 0; i < even; i += 2) sum += ((bytes[i] as number) << 8) | (bytes[i + 1] as number);
  if (even !== bytes.length) sum += (bytes[even] as number) << 8;
  return sum;
}

/** One's complement of the folded sum, 0 … 65535. */
export function foldChecksum(sum: number): number {
  let folded = sum;
  while (folded > 0xffff) folded = (folded & 0xffff) + Math.floor(folded / 0x10000);
  return ~folded & 0xffff;
}

/** Pseudo-header of either family; `length` is the upper layer's, `protocol` its number. */
export function pseudoHeaderSum(source: Uint8Array, destination: Uint8Array, protocol: number, length: number): number {
  return sumWords(destination, sumWords(source)) + protocol + Math.floor(length / 0x10000) + (length & 0xffff);
}

const castagnoli = new Uint32Array(256);
for (let n = 0; n < 256; n++) {
  let value = n;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  castagnoli[n] = value >>> 0;
}

export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (castagnoli[(crc ^ byte) & 0xff] as number);
  return (crc ^ 0xffffffff) >>> 0;
}
