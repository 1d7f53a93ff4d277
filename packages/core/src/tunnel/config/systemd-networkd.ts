/**
 * Owns the customer's end as files of systemd-networkd, written by a shell. Sources: systemd.netdev(5),
 * systemd.network(5) of systemd 252, which has no setting for the filter by reverse path: sysctl.d(5) is asked instead.
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

const folder = '/etc/systemd/network';

export const systemdNetworkd: ConfigWriter = {
  lacks: () => undefined,
  write(tunnel) {
    const notes = [
      ...titleOf(tunnel),
      'For a root shell: writes files and has systemd-networkd read them.',
      'Where ips belong to machines behind this one: IPForward=yes in the [Network] section of its other devices too.',
      ...notesOf(tunnel),
      looseFilterNote,
      'systemd-networkd does not clamp the MSS: the last command does, until the next start; keep it in nftables.conf.',
    ];
    return [
      ...commentLines('#', notes),
      ...tunnel.ends.flatMap((end, index) => {
        const path = `${folder}/50-${deviceName(end)}`;
        return [
          ...file(`${path}.netdev`, netdev(tunnel, end)),
          ...file(`${path}.network`, network(tunnel, end, index === 0)),
          // By udev's rules the device has it as soon as it appears; the name comes after what a distribution sets.
          ...file(`/etc/sysctl.d/99-${deviceName(end)}.conf`, [looseFilterOf(end)]),
        ];
      }),
      'networkctl reload',
      "nft -f - <<'EOF'",
      ...clampTable(tunnel),
      'EOF',
      '',
    ].join('\n');
  },
};

function file(path: string, lines: readonly string[]): readonly string[] {
  return [`cat > ${path} <<'EOF'`, ...lines, 'EOF'];
}

function netdev({ type, outer, keyed, endpoint, sizes }: ConfigTunnel, end: ConfigEnd): readonly string[] {
  const kind = type === 'Geneve' ? 'geneve' : outer === 4 ? 'gre' : 'ip6gre';
  const head = ['[NetDev]', `Name=${deviceName(end)}`, `Kind=${kind}`, `MTUBytes=${sizes.mtu}`, ''];
  if (type === 'Geneve') {
    return [...head, '[GENEVE]', `Id=${end.number}`, `Remote=${end.address}`, 'TTL=64', 'DestinationPort=6081'];
  }
  return [
    ...head,
    '[Tunnel]',
    // Not bound to another device: the routes decide where it goes.
    'Independent=yes',
    `Local=${endpoint}`,
    `Remote=${end.address}`,
    'TTL=64',
    ...(outer === 6 ? ['EncapsulationLimit=none'] : []),
    ...(keyed ? [`Key=${end.number}`] : []),
  ];
}

/** `withRules`: rules are the tunnel's, not the device's, and stand in the first file. */
function network(tunnel: ConfigTunnel, end: ConfigEnd, withRules: boolean): readonly string[] {
  const table = tableOf(tunnel);
  const lines = [
    '[Match]',
    `Name=${deviceName(end)}`,
    '',
    '[Link]',
    `MTUBytes=${tunnel.sizes.mtu}`,
    '',
    '[Network]',
    `Description=${tunnel.type} to ${end.router}`,
    `Address=${end.inner4.customer}/31`,
    `Address=${end.inner6.customer}/127`,
    'IPv6AcceptRA=no',
    'ConfigureWithoutCarrier=yes',
  ];
  for (const family of [4, 6] as const) {
    const subnets = subnetsOf(tunnel, family);
    if (subnets.length === 0) continue;
    const gateway = family === 4 ? end.inner4.router : end.inner6.router;
    lines.push('', '[Route]', `Gateway=${gateway}`, `Table=${table}`, `Metric=${metricOf(end)}`);
    if (!withRules) continue;
    for (const subnet of subnets) {
      lines.push(
        ...['', '[RoutingPolicyRule]', `From=${cidr(subnet)}`, 'Table=main', 'SuppressPrefixLength=0'],
        `Priority=${rulePriorities.local}`,
        ...['', '[RoutingPolicyRule]', `From=${cidr(subnet)}`, `Table=${table}`, `Priority=${rulePriorities.tunnel}`],
      );
    }
  }
  return lines;
}
