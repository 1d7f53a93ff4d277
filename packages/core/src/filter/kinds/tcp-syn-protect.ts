/** Owns filter kind 1, TCP SYN flood protection: what it recognises and where, and what it cannot do. */
import { bothFamilies, type FilterKind } from '../filter-kind.ts';

export const tcpSynProtect: FilterKind = {
  id: 1,
  name: 'tcp-syn-protect',
  label: 'TCP SYN flood protection',
  description:
    "Answers each new TCP connection in the server's place, by SYN cookies, and hands it over once the client has " +
    'answered back: SYNs from forged addresses never reach the server. Packets with combinations of flags that no ' +
    'TCP sends are discarded.',
  limits: [
    'Connections from real addresses pass, however many; ratelimit and rules bound them.',
    'The router takes part in the handshake: TCP options that it does not know are not negotiated.',
    'A port on which nothing listens looks open until the handshake is done.',
  ],
  families: bothFamilies,
  transports: ['tcp'],
  destinationPorts: 'optional',
  defaultPorts: [],
  memory: 'connection',
  needsReturnPath: true,
};
