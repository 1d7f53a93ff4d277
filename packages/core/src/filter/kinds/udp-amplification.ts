/** Owns filter kind 3, UDP amplification: what it recognises and where, and what it cannot do. */
import { bothFamilies, type FilterKind } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { udpAmplificationVectors } from './udp-amplification.vectors.ts';

/**
 * Of services that answer a small question with a large answer, to whoever is named as the asker: those of CISA's alert
 * TA14-017A that have a port of their own, and what was abused since (427 SLP, 1434 SQL Server's browser, 3283 Apple
 * Remote Desktop, 3389 RDP, 3702 WS-Discovery, 5683 CoAP, 10001 Ubiquiti, 11211 memcached). None from the range of which
 * Linux takes clients' ports (32768 to 60999).
 */
const reflectorPorts = [
  17, 19, 53, 69, 111, 123, 137, 161, 389, 427, 520, 1434, 1900, 3283, 3389, 3702, 5353, 5683, 10001, 11211, 27960,
];

function judge({ established }: FilterView): FilterFinding {
  if (established) return { outcome: 'pass', why: 'of a flow that the router has seen in both directions' };
  return { outcome: 'discard', why: "from a reflector's port, and no answer to anything" };
}

/** Fragments are put together before they get here, as the destination's flows are seen. */
function compile({ established, pass }: KindText) {
  return { udp: [`${established} ${pass}`] };
}

export const udpAmplification: FilterKind = {
  id: 3,
  name: 'udp-amplification',
  label: 'UDP amplification',
  description:
    'Discards UDP packets from the ports of services that are abused as reflectors, such as DNS, NTP, SSDP, CLDAP ' +
    'and memcached, unless they answer what the destination asked; and UDP fragments whose datagram is not complete.',
  limits: [
    'Reflectors on other ports pass; port.src names the ports to look at.',
    'A client that happens to send from one of these ports is taken for a reflector.',
    'What the destination asked before the filter was switched on has to be asked again: a flood is met at once.',
    'The router keeps fragments until their datagram is complete, within its own bounds: during a flood of them wanted ' +
      'fragments are lost too.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: reflectorPorts.map((port) => ({ side: 'src', transport: 'udp', start: port, end: port })),
  memory: 'connection',
  needsReturnPath: true,
  enforcement: {
    tracking: 'flows',
    // An answer that is lost is asked for again within seconds, while a reflected flood would pass for as long.
    settles: false,
    // No flow can be had without the destination's asking: its own questions are the bound.
    meters: [],
    judge,
    compile,
    vectors: udpAmplificationVectors,
  },
};
