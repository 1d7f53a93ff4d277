/**
 * Owns the customer's end as set commands of VyOS 1.4. Sources: its interface definitions (interfaces_tunnel,
 * interfaces_geneve, policy_local-route, protocols_static).
 */
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

export const vyos: ConfigWriter = {
  lacks: () => undefined,
  write(tunnel) {
    const notes = [
      ...titleOf(tunnel),
      'For configuration mode; then: commit, save. Change the numbers of tables and rules that are in use already.',
      'Replies to other local networks than ips: add a rule for each, like those with "destination" below.',
      ...notesOf(tunnel),
    ];
    return [
      ...commentLines('#', notes),
      ...tunnel.ends.flatMap((end) => device(tunnel, end)),
      ...([4, 6] as const).flatMap((family) => replies(tunnel, family)),
      '',
    ].join('\n');
  },
};

/** Tables are numbered 1 to 200. */
function tableOf(tunnel: ConfigTunnel): number {
  return 100 + (tunnel.tableNumber % 100);
}

/** Rules end at 32765, before the main table. A tunnel takes as many in a row as it has subnets, 256 at most. */
function firstRules(tunnel: ConfigTunnel): { readonly local: number; readonly tunnel: number } {
  const slot = 256 * (tunnel.tableNumber % 50);
  return { local: 1_000 + slot, tunnel: 15_000 + slot };
}

function device(tunnel: ConfigTunnel, end: ConfigEnd): readonly string[] {
  const { type, outer, keyed, endpoint, sizes } = tunnel;
  const at = `set interfaces ${type === 'GRE' ? `tunnel tun${end.number}` : `geneve gnv${end.number}`}`;
  const own =
    type === 'Geneve'
      ? [`${at} vni '${end.number}'`, `${at} parameters ip ttl '64'`]
      : [
          `${at} encapsulation '${outer === 4 ? 'gre' : 'ip6gre'}'`,
          `${at} source-address '${endpoint}'`,
          ...(keyed ? [`${at} parameters ip key '${end.number}'`] : []),
          ...(outer === 4
            ? [`${at} parameters ip ttl '64'`]
            : [`${at} parameters ipv6 hoplimit '64'`, `${at} parameters ipv6 encaplimit 'none'`]),
        ];
  return [
    `${at} description '${tunnel.uuid} to ${end.router}'`,
    ...own,
    `${at} remote '${end.address}'`,
    `${at} mtu '${sizes.mtu}'`,
    `${at} address '${end.inner4.customer}/31'`,
    `${at} address '${end.inner6.customer}/127'`,
    `${at} ip adjust-mss '${sizes.mss}'`,
    `${at} ipv6 adjust-mss '${sizes.mssIpv6}'`,
  ];
}

function replies(tunnel: ConfigTunnel, family: 4 | 6): readonly string[] {
  const subnets = subnetsOf(tunnel, family);
  if (subnets.length === 0) return [];
  const table = tableOf(tunnel);
  const first = firstRules(tunnel);
  const [route, rule] =
    family === 4
      ? ['route 0.0.0.0/0 next-hop', 'set policy local-route rule']
      : ['route6 ::/0 next-hop', 'set policy local-route6 rule'];
  return [
    ...tunnel.ends.map((end) => {
      const { router } = family === 4 ? end.inner4 : end.inner6;
      return `set protocols static table ${table} ${route} ${router} distance '${1 + end.order}'`;
    }),
    ...subnets.flatMap((subnet, index) => [
      `${rule} ${first.local + index} destination address '${cidr(subnet)}'`,
      `${rule} ${first.local + index} set table 'main'`,
      `${rule} ${first.tunnel + index} source address '${cidr(subnet)}'`,
      `${rule} ${first.tunnel + index} set table '${table}'`,
    ]),
  ];
}
