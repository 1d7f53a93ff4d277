/** Owns filter kind 3, UDP amplification: what it recognises and where, and what it cannot do. */
import { bothFamilies, type FilterKind } from '../filter-kind.ts';

/** Of services that answer a small question with a large answer, to whoever is named as the asker. */
const reflectorPorts = [17, 19, 53, 69, 111, 123, 137, 161, 389, 427, 520, 1900, 3283, 3702, 5683, 10001, 11211, 27960];

export const udpAmplification: FilterKind = {
  id: 3,
  name: 'udp-amplification',
  label: 'UDP amplification',
  description:
    'Discards UDP packets from the ports of services that are abused as reflectors, such as DNS, NTP, SSDP, CLDAP ' +
    'and memcached, unless they answer what the destination asked; and UDP fragments whose first one did not pass.',
  limits: [
    'Reflectors on other ports pass; port.src names the ports to look at.',
    'A client that happens to send from one of these ports is taken for a reflector.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: reflectorPorts.map((port) => ({ side: 'src', transport: 'udp', start: port, end: port })),
  memory: 'connection',
  needsReturnPath: true,
};
