/**
 * Owns the customer's end as commands of RouterOS 7. Its GRE writes a header of four octets: no key (the properties of
 * /interface/gre in the vendor's manual), and there is no Geneve. A /31 is written as two single addresses, which every
 * version takes.
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
import { cidr } from './linux.ts';

export const mikrotik: ConfigWriter = {
  lacks({ type, keyed }) {
    if (type === 'Geneve') return 'knows no Geneve devices';
    return keyed ? 'knows no key in GRE; create the tunnel with "keyed": false for it' : undefined;
  },
  write(tunnel) {
    const notes = [
      ...titleOf(tunnel),
      'For a terminal of RouterOS 7.',
      ...notesOf(tunnel),
      'Keepalive is off: the other end does not answer it.',
    ];
    return [
      ...commentLines('#', notes),
      ...tunnel.ends.flatMap((end) => device(tunnel, end)),
      `/routing table add name=${tableOf(tunnel)} fib`,
      ...replies(tunnel),
      ...clamp(tunnel),
      '',
    ].join('\n');
  },
};

function tableOf(tunnel: ConfigTunnel): string {
  return `levee-${tunnel.tableNumber}`;
}

function device(tunnel: ConfigTunnel, end: ConfigEnd): readonly string[] {
  const name = deviceName(end);
  const menu = tunnel.outer === 4 ? 'gre' : 'gre6';
  const ends = `local-address=${tunnel.endpoint} remote-address=${end.address}`;
  return [
    `/interface ${menu} add name=${name} ${ends} mtu=${tunnel.sizes.mtu} !keepalive clamp-tcp-mss=yes comment="${tunnel.uuid}"`,
    `/ip address add address=${end.inner4.customer}/32 network=${end.inner4.router} interface=${name}`,
    `/ipv6 address add address=${end.inner6.customer}/127 interface=${name} advertise=no no-dad=yes`,
  ];
}

function replies(tunnel: ConfigTunnel): readonly string[] {
  const table = tableOf(tunnel);
  const lines: string[] = [];
  for (const family of [4, 6] as const) {
    const subnets = subnetsOf(tunnel, family);
    if (subnets.length === 0) continue;
    const menu = family === 4 ? '/ip route' : '/ipv6 route';
    const all = family === 4 ? '0.0.0.0/0' : '::/0';
    for (const end of tunnel.ends) {
      lines.push(
        `${menu} add dst-address=${all} gateway=${deviceName(end)} distance=${1 + end.order} routing-table=${table}`,
      );
    }
    for (const subnet of subnets) {
      // min-prefix=0: the main table without its default route, so that its own networks are reached directly.
      lines.push(
        `/routing rule add src-address=${cidr(subnet)} action=lookup min-prefix=0 table=main`,
        `/routing rule add src-address=${cidr(subnet)} action=lookup table=${table}`,
      );
    }
  }
  return lines;
}

function clamp(tunnel: ConfigTunnel): readonly string[] {
  return tunnel.ends.flatMap((end) =>
    (['in-interface', 'out-interface'] as const).flatMap((direction) =>
      (
        [
          ['/ip', tunnel.sizes.mss],
          ['/ipv6', tunnel.sizes.mssIpv6],
        ] as const
      ).map(
        ([menu, mss]) =>
          `${menu} firewall mangle add chain=forward ${direction}=${deviceName(end)} protocol=tcp tcp-flags=syn ` +
          `tcp-mss=${mss + 1}-65535 action=change-mss new-mss=${mss} passthrough=yes`,
      ),
    ),
  );
}
