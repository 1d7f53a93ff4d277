/** Owns filter kind 1, TCP SYN flood protection: what it recognises and where, and what it cannot do. */
import { bothFamilies, type FilterKind } from '../filter-kind.ts';
import { settlingMeter } from '../settling-meter.ts';
import { compileBehindProxy, judgeBehindProxy } from '../syn-proxy.ts';
import { tcpSynProtectVectors } from './tcp-syn-protect.vectors.ts';

export const tcpSynProtect: FilterKind = {
  id: 1,
  name: 'tcp-syn-protect',
  label: 'TCP SYN flood protection',
  description:
    "Answers each new TCP connection in the server's place, by SYN cookies, and hands it over once the client has " +
    'answered back: SYNs from forged addresses never reach the server. Packets with combinations of flags that no ' +
    'TCP sends are discarded.',
  limits: [
    'Connections from real addresses pass, however many; ratelimit and rules bound them.',
    'The router takes part in the handshake. Clients with timestamps get window scaling and selective acknowledgements; others, ' +
      'which Windows is by default, get neither: a window of 64 KiB makes their transfers over long ways slow, and losses cost ' +
      'more. Other options, such as ECN, Fast Open and Multipath TCP, are not negotiated.',
    'Clients are told to send segments of at most 1390 octets (IPv6: 1370) and to take windows for scaled by 7, as Linux ' +
      'servers have it: uploads to a server with a smaller scale are slower.',
    'A port on which nothing listens looks open until the handshake is done.',
    "A server does not learn from ICMP that a path carries less than the client's segment size: what the message quotes is " +
      'numbered otherwise on its side.',
    'While it settles, SYNs are met from the first moment on.',
    'A connection that ran before and is silent in these seconds goes on only when the server sends first.',
    'ACKs without a valid cookie are discarded, but do not count among the hits.',
    'A rule that accepts SYNs, but not the ACKs that follow, takes them past the filter, and no connection comes about.',
  ],
  families: bothFamilies,
  transports: ['tcp'],
  destinationPorts: 'optional',
  defaultPorts: [],
  memory: 'connection',
  needsReturnPath: true,
  enforcement: {
    tracking: 'all but SYNs',
    settles: true,
    meters: [settlingMeter],
    judge: judgeBehindProxy,
    compile: (text) => ({ tcp: compileBehindProxy(text) }),
    vectors: tcpSynProtectVectors,
  },
};
