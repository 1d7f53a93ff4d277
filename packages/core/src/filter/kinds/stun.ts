/** Owns filter kind 25, STUN: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';

export const stun: FilterKind = {
  id: 25,
  name: 'stun',
  label: 'STUN',
  description: "Passes STUN messages: two zero bits first, and the protocol's magic cookie.",
  limits: [
    copiesPass,
    "TURN's channel data has no cookie and is discarded: a relay's clients must use send indications.",
    'Clients older than RFC 5389, which send no cookie, are refused.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 3478)],
  memory: 'none',
  needsReturnPath: false,
};
