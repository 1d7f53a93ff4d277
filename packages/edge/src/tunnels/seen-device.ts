/**
 * What a device of the kernel's is as a tunnel, read from what ip(8) lists of it. Owns the names of those fields; what
 * cannot be read makes a device that fits no tunnel.
 */
import { geneveUdpPort } from '@levee/core/tunnel/tunnel.ts';
import type { Link } from '../drivers/link/port.ts';
import type { DeviceKind, WantedDevice } from './wanted-device.ts';

/** What the kernel tells devices of a kind apart by: no two devices can have the same. */
export function identityOf(device: Ends & { readonly port?: number | undefined }): string {
  const { kind, local, remote, number, port = geneveUdpPort } = device;
  return `${kind} ${kind === 'geneve' ? port : local} ${remote} ${number ?? ''}`;
}

type Ends = Pick<WantedDevice, 'kind' | 'local' | 'remote' | 'number'>;

export interface SeenTunnel {
  readonly kind: DeviceKind;
  readonly local: string;
  readonly remote: string;
  readonly number: number | undefined;
  /** Of GRE: it sends another key than it takes, or one of both alone. */
  readonly keysDiffer: boolean;
  readonly timeToLive: number;
  /** Of Geneve. */
  readonly port: number | undefined;
  /** Of GRE over IPv6: whether packets carry the option (RFC 2473, 4.1.1). */
  readonly encapsulationLimit: boolean;
}

export function tunnelOf({ kind, details }: Link): SeenTunnel | undefined {
  if (kind !== 'gre' && kind !== 'ip6gre' && kind !== 'geneve') return undefined;
  return {
    kind,
    local: text(details.local),
    remote: text(details.remote) || text(details.remote6),
    number: kind === 'geneve' ? Number(details.id) : keyOf(details.ikey),
    keysDiffer: details.ikey !== details.okey,
    // Geneve's `inherit` is not listed at all.
    timeToLive: Number(details.ttl),
    port: kind === 'geneve' ? Number(details.port) : undefined,
    encapsulationLimit: kind === 'ip6gre' && details.ip6_tnl_f_ign_encap_limit !== true,
  };
}

/** ip(8) writes keys as addresses: `0.0.0.41`. */
function keyOf(value: unknown): number | undefined {
  if (typeof value !== 'string') return undefined;
  return value.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
