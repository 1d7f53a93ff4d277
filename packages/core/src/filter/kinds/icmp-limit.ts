/** Owns filter kind 4, ICMP limit: what it recognises and where, and what it cannot do. */
import { bothFamilies, type FilterKind } from '../filter-kind.ts';

export const icmpLimit: FilterKind = {
  id: 4,
  name: 'icmp-limit',
  label: 'ICMP limit',
  description:
    'Passes echo requests up to a rate for each source and one in sum, and the messages that IP itself needs: ' +
    'unreachable, packet too big, time exceeded, parameter problem, and neighbour discovery for IPv6. Other ICMP ' +
    'is discarded.',
  limits: ['One echo request is like another: during a flood from many sources wanted ones are lost too.'],
  families: bothFamilies,
  transports: ['icmp'],
  destinationPorts: 'none',
  defaultPorts: [],
  memory: 'source',
  needsReturnPath: false,
};
