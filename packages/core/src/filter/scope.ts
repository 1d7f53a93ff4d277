/**
 * Which traffic of its destination a filter looks at: its own ports and source, or its kind's ports (decision 0070).
 * Never looks at a packet's content.
 */
import type { PortRange } from '../firewall/rule.ts';
import type { Filter } from './filter.ts';
import type { FilterTransport } from './filter-kind.ts';

/** One transport's traffic; ports undefined: whatever they are; several: any of them. */
export interface FilterScope {
  readonly transport: FilterTransport;
  readonly sourcePorts: readonly PortRange[] | undefined;
  readonly destinationPorts: readonly PortRange[] | undefined;
}

/** Those of whose connections the router has to know. */
export function trackedScopesOf(filter: Filter): FilterScope[] {
  const { enforcement, transports } = filter.kind;
  if (enforcement.tracking === 'nothing') return [];
  const tracked = enforcement.tracks ?? transports;
  return scopesOf(filter).filter(({ transport }) => tracked.includes(transport));
}

export function scopesOf(filter: Filter): FilterScope[] {
  const { kind } = filter;
  const scopes: FilterScope[] = [];
  for (const transport of kind.transports) {
    if (transport === 'icmp') {
      scopes.push({ transport, sourcePorts: undefined, destinationPorts: undefined });
      continue;
    }
    const ports = (side: 'src' | 'dst', own: PortRange | undefined): readonly PortRange[] | undefined => {
      if (own !== undefined) return [own];
      const defaults = kind.defaultPorts.filter((each) => each.side === side);
      if (defaults.length === 0) return undefined;
      return defaults.filter((each) => each.transport === transport).map(({ start, end }) => ({ start, end }));
    };
    const sourcePorts = ports('src', filter.sourcePorts);
    const destinationPorts = ports('dst', filter.destinationPorts);
    // A kind with well-known ports of another transport alone.
    if (sourcePorts?.length === 0 || destinationPorts?.length === 0) continue;
    scopes.push({ transport, sourcePorts, destinationPorts });
  }
  return scopes;
}
