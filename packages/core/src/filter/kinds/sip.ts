/** Owns filter kind 27, SIP: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';

export const sip: FilterKind = {
  id: 27,
  name: 'sip',
  label: 'SIP',
  description: 'Passes SIP over UDP: packets that begin with the name of a request method or with SIP/.',
  limits: [
    copiesPass,
    'Scanners that speak correct SIP pass.',
    'Keep-alives that are empty lines or STUN are discarded.',
    'SIP over TCP, TLS and WebSocket is not looked at.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 5060)],
  memory: 'none',
  needsReturnPath: false,
};
