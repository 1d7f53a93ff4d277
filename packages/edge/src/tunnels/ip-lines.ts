/**
 * The commands, as `ip -batch` takes them, that make, change and remove a tunnel's device. Owns their words; never decides
 * which are needed. Sources: ip-link(8), ip-address(8), ip-route(8), and the kernel's behaviour as measured.
 */
import { geneveUdpPort } from '@levee/core/tunnel/tunnel.ts';
import { deviceGroup } from './device-name.ts';
import type { WantedDevice } from './wanted-device.ts';

/** Tells our routes from others' (/etc/iproute2/rt_protos: below what routing programs use). */
export const routeProtocol = 108;
export const timeToLive = 64;

/**
 * The group comes with the device, by which one that was made and not named further is known; what follows cannot. GRE has
 * no use for an IPv6 address of the kernel's making. Geneve has: neighbours are asked for from it.
 */
export function createLines(name: string, device: WantedDevice): readonly string[] {
  return [
    `link add name ${name} mtu ${device.sizes.mtu} group ${deviceGroup} type ${kindWords(device)}`,
    `${aliasLine(name, device)}${device.kind === 'geneve' ? '' : ' addrgenmode none'}`,
  ];
}

/** The device stays, and with it its addresses and routes. The MTU has to be said: the kernel would work it out anew. */
export function changeLine(name: string, device: WantedDevice): string {
  return `link change dev ${name} mtu ${device.sizes.mtu} type ${kindWords(device)}`;
}

export function mtuLine(name: string, device: WantedDevice): string {
  return `link set dev ${name} mtu ${device.sizes.mtu}`;
}

export function aliasLine(name: string, device: WantedDevice): string {
  return `link set dev ${name} alias ${device.uuid}`;
}

export function upLine(name: string): string {
  return `link set dev ${name} up`;
}

export function downLine(name: string): string {
  return `link set dev ${name} down`;
}

export function deleteLine(name: string): string {
  return `link delete dev ${name}`;
}

/** `nodad`: the two ends are ours to give, and an address that is being checked cannot be used. */
export function addressLine(verb: 'add' | 'del', name: string, address: string): string {
  return `address ${verb} ${address} dev ${name}${verb === 'add' && address.includes(':') ? ' nodad' : ''}`;
}

/**
 * By way of the customer's inner address: Geneve is an Ethernet, where every address of `ips` would be asked for
 * otherwise. Without a metric, so that another route to the same subnet is told instead of shadowed.
 */
export function routeLine(verb: 'add' | 'del', name: string, prefix: string, via: string | undefined): string {
  return `route ${verb} ${prefix}${via === undefined ? '' : ` via ${via}`} dev ${name} proto ${routeProtocol}`;
}

function kindWords({ kind, local, remote, number }: WantedDevice): string {
  // The device knows no address of its own: what it sends gets one by the table (tunnel-table.ts).
  if (kind === 'geneve') return `geneve id ${number} remote ${remote} ttl ${timeToLive} dstport ${geneveUdpPort}`;
  const key = number === undefined ? '' : ` key ${number}`;
  return kind === 'gre'
    ? `gre local ${local} remote ${remote} ttl ${timeToLive}${key}`
    : `ip6gre local ${local} remote ${remote} hoplimit ${timeToLive} encaplimit none${key}`;
}
