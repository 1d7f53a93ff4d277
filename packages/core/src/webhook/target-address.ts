/**
 * Owns which addresses a webhook may reach: public unicast ones, and those that the operator allowed. Everything that
 * stands for another address (RFC 4291, 2.5.5.2; RFC 6052; RFC 3056) is judged by that one or refused.
 */
import { formatAddress, parseAddress } from '../net/address.ts';
import { type Address, type Prefix, prefixContainsAddress } from '../net/prefix.ts';
import { prefixFromTrusted } from '../net/prefix-text.ts';
import { specialPurposeOf } from '../net/special-purpose.ts';

const nat64 = prefixFromTrusted('64:ff9b::/96');

/** Public by their range, and answered by a cloud's own machinery for the machine that asks. */
const platforms: readonly Prefix[] = ['168.63.129.16'].map(prefixFromTrusted);

/** Why the address is refused, to follow "is"; undefined: it may be reached. `text` is one that a resolver gave. */
export function refusalOf(text: string, allowed: readonly Prefix[]): string | undefined {
  const read = parseAddress(text);
  if (!read.ok) return read.code === 'ipv4_mapped' ? 'an IPv4-mapped address' : 'no address that can be judged';
  const { address } = read;
  if (allowed.some((prefix) => prefixContainsAddress(prefix, address))) return undefined;
  const meant = behindNat64(address);
  if (meant === undefined) {
    const platform = platforms.some((prefix) => prefixContainsAddress(prefix, address));
    return platform ? "an address of a cloud's platform" : specialPurposeOf(address);
  }
  const inner = refusalOf(formatAddress(meant), allowed);
  return inner && `an address of NAT64 for ${formatAddress(meant)}, which is ${inner}`;
}

/** What a network without IPv4 of its own reaches through it (RFC 6052, 2.1). */
function behindNat64(address: Address): Address | undefined {
  return prefixContainsAddress(nat64, address) ? { family: 4, value: address.value & 0xffffffffn } : undefined;
}
