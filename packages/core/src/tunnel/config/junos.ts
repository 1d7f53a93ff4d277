/**
 * Owns the customer's end as set commands of Junos OS: a unit of a gr- interface and filter-based forwarding. Its gr-
 * interfaces carry IPv6 inside, but speak IPv4 outside only, and there is no Geneve between routers. Which of them put
 * the key (RFC 2890) into packets depends on hardware and release, which nobody tells us: the text says it. Sources:
 * "Configuring Unicast Tunnels", "Tunnel Interfaces on MX Series Routers with MPC1 and MPC2", "bandwidth (Tunnel
 * Services)", "GRE Tunnel Key Support" (SRX), "interface-routes", "rib-group (Routing Options)" and "Filter-Based
 * Forwarding for Routing Instances" in the vendor's manuals.
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
    const served = ([4, 6] as const)
      .filter((family) => subnetsOf(tunnel, family).length > 0)
      .map((each) => families[each]);
    const notes = [
      ...titleOf(tunnel),
      'For load set terminal.',
      'Replies are sent back by a filter, which belongs on each interface behind which ips lie, such as:',
      ...served.map((inet) => `  set interfaces ge-0/0/1 unit 0 family ${inet} filter input ${name}-${inet}`),
      'Only networks that are connected stay local. For each other one that ips talk to:',
      ...served.flatMap((inet) => [
        `  set firewall family ${inet} filter ${name}-${inet} term local from destination-address NETWORK`,
        `  set firewall family ${inet} filter ${name}-${inet} term local then accept`,
        `  insert firewall family ${inet} filter ${name}-${inet} term local before term replies`,
      ]),
      'interface-routes has one rib-group a family, and the one below would take the place of yours: where there is one,',
      "leave that line out and add the table to your group's import-rib:",
      ...served.map((inet) => `  set routing-options rib-groups YOURS import-rib ${name}.${inet}.0`),
      ...onMx(tunnel),
      ...onSrx(tunnel),
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

/** Without tunnel services there is no gr- interface, and nothing complains at commit. */
function onMx({ keyed }: ConfigTunnel): readonly string[] {
  return [
    'On MX the gr- interface comes with tunnel services, in a bandwidth that the line card has (1g, 10g, 20g, 40g or more);',
    'show interfaces terse gr-* names it, to be put for gr-0/0/0 below:',
    '  set chassis fpc 0 pic 0 tunnel-services bandwidth 10g',
    ...(keyed
      ? [
          'The key needs an MPC (the vendor names GRE keys for MPC1 and MPC2) or a Multiservices DPC; with another card have the',
          'tunnel made with "keyed": false.',
        ]
      : []),
  ];
}

function onSrx(tunnel: ConfigTunnel): readonly string[] {
  const { sizes, keyed, ends } = tunnel;
  const policy = (from: string, to: string) => `  set security policies from-zone ${from} to-zone ${to} policy levee`;
  const hasIpv6 = subnetsOf(tunnel, 6).length > 0;
  // One for both families.
  const mss = hasIpv6 ? sizes.mssIpv6 : sizes.mss;
  const both = [policy('levee', 'trust'), policy('trust', 'levee')];
  return [
    ...(keyed
      ? [
          'SRX puts the key into packets only in releases that have GRE Tunnel Key Support (see Feature Explorer); with an older',
          'one no packet gets through: have the tunnel made with "keyed": false.',
        ]
      : []),
    'SRX besides needs the interface in a zone, policies between it and the zone of ips (here: trust), and clamps the MSS',
    'with these instead of tcp-mss:',
    ...ends.map((end) => `  set security zones security-zone levee interfaces gr-0/0/0.${unitOf(end)}`),
    '  set security zones security-zone levee host-inbound-traffic system-services ping',
    ...both.flatMap((each) => [
      `${each} match source-address any destination-address any application any`,
      `${each} then permit`,
    ]),
    ...(hasIpv6 ? ['  set security forwarding-options family inet6 mode flow-based'] : []),
    `  set security flow tcp-mss gre-in mss ${mss}`,
    `  set security flow tcp-mss gre-out mss ${mss}`,
  ];
}

function nameOf(tunnel: ConfigTunnel): string {
  return `levee-${tunnel.tableNumber}`;
}

/** Units end at 16385. */
function unitOf(end: ConfigEnd): number {
  return ((end.number - 1) % 16_000) + 1;
}

function unit({ uuid, endpoint, keyed, sizes }: ConfigTunnel, end: ConfigEnd): readonly string[] {
  const at = `set interfaces gr-0/0/0 unit ${unitOf(end)}`;
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
