/** Owns filter kind 2, TCP only of known connections: what it recognises and where, and what it cannot do. */
import { bothFamilies, type FilterKind } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { settlingMeter } from '../settling-meter.ts';
import { synSum } from '../syn-meters.ts';
import { hasFlags, isOpening, judgeSegment, tcpFlag } from '../tcp-segment.ts';
import { tcpSymmetricVectors } from './tcp-symmetric.vectors.ts';

const { fin, syn, rst, ack, urg } = tcpFlag;

/** For servers of any kind. In two minutes, 240 000 places in conntrack: a table of 262 144 has room for one such address. */
const synsPerSecond = 2000;

function judge(view: FilterView): FilterFinding {
  const segment = judgeSegment(view);
  if ('outcome' in segment) return segment;
  const { flags } = segment;
  if (isOpening(flags)) return { outcome: 'pass', why: 'a SYN', charges: ['source', 'sum'] };
  if (!view.settling) return { outcome: 'discard', why: 'part of no known connection' };
  const why = 'perhaps part of a connection that ran before the filter';
  return { outcome: 'pass', why, charges: [settlingMeter.name] };
}

function compile({ above, branch, discard, established, pass, settling }: KindText) {
  const running = branch('running', [`${above(settlingMeter.name)} ${discard}`, pass]);
  const opening = branch('opening', [`${above('source')} ${discard}`, `${above('sum')} ${discard}`, pass]);
  return {
    tcp: [
      `${established} ${pass}`,
      `${hasFlags(syn, fin | rst | ack)} ${opening}`,
      `${settling} ${hasFlags(ack, syn | rst)} ${running}`,
      `${settling} ${hasFlags(rst, syn | fin | urg)} ${running}`,
      `${settling} ${hasFlags(syn | ack, fin | rst | urg)} ${running}`,
    ],
  };
}

export const tcpSymmetric: FilterKind = {
  id: 2,
  name: 'tcp-symmetric',
  label: 'TCP only of known connections',
  description:
    'Passes TCP packets only of connections whose handshake the router has seen in both directions; floods of ' +
    'stray ACK, SYN-ACK, RST and data packets are discarded, and so are combinations of flags that no TCP sends.',
  limits: [
    'One source may send 100 SYNs a second (300 at once).',
    'A connection that ran before and is silent in these seconds goes on only when the server sends first.',
  ],
  families: bothFamilies,
  transports: ['tcp'],
  destinationPorts: 'optional',
  defaultPorts: [],
  memory: 'connection',
  needsReturnPath: true,
  enforcement: {
    tracking: 'flows',
    settles: true,
    meters: [{ name: 'source', of: 'source', packetsPerSecond: 100, burst: 300 }, synSum(synsPerSecond), settlingMeter],
    judge,
    compile,
    vectors: tcpSymmetricVectors,
  },
};
