/** Owns filter kind 28, RTP: what it recognises and where, and what it cannot do. */
import { bothFamilies, type FilterKind } from '../filter-kind.ts';

export const rtp: FilterKind = {
  id: 28,
  name: 'rtp',
  label: 'RTP',
  description: 'Passes RTP, SRTP and RTCP, which begin with version 2, up to a rate for each source.',
  limits: [
    'Weak: two bits are all there is to recognise; the limit on each source does most of the work.',
    'STUN, DTLS and ZRTP on the same port, as WebRTC uses them, are discarded.',
    'It has no port of its own: port.dst must say where it is spoken.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'required',
  defaultPorts: [],
  memory: 'source',
  needsReturnPath: false,
};
