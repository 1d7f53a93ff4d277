/** How a kind of filter is answered: what is said of it, and which fields a filter of it uses, so that a form can be drawn. */
import type { FilterKindAnswer } from '@levee/contract/schemas/filter.ts';
import { filterRateBounds } from '@levee/core/filter/filter.ts';
import type { FilterKind } from '@levee/core/filter/filter-kind.ts';
import { limitsOf } from '@levee/core/filter/kind-limits.ts';
import { defaultPriority, portBounds, priorityBounds } from '@levee/core/firewall/wire.ts';

export function filterKindAnswer(kind: FilterKind): FilterKindAnswer {
  const { 4: ipv4, 6: ipv6 } = kind.shortestPrefix ?? {};
  return {
    id: kind.id,
    name: kind.name,
    label: kind.label,
    description: kind.description,
    limits: [...limitsOf(kind)],
    families: kind.families.map((family) => (family === 4 ? 'ipv4' : 'ipv6')),
    transports: [...kind.transports],
    default_ports: kind.defaultPorts.map(({ side, transport, start, end }) => ({ side, transport, start, end })),
    memory: kind.memory,
    needs_return_path: kind.needsReturnPath,
    ...(kind.shortestPrefix && {
      shortest_prefix: { ...(ipv4 !== undefined && { ipv4 }), ...(ipv6 !== undefined && { ipv6 }) },
    }),
    fields: fieldsOf(kind),
  };
}

function fieldsOf({ destinationPorts }: FilterKind): FilterKindAnswer['fields'] {
  const ports = (name: string, required: boolean) => ({ name, type: 'port_range' as const, required, ...portBounds });
  return [
    { name: 'dst', type: 'prefix', required: true },
    ...(destinationPorts === 'none' ? [] : [ports('port.dst', destinationPorts === 'required')]),
    { name: 'ratelimit', type: 'integer', required: false, ...filterRateBounds, unit: 'Mbit/s' },
    { name: 'src', type: 'address_range', required: false },
    ...(destinationPorts === 'none' ? [] : [ports('port.src', false)]),
    { name: 'priority', type: 'integer', required: false, ...priorityBounds, default: defaultPriority },
    { name: 'expires_at', type: 'time', required: false },
  ];
}
