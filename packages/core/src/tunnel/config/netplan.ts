/**
 * Owns the customer's end as a file of netplan. Netplan has no Geneve devices, no rule that passes a default route over,
 * and no say about the filter by reverse path and the encapsulation limit of GRE over IPv6. Source: netplan(5) of 0.106.
 */
import {
  type ConfigEnd,
  type ConfigTunnel,
  type ConfigWriter,
  commentLines,
  deviceName,
  notesOf,
  subnetsOf,
  titleOf,
} from './config-tunnel.ts';
import { cidr, clampTable, looseFilterNote, looseFilterOf, metricOf, rulePriorities, tableOf } from './linux.ts';

/** Octets of the option that carries the encapsulation limit, which netplan's devices always send (RFC 2473, 4.1.1). */
const encapsulationLimitOctets = 8;
/** 1500 less an IPv6 header, GRE and its key. */
const mtuWithoutLimit = 1452;

export const netplan: ConfigWriter = {
  lacks: (tunnel) => (tunnel.type === 'Geneve' ? 'knows no Geneve devices' : undefined),
  write(tunnel) {
    const notes = [
      ...titleOf(tunnel),
      `/etc/netplan/60-levee-${tunnel.tableNumber}.yaml, mode 0600; then: netplan apply`,
      'Replies to other local networks than ips: add a rule for each, like those with "to" below.',
      ...notesOf(tunnel),
      looseFilterNote,
      `Before netplan apply, for /etc/sysctl.d/99-levee-${tunnel.tableNumber}.conf:`,
      ...tunnel.ends.map((end) => `  ${looseFilterOf(end)}`),
      'Netplan does not clamp the MSS. Give this to nft -f, and keep it in nftables.conf:',
      ...clampTable(tunnel).map((line) => `  ${line}`),
    ];
    const ends = tunnel.ends.flatMap((end, index) => device(tunnel, end, index === 0));
    return [...commentLines('#', notes), 'network:', '  version: 2', '  tunnels:', ...ends, ''].join('\n');
  },
};

function mtuOf({ outer, sizes }: ConfigTunnel): number {
  return outer === 4 ? sizes.mtu : Math.min(sizes.mtu, mtuWithoutLimit - encapsulationLimitOctets);
}

function device(tunnel: ConfigTunnel, end: ConfigEnd, withRules: boolean): readonly string[] {
  const table = tableOf(tunnel);
  const routes: string[] = [];
  const rules: string[] = [];
  for (const family of [4, 6] as const) {
    const subnets = subnetsOf(tunnel, family);
    if (subnets.length === 0) continue;
    const all = family === 4 ? '0.0.0.0/0' : '::/0';
    const via = family === 4 ? end.inner4.router : end.inner6.router;
    routes.push(`        - {to: "${all}", via: "${via}", table: ${table}, metric: ${metricOf(end)}}`);
    for (const subnet of subnets) {
      const text = cidr(subnet);
      rules.push(
        `        - {from: "${text}", to: "${text}", table: 254, priority: ${rulePriorities.local}}`,
        `        - {from: "${text}", table: ${table}, priority: ${rulePriorities.tunnel}}`,
      );
    }
  }
  return [
    `    ${deviceName(end)}:`,
    `      mode: ${tunnel.outer === 4 ? 'gre' : 'ip6gre'}`,
    `      local: "${tunnel.endpoint}"`,
    `      remote: "${end.address}"`,
    ...(tunnel.keyed ? [`      key: ${end.number}`] : []),
    '      ttl: 64',
    `      mtu: ${mtuOf(tunnel)}`,
    '      accept-ra: false',
    `      addresses: ["${end.inner4.customer}/31", "${end.inner6.customer}/127"]`,
    '      routes:',
    ...routes,
    ...(withRules ? ['      routing-policy:', ...rules] : []),
  ];
}
