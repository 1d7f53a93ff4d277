/** Owns filter kind 12, minecraft-bedrock: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';

export const minecraftBedrock: FilterKind = {
  id: 12,
  name: 'minecraft-bedrock',
  label: 'Minecraft: Bedrock Edition and other RakNet games',
  description:
    "Passes RakNet's pings and connection requests, which carry a fixed sequence of 16 bytes, and packets of a " +
    'running session only from a source that has opened one.',
  limits: [copiesPass, "Games that changed RakNet's message numbers or its fixed bytes are not recognised."],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 19132, 19133)],
  memory: 'source',
  needsReturnPath: false,
};
