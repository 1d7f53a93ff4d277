/** Packets that filter kind 29, Web server, is held to: those of the kinds that it is made of, on a web server's ports. */
import type { FilterVector } from '../filter-vector.ts';
import { quicVectors } from './quic.vectors.ts';
import { tcpSynProtectVectors } from './tcp-syn-protect.vectors.ts';

export const webVectors: readonly FilterVector[] = [
  ...tcpSynProtectVectors.map(({ says, ...vector }) => ({ says: `TCP: ${says}`, ...vector })),
  ...quicVectors.map(({ says, ...vector }) => ({ says: `QUIC: ${says}`, ...vector })),
  {
    says: 'ports of neither: it looks at 80 and 443 alone',
    steps: [
      { from: 'client', transport: 'tcp', serverPort: 22, expect: 'pass' },
      { from: 'client', transport: 'udp', serverPort: 80, expect: 'pass' },
    ],
  },
];
