/** Owns filter kind 10, Source engine games: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';

export const sourceEngine: FilterKind = {
  id: 10,
  name: 'source-engine',
  label: 'Source engine games',
  description:
    "Passes well-formed queries of Valve's server protocol (information, players, rules, challenges), and game " +
    'traffic only from a source that has queried or connected before.',
  limits: [copiesPass, 'Remote control (RCON) over TCP is not looked at.'],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 27015)],
  memory: 'source',
  needsReturnPath: false,
};
