/** Owns filter kind 11, Minecraft: Java Edition: what it recognises and where, and what it cannot do. */
import { bothFamilies, type FilterKind, fromDescription, to } from '../filter-kind.ts';

export const minecraftJava: FilterKind = {
  id: 11,
  name: 'minecraft-java',
  label: 'Minecraft: Java Edition',
  description:
    "Passes TCP connections whose first data is the game's handshake or the server list ping of old clients, and " +
    'bounds the new connections of each source.',
  limits: [
    'Bots that speak the protocol pass: who may join is for the server to say.',
    'A connection that begins with a PROXY protocol header is not recognised.',
    fromDescription,
  ],
  families: bothFamilies,
  transports: ['tcp'],
  destinationPorts: 'optional',
  defaultPorts: [to('tcp', 25565)],
  memory: 'connection',
  needsReturnPath: true,
};
