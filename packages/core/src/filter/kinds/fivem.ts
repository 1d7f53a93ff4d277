/** Owns filter kind 14, FiveM and RedM: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, fromDescription, to } from '../filter-kind.ts';

export const fivem: FilterKind = {
  id: 14,
  name: 'fivem',
  label: 'FiveM and RedM',
  description:
    'Passes information and status queries, connection requests and the opening of a session over UDP, session ' +
    'traffic only from a source that has opened one, and TCP connections of clients that load resources from the ' +
    'same port.',
  limits: [copiesPass, 'What is asked over TCP is not looked at.', fromDescription],
  families: bothFamilies,
  transports: ['tcp', 'udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('tcp', 30120), to('udp', 30120)],
  memory: 'source',
  needsReturnPath: false,
};
