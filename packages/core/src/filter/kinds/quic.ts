/** Owns filter kind 23, QUIC and HTTP/3: what it recognises and where, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';
import { compileQuic, judgeQuic, quicMemory, quicMeters } from '../quic-datagram.ts';
import { settlingMeter } from '../settling-meter.ts';
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
    'One source may open 100 connections a second, all together 5000 to one address: during a flood of first packets from ' +
      'forged sources wanted ones are lost too, while connections that are open go on.',
    'The router remembers 65 535 sources: a flood that forges more within 90 seconds keeps newcomers from being known.',
    'Other versions, drafts too, are discarded, so that client and server cannot negotiate one.',
    'A client whose address changes during a connection has to begin anew; its port may change.',
    'For 10 seconds after it is switched on, packets of connections that ran before pass, 5000 a second, and so does a flood ' +
      'of their like.',
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
    meters: [...quicMeters, settlingMeter],
    judge: judgeQuic,
    compile: (text) => ({ udp: compileQuic(text) }),
    vectors: quicVectors,
  },
};
