/**
 * Kinds of filters made for tests, so that what the compiler owes every kind is tested whatever the real ones need at
 * the moment. Never in the catalogue, never used outside tests.
 */
import { bothFamilies, type FilterKind, to } from '../../filter/filter-kind.ts';

const words = { label: 'test', description: 'test', limits: [], memory: 'connection', needsReturnPath: true } as const;
const judge = () => ({ outcome: 'discard', why: 'nothing passes' }) as const;

/** Has every kind of set and chain that a filter can have: UDP, all ports. */
export const rememberingKind: FilterKind = {
  ...words,
  id: 9001,
  name: 'test-remembering',
  families: bothFamilies,
  transports: ['udp', 'icmp'],
  destinationPorts: 'optional',
  defaultPorts: [],
  enforcement: {
    tracking: 'flows',
    settles: true,
    remembers: { seconds: 30, sources: 100 },
    meters: [
      { name: 'source', of: 'source', packetsPerSecond: 5, burst: 5 },
      { name: 'sum', of: 'destination', packetsPerSecond: 50, burst: 50 },
    ],
    judge,
    compile: ({ established, known, settling, remember, above, branch, pass, discard }) => ({
      udp: [
        `${established} ${pass}`,
        `${known} ${pass}`,
        `${settling} ${remember} ${pass}`,
        `@ih,0,8 0x01 ${branch('opens', [`${above('sum')} ${discard}`, `${remember} ${pass}`])}`,
      ],
      icmp: [`${above('source')} ${discard}`, pass],
    }),
    vectors: [],
  },
};

/** SYNs to 80, 443 and 8443 are not seen by conntrack, all other traffic is; everything passes. */
export const proxyKind: FilterKind = {
  ...words,
  id: 9002,
  name: 'test-proxy',
  families: bothFamilies,
  transports: ['tcp'],
  destinationPorts: 'optional',
  defaultPorts: [to('tcp', 80), to('tcp', 443), to('tcp', 8443)],
  enforcement: {
    tracking: 'all but SYNs',
    settles: false,
    meters: [],
    judge,
    compile: ({ established, pass }) => ({ tcp: [`${established} ${pass}`, pass] }),
    vectors: [],
  },
};

/** Passes what belongs to a flow that was answered, and what begins with the octet 1: UDP, all ports. */
export const answeredKind: FilterKind = {
  ...words,
  id: 9004,
  name: 'test-answered',
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [],
  enforcement: {
    tracking: 'flows',
    settles: false,
    meters: [],
    judge,
    compile: ({ established, pass }) => ({ udp: [`${established} ${pass}`, `@ih,0,8 0x01 ${pass}`] }),
    vectors: [],
  },
};

/** Passes what conntrack calls established, and SYNs; while it settles, everything: TCP and UDP, all ports. */
export const establishedKind: FilterKind = {
  ...words,
  id: 9005,
  name: 'test-established',
  families: bothFamilies,
  transports: ['tcp', 'udp'],
  destinationPorts: 'optional',
  defaultPorts: [],
  enforcement: {
    tracking: 'flows',
    settles: true,
    meters: [],
    judge,
    compile({ established, settling, pass }) {
      const known = [`${established} ${pass}`, `${settling} ${pass}`];
      return { tcp: [...known, `@th,88,24 & 0x17 == 0x02 ${pass}`], udp: known };
    },
    vectors: [],
  },
};
