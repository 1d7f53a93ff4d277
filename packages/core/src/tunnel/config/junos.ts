/**
 * Owns the customer's end as set commands of Junos OS: a unit of a gr- interface and filter-based forwarding. Its gr-
 * interfaces have the key (RFC 2890) and carry IPv6 inside, but speak IPv4 outside only, and there is no Geneve between
 * routers. Sources: "Configuring Unicast Tunnels" and "Filter-Based Forwarding for Routing Instances" in the vendor's
 * manuals.
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

const families = { 4: 'inet', 6: 'inet6' } as const;

export const junos: ConfigWriter = {
  lacks({ type, outer }) {
    if (type === 'Geneve') return 'ends no Geneve tunnels';
    return outer === 6 ? 'has GRE over IPv4 only' : undefined;
  },
  write(tunnel) {
    const name = nameOf(tunnel);
    const apply = ([4, 6] as const)
      .filter((family) => subnetsOf(tunnel, family).length > 0)
      .map(
        (family) =>
          `  set interfaces ge-0/0/1 unit 0 family ${families[family]} filter input ${name}-${families[family]}`,
      );
    const notes = [
      ...titleOf(tunnel),
      'For load set terminal. gr-0/0/0 needs tunnel services: set chassis fpc 0 pic 0 tunnel-services (MX).',
      'Replies are sent back by a filter, which belongs on each interface behind which ips lie, such as:',
      ...apply,
      'On SRX clamp the MSS with these instead of tcp-mss:',
      `  set security flow tcp-mss gre-in mss ${tunnel.sizes.mss}`,
      `  set security flow tcp-mss gre-out mss ${tunnel.sizes.mss}`,
      ...notesOf(tunnel),
    ];
    return [
      ...commentLines('#', notes),
      ...tunnel.ends.flatMap((end) => unit(tunnel, end)),
      `set routing-instances ${name} instance-type forwarding`,
      ...([4, 6] as const).flatMap((family) => replies(tunnel, family)),
      '',
    ].join('\n');
  },
};

function nameOf(tunnel: ConfigTunnel): string {
  return `levee-${tunnel.tableNumber}`;
}

/** Units end at 16385. */
function unitOf(end: ConfigEnd): string {
  return `gr-0/0/0 unit ${((end.number - 1) % 16_000) + 1}`;
}

function unit({ uuid, endpoint, keyed, sizes }: ConfigTunnel, end: ConfigEnd): readonly string[] {
  const at = `set interfaces ${unitOf(end)}`;
  return [
    `${at} description "${uuid} to ${end.router}"`,
    `${at} tunnel source ${endpoint}`,
    `${at} tunnel destination ${end.address}`,
    `${at} tunnel ttl 64`,
    ...(keyed ? [`${at} tunnel key ${end.number}`] : []),
    `${at} family inet mtu ${sizes.mtu}`,
    `${at} family inet tcp-mss ${sizes.mss}`,
    `${at} family inet address ${end.inner4.customer}/31`,
    `${at} family inet6 mtu ${sizes.mtu}`,
    `${at} family inet6 tcp-mss ${sizes.mssIpv6}`,
    `${at} family inet6 address ${end.inner6.customer}/127`,
  ];
}

function replies(tunnel: ConfigTunnel, family: 4 | 6): readonly string[] {
  const subnets = subnetsOf(tunnel, family);
  if (subnets.length === 0) return [];
  const name = nameOf(tunnel);
  const inet = families[family];
  const filter = `set firewall family ${inet} filter ${name}-${inet} term`;
  const table = family === 4 ? 'static' : `rib ${name}.inet6.0 static`;
  const route = `set routing-instances ${name} routing-options ${table} route ${family === 4 ? '0.0.0.0/0' : '::/0'}`;
  return [
    ...tunnel.ends.map((end) => {
      const { router } = family === 4 ? end.inner4 : end.inner6;
      return end.order === 0
        ? `${route} next-hop ${router}`
        : `${route} qualified-next-hop ${router} preference ${5 + end.order}`;
    }),
    // The instance learns the networks that are connected: next hops are found, and local replies stay local.
    `set routing-options rib-groups levee-${inet} import-rib ${inet}.0`,
    `set routing-options rib-groups levee-${inet} import-rib ${name}.${inet}.0`,
    `set routing-options interface-routes rib-group ${inet} levee-${inet}`,
    ...subnets.map((subnet) => `${filter} replies from source-address ${cidr(subnet)}`),
    `${filter} replies then routing-instance ${name}`,
    `${filter} rest then accept`,
  ];
}
