/** Owns filter kind 26, NTP server: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';

export const ntp: FilterKind = {
  id: 26,
  name: 'ntp',
  label: 'NTP server',
  description:
    'Passes NTP packets of at least 48 bytes from clients, servers and active peers; control and private messages, ' +
    'which reflectors are made of, are discarded.',
  limits: [
    copiesPass,
    "Servers' answers that nobody asked for have the right form and pass: udp-amplification discards them.",
    'Broadcast and passive peers are discarded.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 123)],
  memory: 'none',
  needsReturnPath: false,
};
