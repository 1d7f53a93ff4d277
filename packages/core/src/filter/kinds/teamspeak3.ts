/** Owns filter kind 15, TeamSpeak 3: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';

export const teamspeak3: FilterKind = {
  id: 15,
  name: 'teamspeak3',
  label: 'TeamSpeak 3',
  description:
    "Passes the client's opening packets, which begin with TS3INIT1, and client packets with a known type and at " +
    'most 500 bytes.',
  limits: [
    'Weak: a running session shows one known byte a packet.',
    copiesPass,
    'File transfer and server query over TCP are not looked at.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 9987)],
  memory: 'source',
  needsReturnPath: false,
};
