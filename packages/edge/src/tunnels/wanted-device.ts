/**
 * Reads a tunnel as the control plane tells it into the device that the router should have. Owns every value that
 * reaches ip(8) or nft(8): typed, or taken from the tables here. A tunnel that cannot be read is a sentence, no exception.
 */
import type { AgentTunnel } from '@levee/contract/agent.ts';
import { formatAddress, parseAddress } from '@levee/core/net/address.ts';
import type { Address, Family, Prefix } from '@levee/core/net/prefix.ts';
import { parsePrefix } from '@levee/core/net/prefix-text.ts';
import { innerAddresses } from '@levee/core/tunnel/allocation.ts';
import { sizesOf, type TunnelSizes } from '@levee/core/tunnel/mtu.ts';
import { kernelModules, type TunnelType } from '@levee/core/tunnel/tunnel.ts';
import type { Route } from '../drivers/link/port.ts';
import { routeMetric } from './ip-lines.ts';

/** The kernel's kinds of devices. */
export type DeviceKind = 'gre' | 'ip6gre' | 'geneve';

export interface WantedDevice {
  readonly uuid: string;
  readonly kind: DeviceKind;
  /** Family outside. */
  readonly outer: Family;
  /** Canonical texts, as are all below. */
  readonly local: string;
  readonly remote: string;
  /** GRE's key or Geneve's VNI; undefined: GRE without a key. */
  readonly number: number | undefined;
  readonly sizes: TunnelSizes;
  /** The router's, with their lengths: a /31 and a /127. */
  readonly addresses: readonly string[];
  /** The customer's inner addresses. */
  readonly customer4: string;
  readonly customer6: string;
  readonly ips: readonly Prefix[];
  readonly routes: readonly Route[];
  /** The kernel's module that makes such devices. */
  readonly module: string;
}

export type ReadDevice =
  | { readonly ok: true; readonly device: WantedDevice }
  | { readonly ok: false; readonly reason: string };

const largestKey = 2 ** 32 - 1;
const largestVni = 2 ** 24 - 1;

class Unreadable extends Error {}

export function readTunnel(tunnel: AgentTunnel): ReadDevice {
  try {
    return { ok: true, device: deviceOf(tunnel) };
  } catch (error) {
    if (error instanceof Unreadable) return { ok: false, reason: error.message };
    throw error;
  }
}

function deviceOf(tunnel: AgentTunnel): WantedDevice {
  const { uuid, type, keyed, number } = tunnel;
  if (!isKnown(type)) throw new Unreadable(`this release knows no tunnels of type ${show(type)}`);
  const remote = addressOf('endpoint', tunnel.endpoint);
  const local = addressOf('local_endpoint', tunnel.local_endpoint);
  if (local.family !== remote.family) throw new Unreadable('endpoint and local_endpoint are of different families');
  if (!Number.isInteger(number) || number < 1 || number > (type === 'GRE' ? largestKey : largestVni)) {
    throw new Unreadable(`${show(number)} is no ${type === 'GRE' ? 'key' : 'VNI'}`);
  }
  const inner4 = pairOf('inner_ipv4', tunnel.inner_ipv4, 4);
  const inner6 = pairOf('inner_ipv6', tunnel.inner_ipv6, 6);
  if (!Array.isArray(tunnel.ips)) throw new Unreadable('ips is no list');
  const ips = tunnel.ips.map((each) => prefixOf('ips', each));
  return {
    uuid,
    kind: type === 'Geneve' ? 'geneve' : remote.family === 4 ? 'gre' : 'ip6gre',
    outer: remote.family,
    local: formatAddress(local),
    remote: formatAddress(remote),
    number: type === 'GRE' && keyed === false ? undefined : number,
    sizes: sizesOf(type, remote.family),
    addresses: [`${inner4.router}/31`, `${inner6.router}/127`],
    customer4: inner4.customer,
    customer6: inner6.customer,
    ips,
    routes: ips.map((prefix) => ({
      prefix: cidr(prefix),
      via: prefix.family === 4 ? inner4.customer : inner6.customer,
      metric: routeMetric,
    })),
    module: kernelModules[type][remote.family],
  };
}

/** With its length, also for a single address. */
export function cidr(prefix: Prefix): string {
  return `${formatAddress(prefix)}/${prefix.length}`;
}

function isKnown(type: unknown): type is TunnelType {
  return type === 'GRE' || type === 'Geneve';
}

function addressOf(field: string, text: unknown): Address {
  const read = typeof text === 'string' ? parseAddress(text) : undefined;
  if (!read?.ok) throw new Unreadable(`${field}: ${show(text)} is no address`);
  return read.address;
}

function prefixOf(field: string, text: unknown): Prefix {
  const read = typeof text === 'string' ? parsePrefix(text) : undefined;
  if (!read?.ok) throw new Unreadable(`${field}: ${show(text)} is no subnet`);
  return read.prefix;
}

function pairOf(field: string, text: unknown, family: Family): { readonly router: string; readonly customer: string } {
  const prefix = prefixOf(field, text);
  if (prefix.family !== family || prefix.length !== (family === 4 ? 31 : 127)) {
    throw new Unreadable(`${field}: ${show(text)} is no pair of addresses`);
  }
  const { router, customer } = innerAddresses(prefix);
  return { router: formatAddress(router), customer: formatAddress(customer) };
}

function show(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 60);
}
