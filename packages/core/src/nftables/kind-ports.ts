/**
 * Owns the sets of ports of kinds that have many: a line for each would be asked by every packet in turn. They are the
 * same in every table, whichever filters there are.
 */
import { filterKinds } from '../filter/catalogue.ts';
import type { FilterTransport } from '../filter/filter-kind.ts';
import { kindPortsSet } from './names.ts';
import type { Side } from './rule-text.ts';
import type { SetDefinition } from './transaction.ts';

/** Up to this many, a line each costs less than the look-up. */
const fewPorts = 3;

export function areMany(ports: readonly unknown[] | undefined): boolean {
  return ports !== undefined && ports.length > fewPorts;
}

export const kindPortSets: readonly { readonly definition: SetDefinition; readonly elements: readonly string[] }[] =
  filterKinds.flatMap(({ id, defaultPorts }) =>
    (['tcp', 'udp'] as const).flatMap((transport) =>
      (['src', 'dst'] as const).flatMap((side) => {
        const ports = defaultPorts.filter((each) => each.transport === transport && each.side === side);
        if (!areMany(ports)) return [];
        if (ports.some(({ end }) => end === 65535)) throw new Error(`kind ${id}: port 65535 cannot be looked up`);
        const ranges = ports.some(({ start, end }) => start !== end);
        const properties = ['type inet_service', ...(ranges ? ['flags interval'] : [])];
        return {
          definition: { name: kindPortsSet(id, transport, side), kind: 'set' as const, properties },
          elements: ports.map(({ start, end }) => (start === end ? `${start}` : `${start}-${end}`)),
        };
      }),
    ),
  );

/**
 * `side`: whose ports the kind has; `seen`: where they stand in the packet.
 *
 * `th sport` alone would read the data of a later fragment as ports: the load of three octets before it fails there
 * (rule-text.ts), and holds for every port but 65535.
 */
export function kindPortsCondition(kindId: number, transport: FilterTransport, side: Side, seen: Side = side): string {
  const [load, port] = seen === 'src' ? ['@th,0,24', 'th sport'] : ['@th,8,24', 'th dport'];
  return `${load} != 0xffffff ${port} @${kindPortsSet(kindId, transport, side)}`;
}
