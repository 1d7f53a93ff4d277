/**
 * Owns the text of a prefix: `address/length`, or an address alone for the single one. Canonical text leaves the
 * length of a single address out. Never guesses: host bits are refused with what was probably meant.
 */
import { quote } from '../problem.ts';
import { type AddressProblemCode, formatAddress, parseAddress } from './address.ts';
import { type Address, type Family, familyBits, type Prefix, prefixOf } from './prefix.ts';

export type PrefixResult =
  | { readonly ok: true; readonly prefix: Prefix }
  /** `sentence` says what was received and what is allowed. */
  | { readonly ok: false; readonly code: PrefixProblemCode; readonly sentence: string };

export type PrefixProblemCode = AddressProblemCode | 'invalid_prefix_length' | 'host_bits_set';

/** Reads an address or a subnet in CIDR form (RFC 4632, 3.1; RFC 4291, 2.3). */
export function parsePrefix(text: string): PrefixResult {
  const slash = text.indexOf('/');
  const read = parseAddress(slash < 0 ? text : text.slice(0, slash));
  if (!read.ok) {
    if (slash < 0) return read;
    const { code, sentence } = read;
    return { ok: false, code, sentence: code === 'ipv4_mapped' ? mappedSentence(text, slash, sentence) : sentence };
  }
  const { address } = read;
  if (slash < 0) return { ok: true, prefix: prefixOf(address) };
  const bits = familyBits(address.family);
  const lengthText = text.slice(slash + 1);
  const length = /^(0|[1-9][0-9]{0,2})$/.test(lengthText) ? Number(lengthText) : Number.NaN;
  if (!(length <= bits)) {
    return {
      ok: false,
      code: 'invalid_prefix_length',
      sentence: `${quote(text)} has no valid prefix length; for IPv${address.family} it is a number from 0 to ${bits}, such as ${example(address.family)}`,
    };
  }
  const prefix = prefixOf(address, length);
  if (prefix.value !== address.value) return { ok: false, code: 'host_bits_set', sentence: hostBits(address, prefix) };
  return { ok: true, prefix };
}

function example(family: Family): string {
  return family === 4 ? '203.0.113.0/24' : '2001:db8::/48';
}

function hostBits(address: Address, prefix: Prefix): string {
  const received = `${formatAddress(address)}/${prefix.length}`;
  const single = `${formatAddress(address)}/${familyBits(address.family)}`;
  return `${received} has host bits set; did you mean ${formatAddress(prefix)}/${prefix.length} or ${single}?`;
}

/** For ::ffff:203.0.113.0/120 the suggestion is a subnet, not an address. */
function mappedSentence(text: string, slash: number, sentence: string): string {
  const length = Number(text.slice(slash + 1)) - 96;
  return length >= 0 && length <= 32 ? sentence.replace(/\?$/, `/${length}?`) : sentence;
}

/** The canonical text: without length for a single address. */
export function formatPrefix(prefix: Prefix): string {
  const address = formatAddress(prefix);
  return prefix.length === familyBits(prefix.family) ? address : `${address}/${prefix.length}`;
}

/** For prefixes that the program itself wrote (rows, state files): a text that is none is a bug, hence the throw. */
export function prefixFromTrusted(text: string): Prefix {
  const read = parsePrefix(text);
  if (!read.ok) throw new Error(`not a prefix: ${read.sentence}`);
  return read.prefix;
}
