/** Owns filter kind 20, WireGuard: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';

export const wireguard: FilterKind = {
  id: 20,
  name: 'wireguard',
  label: 'WireGuard',
  description:
    "Passes packets with the type, the three zero bytes and the length of WireGuard's four messages: 148, 92 and " +
    '64 bytes, and for data 32 or more in steps of 16.',
  limits: [copiesPass, 'Variants that disguise the protocol, such as AmneziaWG, are not recognised.'],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 51820)],
  memory: 'none',
  needsReturnPath: false,
};
