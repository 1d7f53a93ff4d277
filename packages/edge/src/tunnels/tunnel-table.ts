/**
 * The text of the table `levee_tunnel`: what may come out of a tunnel, how large TCP's segments in it are, and from which
 * address Geneve sends. Pure; replaces the whole table in one transaction. Devices are named, not numbered, so that the table
 * is there before they are. Must never touch another table. Source: nft(8).
 */
import { comparePrefixes, type Family, type Prefix, prefixContains } from '@levee/core/net/prefix.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { geneveUdpPort } from '@levee/core/tunnel/tunnel.ts';
import { deviceWildcard } from './device-name.ts';
import { cidr, type WantedDevice } from './wanted-device.ts';

export const tunnelTable = 'levee_tunnel';

/** Before conntrack (-200) and before what the table of rules does at prerouting (-300), so that neither sees a spoofed source. */
const sourcePriority = -310;
/** Before conntrack: it is to see the address that is sent. */
const outputPriority = -310;

/** `devices`: by name. None: the table goes. */
export function tableText(devices: ReadonlyMap<string, WantedDevice>): string {
  const clear = [`add table inet ${tunnelTable}`, `delete table inet ${tunnelTable}`];
  if (devices.size === 0) return `${clear.join('\n')}\n`;
  const sorted = [...devices].sort(([a], [b]) => (a < b ? -1 : 1));
  const clamps = new Map(sorted.map(([, { sizes }]) => [sizes.mtu, sizes]));
  return [
    ...clear,
    `table inet ${tunnelTable} {`,
    ...[...clamps].flatMap(([mtu, { mss, mssIpv6 }]) =>
      chain(clampChain(mtu), [
        `meta nfproto ipv4 tcp flags syn tcp option maxseg size set ${mss}`,
        `meta nfproto ipv6 tcp flags syn tcp option maxseg size set ${mssIpv6}`,
      ]),
    ),
    ...sorted.flatMap(([name, device]) => chain(sourceChain(name), sourceRules(device))),
    ...verdicts(
      'out_of',
      sorted.map(([name]) => `"${name}" : goto ${sourceChain(name)}`),
    ),
    ...verdicts(
      'into',
      sorted.map(([name, { sizes }]) => `"${name}" : goto ${clampChain(sizes.mtu)}`),
    ),
    ...chain('hook_prerouting', [
      `type filter hook prerouting priority ${sourcePriority}; policy accept;`,
      `iifname "${deviceWildcard}" iifname vmap @out_of`,
    ]),
    ...chain('hook_postrouting', [
      'type filter hook postrouting priority mangle; policy accept;',
      `oifname "${deviceWildcard}" oifname vmap @into`,
    ]),
    ...geneveChain(sorted.map(([, device]) => device)),
    '}',
    '',
  ].join('\n');
}

function chain(name: string, rules: readonly string[]): string[] {
  return [`  chain ${name} {`, ...rules.map((rule) => `    ${rule}`), '  }'];
}

function verdicts(name: string, elements: readonly string[]): string[] {
  return [`  map ${name} {`, '    type ifname : verdict', `    elements = { ${elements.join(',\n      ')} }`, '  }'];
}

function clampChain(mtu: number): string {
  return `clamp_${mtu}`;
}

function sourceChain(device: string): string {
  return `from_${device}`;
}

/**
 * Neighbour discovery goes between link-local addresses too, as does what it answers; a hop limit of 255 says that it
 * comes from the other end (RFC 4861, 7.1). GRE has none.
 */
function sourceRules(device: WantedDevice): string[] {
  const { ips, customer4, customer6, sizes, kind } = device;
  const clamp = `goto ${clampChain(sizes.mtu)}`;
  const within = (family: Family, customer: string) =>
    disjoint([prefixFromTrusted(customer), ...ips.filter((prefix) => prefix.family === family)]).join(', ');
  return [
    `ip saddr { ${within(4, customer4)} } ${clamp}`,
    `ip6 saddr { ${within(6, customer6)} } ${clamp}`,
    ...(kind === 'geneve'
      ? ['ip6 saddr fe80::/10 ip6 hoplimit 255 icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept']
      : []),
    'drop',
  ];
}

/** A set refuses elements that overlap, and with it the whole table. */
function disjoint(prefixes: readonly Prefix[]): string[] {
  const kept: Prefix[] = [];
  // In this order a prefix comes before those that it contains.
  for (const prefix of [...prefixes].sort(comparePrefixes)) {
    const last = kept.at(-1);
    if (last === undefined || !prefixContains(last, prefix)) kept.push(prefix);
  }
  return kept.map(cidr);
}

/**
 * Geneve devices have no address of their own: the kernel takes the one of the way out, and the customer's end takes packets
 * from the router's tunnel address alone. GRE is told its address.
 */
function geneveChain(devices: readonly WantedDevice[]): string[] {
  const groups = new Map<string, WantedDevice[]>();
  for (const device of devices) {
    if (device.kind !== 'geneve') continue;
    const known = groups.get(device.local);
    if (known) known.push(device);
    else groups.set(device.local, [device]);
  }
  if (groups.size === 0) return [];
  const rules = [...groups].map(([local, members]) => {
    const field = isIpv6(local) ? 'ip6' : 'ip';
    const remotes = [...new Set(members.map(({ remote }) => remote))].join(', ');
    const numbers = members.map(({ number }) => number).join(', ');
    // The VNI: three octets behind UDP's eight and Geneve's first four (RFC 8926, 3.1).
    return `udp dport ${geneveUdpPort} ${field} daddr { ${remotes} } @th,96,24 { ${numbers} } ${field} saddr set ${local}`;
  });
  return chain('hook_output', [`type filter hook output priority ${outputPriority}; policy accept;`, ...rules]);
}

function isIpv6(address: string): boolean {
  return address.includes(':');
}
