/** Whether an address is among subnets: a key's sources, trusted proxies. What is no address is among none. */
import { BlockList, isIP, isIPv6 } from 'node:net';

/** `subnets`: addresses, or subnets in CIDR form. */
export function addressList(subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [address = '', length] = subnet.split('/');
    list.addSubnet(address, Number(length ?? (isIPv6(address) ? 128 : 32)), isIPv6(address) ? 'ipv6' : 'ipv4');
  }
  return list;
}

/** IPv4 written as IPv6 (RFC 4291, 2.5.5.2) is IPv4. */
export function withoutMapping(address: string): string {
  return /^::ffff:\d+\./i.test(address) ? address.slice(7) : address;
}

/** Undefined: a peer on a unix socket, which has no address. */
export function isAmong(list: BlockList, given: string | undefined): boolean {
  if (given === undefined || isIP(given) === 0) return false;
  const address = withoutMapping(given);
  return list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
