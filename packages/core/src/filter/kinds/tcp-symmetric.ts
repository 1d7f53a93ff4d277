/** Owns filter kind 2, TCP only of known connections: what it recognises and where, and what it cannot do. */
import { bothFamilies, type FilterKind } from '../filter-kind.ts';

export const tcpSymmetric: FilterKind = {
  id: 2,
  name: 'tcp-symmetric',
  label: 'TCP only of known connections',
  description:
    'Passes TCP packets only of connections whose handshake the router has seen in both directions; floods of ' +
    'stray ACK, SYN-ACK, RST and data packets are discarded.',
  limits: ['SYNs pass: against a flood of them use tcp-syn-protect.'],
  families: bothFamilies,
  transports: ['tcp'],
  destinationPorts: 'optional',
  defaultPorts: [],
  memory: 'connection',
  needsReturnPath: true,
};
