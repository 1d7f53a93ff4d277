/** Owns filter kind 29, Web server: what it recognises and where, and what it cannot do. */
import { bothFamilies, type FilterKind, to } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import { compileQuic, judgeQuic, quicMemory, quicMeters } from '../quic-datagram.ts';
import { settlingMeter } from '../settling-meter.ts';
import { compileBehindProxy, judgeBehindProxy } from '../syn-proxy.ts';
import { webVectors } from './web.vectors.ts';

function judge(view: FilterView): FilterFinding {
  return view.transport === 'tcp' ? judgeBehindProxy(view) : judgeQuic(view);
}

export const web: FilterKind = {
  id: 29,
  name: 'web',
  label: 'Web server',
  description:
    'Protects a web server: new TCP connections are answered by SYN cookies and bounded for each source, and UDP ' +
    'is taken for QUIC and held to its form.',
  limits: [
    'Requests are not looked at: a flood of well-formed ones over real connections is for the server or a proxy ' +
      'before it.',
    'Many clients behind one address share its limit.',
    'What is said of tcp-syn-protect and quic holds here too.',
  ],
  families: bothFamilies,
  transports: ['tcp', 'udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('tcp', 80), to('tcp', 443), to('udp', 443)],
  memory: 'connection',
  needsReturnPath: true,
  enforcement: {
    tracking: 'all but SYNs',
    settles: true,
    remembers: quicMemory,
    meters: [...quicMeters, settlingMeter],
    judge,
    compile: (text) => ({ tcp: compileBehindProxy(text), udp: compileQuic(text) }),
    vectors: webVectors,
  },
};
