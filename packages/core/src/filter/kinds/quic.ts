/** Owns filter kind 23, QUIC and HTTP/3: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';

export const quic: FilterKind = {
  id: 23,
  name: 'quic',
  label: 'QUIC and HTTP/3',
  description:
    'Passes QUIC version 1 and 2: the first packet of a connection must fill 1200 bytes, and packets with a short ' +
    'header pass only on flows that began so.',
  limits: [
    copiesPass,
    'Other versions are discarded, so that client and server cannot negotiate one.',
    'A client whose address or port changes during a connection has to begin anew.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 443)],
  memory: 'source',
  needsReturnPath: false,
};
