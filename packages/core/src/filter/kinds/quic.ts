/** Owns filter kind 23, QUIC and HTTP/3: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';
import { compileQuic, judgeQuic, quicMemory, quicMeters } from '../quic-datagram.ts';
import { quicVectors } from './quic.vectors.ts';

export const quic: FilterKind = {
  id: 23,
  name: 'quic',
  label: 'QUIC and HTTP/3',
  description:
    'Passes QUIC version 1 and 2: the first packet of a connection must fill 1200 octets, and other packets pass only ' +
    'from sources that have sent such a one, for 90 seconds after their last packet.',
  limits: [
    copiesPass,
    'One source may open 100 connections a second (400 at once).',
    'Other versions, drafts too, are discarded, so that client and server cannot negotiate one.',
    'A client whose address changes during a connection has to begin anew; its port may change.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 443)],
  memory: 'source',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: true,
    remembers: quicMemory,
    meters: quicMeters,
    judge: judgeQuic,
    compile: (text) => ({ udp: compileQuic(text) }),
    vectors: quicVectors,
  },
};
