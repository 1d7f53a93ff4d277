/**
 * Owns the customer's end as configuration of Cisco IOS XE: a tunnel interface and policy-based routing. There is no
 * Geneve between routers. Sources: "Implementing Tunnels" and "Policy-Based Routing" in the vendor's configuration guides.
 */

import { formatAddress } from '../../net/address.ts';
import type { Prefix } from '../../net/prefix.ts';
import { hostMask } from '../../net/prefix.ts';
import {
  type ConfigEnd,
  type ConfigTunnel,
  type ConfigWriter,
  commentLines,
  notesOf,
  subnetsOf,
  titleOf,
} from './config-tunnel.ts';
import { cidr } from './linux.ts';

export const ios: ConfigWriter = {
  lacks: ({ type }) => (type === 'Geneve' ? 'ends no Geneve tunnels' : undefined),
  write(tunnel) {
    const name = nameOf(tunnel);
    const v4 = subnetsOf(tunnel, 4);
    const v6 = subnetsOf(tunnel, 6);
    const notes = [
      ...titleOf(tunnel),
      'For configure terminal. Replies are sent back by a route map, which belongs on each interface behind which ips lie:',
      ...(v4.length > 0 ? [`  ip policy route-map ${name}`] : []),
      ...(v6.length > 0 ? [`  ipv6 policy route-map ${name}-V6`] : []),
      'Where the router itself has addresses of ips: the same route map, with ip local policy or ipv6 local policy.',
      '"default" in the route maps leaves what a route other than the default one leads to as it is; with a full table',
      'leave the word out.',
      ...notesOf(tunnel),
    ];
    return [
      ...commentLines('!', notes),
      ...tunnel.ends.flatMap((end) => device(tunnel, end)),
      ...(v4.length > 0 ? repliesIpv4(tunnel, v4) : []),
      ...(v6.length > 0 ? repliesIpv6(tunnel, v6) : []),
      'end',
      '',
    ].join('\n');
  },
};

function nameOf(tunnel: ConfigTunnel): string {
  return `LEVEE-${tunnel.tableNumber}`;
}

function device({ uuid, endpoint, outer, keyed, sizes }: ConfigTunnel, end: ConfigEnd): readonly string[] {
  return [
    `interface Tunnel${end.number}`,
    ` description ${uuid} to ${end.router}`,
    ` ip address ${end.inner4.customer} 255.255.255.254`,
    ` ip mtu ${sizes.mtu}`,
    ` ip tcp adjust-mss ${sizes.mss}`,
    ` ipv6 address ${end.inner6.customer}/127`,
    ` ipv6 mtu ${sizes.mtu}`,
    ` ipv6 tcp adjust-mss ${sizes.mssIpv6}`,
    ` tunnel source ${endpoint}`,
    ` tunnel destination ${end.address}`,
    ` tunnel mode gre ${outer === 4 ? 'ip' : 'ipv6'}`,
    ...(keyed ? [` tunnel key ${end.number}`] : []),
    ...(outer === 4 ? [' tunnel ttl 64'] : []),
    ' no shutdown',
    '!',
  ];
}

function repliesIpv4(tunnel: ConfigTunnel, subnets: readonly Prefix[]): readonly string[] {
  const name = nameOf(tunnel);
  return [
    `ip access-list extended ${name}`,
    ...subnets.map((subnet) => ` permit ip ${withWildcard(subnet)} any`),
    '!',
    `route-map ${name} permit 10`,
    ` match ip address ${name}`,
    ` set ip default next-hop ${tunnel.ends.map((end) => end.inner4.router).join(' ')}`,
    '!',
  ];
}

function repliesIpv6(tunnel: ConfigTunnel, subnets: readonly Prefix[]): readonly string[] {
  const name = `${nameOf(tunnel)}-V6`;
  return [
    `ipv6 access-list ${name}`,
    ...subnets.map((subnet) => ` permit ipv6 ${cidr(subnet)} any`),
    '!',
    `route-map ${name} permit 10`,
    ` match ipv6 address ${name}`,
    ` set ipv6 default next-hop ${tunnel.ends.map((end) => end.inner6.router).join(' ')}`,
    '!',
  ];
}

/** Access lists count the bits that may differ: 0.0.0.15 for a /28. */
function withWildcard(prefix: Prefix): string {
  const { family, length } = prefix;
  return `${formatAddress(prefix)} ${formatAddress({ family, value: hostMask(family, length) })}`;
}
