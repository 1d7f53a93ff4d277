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
    'Protects a web server: TCP as tcp-syn-protect does, with at most 200 new connections a second of one source, and UDP as ' +
    'quic does. Whoever opens more is refused new ones for 5 seconds, with a reset. Only connections whose client has brought ' +
    'back its cookie count, so that forged SYNs keep nobody out.',
  limits: [
    'Requests are not looked at: a flood of well-formed ones over real connections is for the server or a proxy ' +
      'before it.',
    'Many clients behind one address share its limit, of which 1000 connections at once are free.',
    'Connections that are refused with a reset are not among the hits.',
    'What else is said of tcp-syn-protect and quic holds here too.',
  ],
  families: bothFamilies,
  transports: ['tcp', 'udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('tcp', 80), to('tcp', 443), to('udp', 443)],
  memory: 'connection',
  needsReturnPath: true,
  enforcement: {
    tracking: 'all but SYNs',
    tracks: ['tcp'],
    settles: true,
    remembers: quicMemory,
    meters: [
      // Hundreds of users behind one address open their pages.
      { name: 'connections', of: 'source', packetsPerSecond: 200, burst: 1000 },
      ...quicMeters,
      settlingMeter,
    ],
    // The probe with which a client asks whether the window is open comes within a second.
    openings: { meter: 'connections', refusedSeconds: 5 },
    judge,
    compile: (text) => ({ tcp: compileBehindProxy(text, 'bounds openings'), udp: compileQuic(text) }),
    vectors: webVectors,
  },
};
