/**
 * Owns the customer's end as commands for a Linux shell: ip(8), sysctl(8) and nft(8). The commands last until the machine starts
 * anew. Sources: ip-link(8), ip-rule(8), ip-route(8), nft(8).
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

export const iproute2: ConfigWriter = {
  lacks: () => undefined,
  write(tunnel) {
    const notes = [
      ...titleOf(tunnel),
      'For a root shell; until the next start. Addresses of ips that this machine itself has: ip address add ADDRESS dev lo',
      'Where they belong to machines behind it: sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1',
      ...notesOf(tunnel),
      looseFilterNote,
    ];
    return [
      ...commentLines('#', notes),
      ...tunnel.ends.flatMap((end) => device(tunnel, end)),
      '# Replies go back through the tunnel, all else as before.',
      ...replies(tunnel),
      '# TCP: segments that fit the tunnel, in both directions.',
      "nft -f - <<'EOF'",
      ...clampTable(tunnel),
      'EOF',
      '',
    ].join('\n');
  },
};

function device(tunnel: ConfigTunnel, end: ConfigEnd): readonly string[] {
  const name = deviceName(end);
  return [
    `ip link add name ${name} mtu ${tunnel.sizes.mtu} type ${kind(tunnel, end)}`,
    `ip link set dev ${name} alias ${tunnel.uuid}`,
    `sysctl -q -w ${looseFilterOf(end)}`,
    `ip address add ${end.inner4.customer}/31 dev ${name}`,
    `ip address add ${end.inner6.customer}/127 dev ${name} nodad`,
    `ip link set dev ${name} up`,
  ];
}

function kind({ type, outer, keyed, endpoint }: ConfigTunnel, end: ConfigEnd): string {
  if (type === 'Geneve') return `geneve id ${end.number} remote ${end.address} ttl 64 dstport 6081`;
  const key = keyed ? ` key ${end.number}` : '';
  return outer === 4
    ? `gre local ${endpoint} remote ${end.address} ttl 64${key}`
    : `ip6gre local ${endpoint} remote ${end.address} hoplimit 64 encaplimit none${key}`;
}

function replies(tunnel: ConfigTunnel): readonly string[] {
  const table = tableOf(tunnel);
  const lines: string[] = [];
  for (const family of [4, 6] as const) {
    const subnets = subnetsOf(tunnel, family);
    if (subnets.length === 0) continue;
    // A rule's family is not taken from its addresses: ip would say "Invalid source address" of an IPv6 one.
    const ip = family === 4 ? 'ip' : 'ip -6';
    for (const end of tunnel.ends) {
      const { router } = family === 4 ? end.inner4 : end.inner6;
      const way = `via ${router} dev ${deviceName(end)} metric ${metricOf(end)}`;
      lines.push(`${ip} route replace default ${way} table ${table}`);
    }
    for (const subnet of subnets) {
      // What the machine reaches by more than its default route, it reaches directly: its own networks above all.
      const rule = `${ip} rule add from ${cidr(subnet)} lookup`;
      lines.push(
        `${rule} main suppress_prefixlength 0 priority ${rulePriorities.local}`,
        `${rule} ${table} priority ${rulePriorities.tunnel}`,
      );
    }
  }
  return lines;
}
