/** Owns filter kind 21, OpenVPN over UDP: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';

export const openvpnUdp: FilterKind = {
  id: 21,
  name: 'openvpn-udp',
  label: 'OpenVPN over UDP',
  description:
    "Passes packets whose first byte is one of OpenVPN's operations; a source that is not known yet must begin " +
    "with a client's reset.",
  limits: [
    'Weak: one byte is all there is to recognise.',
    copiesPass,
    'OpenVPN over TCP is not looked at; patches that scramble the first byte are not recognised.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 1194)],
  memory: 'source',
  needsReturnPath: false,
};
