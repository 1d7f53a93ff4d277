/**
 * Owns what the Linux formats have in common: the routing table, the priorities of its rules, the length that a prefix
 * always shows, the filter by reverse path, and the rules that clamp the MSS. Linux has no other way to clamp it for
 * packets that are forwarded.
 */

import { formatAddress } from '../../net/address.ts';
import type { Prefix } from '../../net/prefix.ts';
import { type ConfigEnd, type ConfigTunnel, deviceName } from './config-tunnel.ts';

/** Beyond what people number by hand; 253 to 255 are the system's own. */
export function tableOf(tunnel: ConfigTunnel): number {
  return 10_000 + tunnel.tableNumber;
}

/** Before the main table (32766). */
export const rulePriorities = { local: 1000, tunnel: 1001 } as const;

/** The lowest metric wins; that of a device that is down is passed over. */
export function metricOf(end: ConfigEnd): number {
  return 100 + end.order;
}

/** With its length, also for a single address. */
export function cidr(prefix: Prefix): string {
  return `${formatAddress(prefix)}/${prefix.length}`;
}

/**
 * Settings for sysctl(8), one a line: what comes through an end by which replies do not leave passes a filter that is
 * strict elsewhere. The larger of `all` and the device's own counts (ip-sysctl in the kernel's documentation), so that 2,
 * which is loose, wins over a strict 1 and leaves other devices alone. IPv6 has no such filter in the kernel.
 */
export function looseFilterOf(end: ConfigEnd): string {
  return `net.ipv4.conf.${deviceName(end)}.rp_filter=2`;
}

export const looseFilterNote =
  'rp_filter=2: a strict filter by reverse path would drop what arrives by another end than replies leave by.';

/**
 * For `nft -f`: a table of its own, which replaces the one of an earlier paste. The kernel only ever lowers an MSS
 * (nft(8), exthdr statement), so that both directions can be set to the same.
 */
export function clampTable(tunnel: ConfigTunnel): readonly string[] {
  const { mss, mssIpv6 } = tunnel.sizes;
  const name = `levee_${tunnel.tableNumber}`;
  const rules = (direction: 'iifname' | 'oifname') =>
    tunnel.ends.flatMap((end) => [
      `    ${direction} "${deviceName(end)}" meta nfproto ipv4 tcp flags syn tcp option maxseg size set ${mss}`,
      `    ${direction} "${deviceName(end)}" meta nfproto ipv6 tcp flags syn tcp option maxseg size set ${mssIpv6}`,
    ]);
  return [
    `table inet ${name}`,
    `delete table inet ${name}`,
    `table inet ${name} {`,
    '  chain in {',
    '    type filter hook prerouting priority mangle; policy accept;',
    ...rules('iifname'),
    '  }',
    '  chain out {',
    '    type filter hook postrouting priority mangle; policy accept;',
    ...rules('oifname'),
    '  }',
    '}',
  ];
}
