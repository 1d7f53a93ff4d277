/**
 * The commands, as `ip -batch` takes them, that make, change and remove a tunnel's device. Owns their words; never decides
 * which are needed. Sources: ip-link(8), ip-address(8), ip-route(8), and the kernel's behaviour as measured.
 */
import { geneveUdpPort } from '@levee/core/tunnel/tunnel.ts';
import type { Route } from '../drivers/link/port.ts';
import { deviceGroup } from './device-name.ts';
import type { WantedDevice } from './wanted-device.ts';

/** Tells our routes from others' (/etc/iproute2/rt_protos: below what routing programs use). */
export const routeProtocol = 108;
export const timeToLive = 64;
/**
 * Of our routes, so that the outcome beside another to the same subnet does not depend on who came first. Before what routing
 * programs put in (FRR 20, BIRD 32) and IPv6's own (256, 1024); behind what somebody has set without a metric over IPv4, and
 * behind whatever was given a lower one. None of those uses it, so that IPv6 makes no route of two next hops out of two.
 */
export const routeMetric = 10;

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
  return `link change dev ${name} mtu ${device.sizes.mtu} type ${kindWords(device).replace(portWords, '')}`;
}

export function mtuLine(name: string, device: WantedDevice): string {
  return `link set dev ${name} mtu ${device.sizes.mtu}`;
}

export function aliasLine(name: string, device: WantedDevice): string {
  return `link set dev ${name} alias ${device.uuid}`;
}

export function groupLine(name: string): string {
  return `link set dev ${name} group ${deviceGroup}`;
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

/** By way of the customer's inner address: Geneve is an Ethernet, where every address of `ips` would be asked for otherwise. */
export function routeLine(verb: 'add' | 'del', name: string, { prefix, via, metric }: Route): string {
  const way = via === undefined ? '' : ` via ${via}`;
  return `route ${verb} ${prefix}${way} dev ${name} proto ${routeProtocol} metric ${metric}`;
}

/** A change that names a port is refused, even if it is the one that the device has. */
const portWords = ` dstport ${geneveUdpPort}`;

function kindWords({ kind, local, remote, number }: WantedDevice): string {
  // The device knows no address of its own: what it sends gets one by the table (tunnel-table.ts).
  if (kind === 'geneve') return `geneve id ${number} remote ${remote} ttl ${timeToLive}${portWords}`;
  const key = number === undefined ? '' : ` key ${number}`;
  return kind === 'gre'
    ? `gre local ${local} remote ${remote} ttl ${timeToLive}${key}`
    : `ip6gre local ${local} remote ${remote} hoplimit ${timeToLive} encaplimit none${key}`;
}
