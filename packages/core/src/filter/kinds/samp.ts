/** Owns filter kind 16, San Andreas Multiplayer: what it recognises and where, and what it cannot do. */
import { copiesPass, type FilterKind, fromDescription, to } from '../filter-kind.ts';

export const samp: FilterKind = {
  id: 16,
  name: 'samp',
  label: 'San Andreas Multiplayer',
  description:
    "Discards queries that do not name the destination's own address and port and a known request; the game's " +
    'other packets are held to a limit on each source.',
  limits: [
    'IPv4 alone: the protocol carries IPv4 addresses.',
    'It takes a /24 at most: each address must be known one by one.',
    "The game's own packets are not recognised, only bounded.",
    copiesPass,
    fromDescription,
  ],
  families: [4],
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 7777)],
  memory: 'source',
  needsReturnPath: false,
  shortestPrefix: { 4: 24 },
};
