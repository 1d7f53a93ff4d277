/**
 * Owns the wire's names and bounds of a tunnel's fields, and the canonical form that is stored and answered. Never
 * checks anything: that is `parse-tunnel.ts`.
 */

import type { Family } from '../net/prefix.ts';

/** As answered; matched without case. */
export const tunnelTypes = ['GRE', 'Geneve'] as const;
export type TunnelType = (typeof tunnelTypes)[number];

/** What Linux needs to end a tunnel, by the family of its endpoints. */
export const kernelModules: Readonly<Record<TunnelType, Readonly<Record<Family, string>>>> = {
  GRE: { 4: 'ip_gre', 6: 'ip6_gre' },
  Geneve: { 4: 'geneve', 6: 'geneve' },
};

/** In the order in which a canonical tunnel lists them. */
export const tunnelFields = ['ips', 'endpoint', 'type', 'keyed', 'locations'] as const;
/** What a change may give: a tunnel of another type, or without its key, is another tunnel. */
export const changeableTunnelFields = ['ips', 'endpoint', 'locations'] as const;

export const tunnelSubnetBounds = { minimum: 1, maximum: 256 } as const;
export const tunnelLocationMaximum = 64;

/** A tunnel on the wire: canonical texts, keys in the order of `tunnelFields`. */
export interface CanonicalTunnel {
  /** In the order of the request. */
  readonly ips: readonly string[];
  readonly endpoint: string;
  readonly type: TunnelType;
  /** Only where it is false: a GRE tunnel whose packets carry no key. */
  readonly keyed?: false;
  /** Absent: every location. */
  readonly locations?: readonly string[];
}

/** Where Geneve listens (RFC 8926, 3.3). */
export const geneveUdpPort = 6081;
