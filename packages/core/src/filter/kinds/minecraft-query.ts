/** Owns filter kind 13, Minecraft server query: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';

export const minecraftQuery: FilterKind = {
  id: 13,
  name: 'minecraft-query',
  label: 'Minecraft server query',
  description: "Passes the query protocol's handshake and status requests, which begin with fe fd and 00 or 09.",
  limits: ['Weak: three bytes are all there is to recognise.', copiesPass],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 25565)],
  memory: 'none',
  needsReturnPath: false,
};
