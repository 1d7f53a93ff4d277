/** Owns filter kind 17, Mumble: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';

export const mumble: FilterKind = {
  id: 17,
  name: 'mumble',
  label: 'Mumble',
  description:
    "Passes the server list's pings (12 bytes, the first four zero), and voice over UDP only from addresses that " +
    'have a TCP session open with the destination.',
  limits: [
    'Clients behind one address share what one of them has opened.',
    'The TCP session itself is not judged: tcp-syn-protect does that.',
    copiesPass,
  ],
  families: bothFamilies,
  transports: ['tcp', 'udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('tcp', 64738), to('udp', 64738)],
  memory: 'connection',
  needsReturnPath: true,
};
