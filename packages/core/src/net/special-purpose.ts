/**
 * Owns which addresses are no public unicast ones, and what they are for instead (IANA's registries of special-purpose
 * addresses: RFC 6890 and its successors; RFC 4291 for IPv6 outside 2000::/3). Documentation ranges count as public:
 * examples and tests are written in them, and nobody routes them. Never reads text.
 */
import { type Address, type Family, type Prefix, prefixContainsAddress } from './prefix.ts';
import { prefixFromTrusted } from './prefix-text.ts';

interface Range {
  readonly prefix: Prefix;
  /** Follows "is". */
  readonly words: string;
}

const range = (text: string, words: string): Range => ({ prefix: prefixFromTrusted(text), words });

/** The narrower ones first: the first that holds the address names it. */
const ranges: Readonly<Record<Family, readonly Range[]>> = {
  4: [
    range('0.0.0.0', 'the unspecified address'),
    range('0.0.0.0/8', 'an address of "this network" (0.0.0.0/8)'),
    range('10.0.0.0/8', 'a private address (10.0.0.0/8)'),
    range('100.64.0.0/10', 'an address behind carrier-grade NAT (100.64.0.0/10)'),
    range('127.0.0.0/8', 'a loopback address (127.0.0.0/8)'),
    range('169.254.0.0/16', 'a link-local address (169.254.0.0/16)'),
    range('172.16.0.0/12', 'a private address (172.16.0.0/12)'),
    range('192.0.0.0/24', 'set aside for protocols (192.0.0.0/24)'),
    range('192.88.99.0/24', 'a 6to4 relay address (192.88.99.0/24)'),
    range('192.168.0.0/16', 'a private address (192.168.0.0/16)'),
    range('198.18.0.0/15', 'set aside for benchmarks (198.18.0.0/15)'),
    range('224.0.0.0/4', 'a multicast address (224.0.0.0/4)'),
    range('255.255.255.255', 'the broadcast address'),
    range('240.0.0.0/4', 'a reserved address (240.0.0.0/4)'),
  ],
  6: [
    range('::', 'the unspecified address'),
    range('::1', 'the loopback address'),
    range('64:ff9b::/96', 'an address of NAT64 (64:ff9b::/96)'),
    range('64:ff9b:1::/48', 'an address of local NAT64 (64:ff9b:1::/48)'),
    range('100::/64', 'an address that is discarded (100::/64)'),
    range('2001::/32', 'a Teredo address (2001::/32)'),
    range('2001::/23', 'set aside for protocols (2001::/23)'),
    range('2002::/16', 'a 6to4 address (2002::/16)'),
    range('fc00::/7', 'a unique local address (fc00::/7)'),
    range('fe80::/10', 'a link-local address (fe80::/10)'),
    range('fec0::/10', 'a site-local address (fec0::/10)'),
    range('ff00::/8', 'a multicast address (ff00::/8)'),
  ],
};

const globalUnicast = prefixFromTrusted('2000::/3');

/** What the address is instead of a public unicast one, to follow "is"; undefined: it is one. */
export function specialPurposeOf(address: Address): string | undefined {
  const found = ranges[address.family].find(({ prefix }) => prefixContainsAddress(prefix, address));
  if (found !== undefined) return found.words;
  const isGlobal = address.family === 4 || prefixContainsAddress(globalUnicast, address);
  return isGlobal ? undefined : 'outside global unicast space (2000::/3)';
}

const senderless = ['0.0.0.0/8', '224.0.0.0/4', '240.0.0.0/4', '::', 'ff00::/8'].map((text) => prefixFromTrusted(text));

/** What the address is, to follow "is", where no packet can come from it (RFC 1122, 3.2.1.3; RFC 4291, 2.7). */
export function senderlessOf(address: Address): string | undefined {
  return senderless.some((prefix) => prefixContainsAddress(prefix, address)) ? specialPurposeOf(address) : undefined;
}
