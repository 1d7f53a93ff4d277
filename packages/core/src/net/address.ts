/**
 * Owns the text of one address, strictly: what everyone writes and nothing that two programs could read differently.
 * Refused: leading zeros (octal to some), short and hexadecimal IPv4 forms, zone ids, white space, and IPv4-mapped
 * IPv6 (::ffff:0:0/96 never appears in an IPv6 header; the sentence names the IPv4 address that is probably meant).
 * A dotted last part in other IPv6 addresses is read (RFC 4291, 2.2) and written back in hexadecimal.
 * Never touches prefixes.
 *
 * Written by hand because ipaddr.js reads most of what is refused here; the tests hold it to ipaddr.js on the rest.
 */
import { quote } from '../problem.ts';
import type { Address } from './prefix.ts';

export type AddressResult =
  | { readonly ok: true; readonly address: Address }
  /** `sentence` says what was received and what is allowed. */
  | { readonly ok: false; readonly code: AddressProblemCode; readonly sentence: string };

export type AddressProblemCode = 'invalid_address' | 'leading_zero' | 'zone_id' | 'ipv4_mapped';

/** The longest text of an address: eight groups of four with a dotted end. */
const longestAddress = 45;

/** Eight bits of 255 at most; undefined when the text is not four of them in decimal without leading zeros. */
function readDotted(text: string): number | undefined {
  const parts = text.split('.', 5);
  if (parts.length !== 4) return undefined;
  let value = 0;
  for (const part of parts) {
    if (!/^(0|[1-9][0-9]{0,2})$/.test(part)) return undefined;
    const octet = Number(part);
    if (octet > 255) return undefined;
    value = value * 256 + octet;
  }
  return value;
}

/** Groups of a half of an IPv6 address, a dotted end counted as two; undefined when malformed. */
function readGroups(text: string, mayEndDotted: boolean): number[] | undefined {
  if (text === '') return [];
  const groups: number[] = [];
  const parts = text.split(':');
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(Number.parseInt(part, 16));
    } else {
      if (!mayEndDotted || index !== parts.length - 1) return undefined;
      const dotted = readDotted(part);
      if (dotted === undefined) return undefined;
      groups.push(Math.floor(dotted / 65536), dotted % 65536);
    }
  }
  return groups;
}

function readIpv6(text: string): bigint | undefined {
  const halves = text.split('::', 3);
  if (halves.length > 2) return undefined;
  const [headText = '', tailText] = halves;
  const head = readGroups(headText, tailText === undefined);
  const tail = tailText === undefined ? [] : readGroups(tailText, true);
  if (head === undefined || tail === undefined) return undefined;
  const missing = 8 - head.length - tail.length;
  // "::" stands for at least one group (RFC 4291 reads it so; RFC 5952 forbids writing it for one).
  if (tailText === undefined ? missing !== 0 : missing < 1) return undefined;
  let value = 0n;
  for (const group of head) value = (value << 16n) | BigInt(group);
  value <<= BigInt(16 * missing);
  for (const group of tail) value = (value << 16n) | BigInt(group);
  return value;
}

function refused(code: AddressProblemCode, sentence: string): AddressResult {
  return { ok: false, code, sentence };
}

/** Reads one IPv4 or IPv6 address without a length. */
export function parseAddress(text: string): AddressResult {
  const allowed = 'must be one IPv4 or IPv6 address, such as 203.0.113.7 or 2001:db8::7';
  if (text.length > longestAddress && !text.includes('%')) {
    return refused('invalid_address', `${quote(text)} is too long to be an address; ${allowed}`);
  }
  if (!text.includes(':')) {
    const value = readDotted(text);
    if (value !== undefined) return { ok: true, address: { family: 4, value: BigInt(value) } };
    const withoutZeros = text.replace(/(^|\.)0+(?=[0-9])/g, '$1');
    if (withoutZeros !== text && readDotted(withoutZeros) !== undefined) {
      return refused(
        'leading_zero',
        `${quote(text)} has a part with a leading zero, which some programs read as octal; did you mean ${withoutZeros}?`,
      );
    }
    return refused('invalid_address', `${quote(text)} is no address; ${allowed}`);
  }
  if (text.includes('%')) {
    return refused('zone_id', `${quote(text)} has a zone id (after %), which means nothing on a router; ${allowed}`);
  }
  const value = readIpv6(text);
  if (value === undefined) return refused('invalid_address', `${quote(text)} is no address; ${allowed}`);
  if (value >> 32n === 0xffffn) {
    return refused(
      'ipv4_mapped',
      `${quote(text)} is an IPv4-mapped address, which no packet carries; did you mean ${formatDotted(value & 0xffffffffn)}?`,
    );
  }
  return { ok: true, address: { family: 6, value } };
}

function formatDotted(value: bigint): string {
  const number = Number(value);
  return `${number >>> 24}.${(number >>> 16) & 255}.${(number >>> 8) & 255}.${number & 255}`;
}

/** RFC 5952, 4: lower case, no leading zeros, `::` for the first longest run of at least two zero groups. */
function formatIpv6(value: bigint): string {
  const groups: number[] = [];
  for (const half of [value >> 64n, value & 0xffffffffffffffffn]) {
    for (const word of [Number(half >> 32n), Number(half & 0xffffffffn)]) groups.push(word >>> 16, word & 0xffff);
  }
  let runStart = -1;
  let runLength = 1;
  for (let index = 0; index < 8; index += 1) {
    let end = index;
    while (end < 8 && groups[end] === 0) end += 1;
    if (end - index > runLength) {
      runStart = index;
      runLength = end - index;
    }
    if (end > index) index = end;
  }
  const text = (from: number, to: number) =>
    groups
      .slice(from, to)
      .map((group) => group.toString(16))
      .join(':');
  return runStart < 0 ? text(0, 8) : `${text(0, runStart)}::${text(runStart + runLength, 8)}`;
}

/** The canonical text. */
export function formatAddress(address: Address): string {
  return address.family === 4 ? formatDotted(address.value) : formatIpv6(address.value);
}
