/**
 * What a filter is: inside, with every value parsed and trusted, and on the wire, with names, bounds and canonical form.
 * Never checks anything: that is `parse-filter.ts`.
 */
import type { PortRange } from '../firewall/rule.ts';
import type { CanonicalPorts, CanonicalSource } from '../firewall/wire.ts';
import type { AddressRange, Prefix } from '../net/prefix.ts';
import type { FilterKind } from './filter-kind.ts';

export interface Filter {
  readonly uuid: string;
  /** Creation order over the whole installation: decides between filters of equal priority. */
  readonly sequence: number;
  /** 1 is asked first; at most 2147483647. */
  readonly priority: number;
  readonly dst: Prefix;
  readonly kind: FilterKind;
  /** Traffic from elsewhere is not touched. */
  readonly src?: AddressRange;
  /** Traffic of other ports is not touched. Absent: the kind's default ports of that side. */
  readonly sourcePorts?: PortRange;
  readonly destinationPorts?: PortRange;
  /** Of traffic that passes the filter; 1 to 25000. Absent: unlimited. */
  readonly rateLimitMegabitsPerSecond?: number;
}

/** In the order in which a canonical filter lists them. */
export const filterFields = ['dst', 'filter', 'priority', 'src', 'port', 'ratelimit'] as const;

export const requiredFilterFields = ['dst', 'filter'] as const;

/** Mbit/s. */
export const filterRateBounds = { minimum: 1, maximum: 25000 } as const;

/** A filter on the wire: canonical texts, keys in the order of `filterFields`, absent what is not set. */
export interface CanonicalFilter {
  readonly dst: string;
  /** The kind's id. */
  readonly filter: number;
  readonly priority: number;
  readonly src?: CanonicalSource;
  readonly port?: CanonicalPorts;
  readonly ratelimit?: number;
}
