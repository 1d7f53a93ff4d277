/** Owns filter kind 21, OpenVPN over UDP: what it recognises and where, what that is in the kernel, what it cannot do. */
import { bothFamilies, type FilterKind, mostRemembered, to } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { octetsAt } from '../octets.ts';
import { reaches } from '../payload-text.ts';
import { learningMeter } from '../settling-meter.ts';
import { copiedOpenings } from '../source-memory.ts';
import { openvpnUdpVectors } from './openvpn-udp.vectors.ts';

/**
 * OpenVPN's wire protocol (openvpn.net, "OpenVPN Wire Protocol"; opcodes of ssl_pkt.h, 2.6): five bits of opcode, three of
 * key id. A session begins with a client's reset under key id 0: bare, it is session id, no acknowledgement, packet id 0,
 * 14 octets; with tls-auth at least a digest of 16 and 8 more; with tls-crypt 54, as the third version always has.
 */
const opcode = { softReset: 3, dataV1: 6, resetV2: 7, dataV2: 9, resetV3: 10, keyV1: 11 } as const;
const bareReset = 14;
const authenticatedReset = 38;
const encryptedReset = 54;

function judge({ payload, known, settling }: FilterView): FilterFinding {
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  const first = octetsAt(payload, 0, 1);
  if (first === undefined) return { outcome: 'discard', why: 'no payload' };
  const operation = first >> 3;
  if (operation === opcode.resetV2 || operation === opcode.resetV3) return judgeReset(payload, first, known);
  const inSession =
    (operation >= opcode.softReset && operation <= opcode.dataV1) ||
    operation === opcode.dataV2 ||
    operation === opcode.keyV1;
  if (!inSession) return { outcome: 'discard', why: `operation ${operation} is none that clients send` };
  if (known) return { outcome: 'pass', why: 'a packet of a known source', charges: ['source'], remembers: true };
  if (settling) {
    const why = 'the form of a running session, while the filter settles';
    return { outcome: 'pass', why, charges: ['source', learningMeter.name], remembers: true };
  }
  return { outcome: 'discard', why: 'an unknown source must begin with a reset' };
}

function judgeReset(payload: Uint8Array, first: number, known: boolean): FilterFinding {
  if ((first & 7) !== 0) return { outcome: 'discard', why: `a reset under key id ${first & 7}, not 0` };
  if (known && payload.length >= bareReset) {
    return { outcome: 'pass', why: "a known source's reset", charges: ['resets'], remembers: true };
  }
  const least = first >> 3 === opcode.resetV3 ? encryptedReset : authenticatedReset;
  const bare = first >> 3 === opcode.resetV2 && payload.length === bareReset && octetsAt(payload, 9, 5) === 0;
  if (!bare && payload.length < least) {
    return { outcome: 'discard', why: `a reset of ${payload.length} octets that no client sends` };
  }
  return { outcome: 'pass', why: "a client's reset", charges: ['resets', 'openings'], remembers: true };
}

function compile({ above, branch, discard, known, pass, remember, settling }: KindText) {
  const go = (meters: readonly string[]) => [
    ...meters.map((meter) => `${above(meter)} ${discard}`),
    // Where no more can be remembered, the packet passes all the same.
    `${remember} ${pass}`,
    pass,
  ];
  const goOn = branch('session', go(['source']));
  const learn = branch('learn', go(['source', learningMeter.name]));
  const again = branch('again', go(['resets']));
  const open = branch('open', go(['resets', 'openings']));
  const session = ['@ih,0,8 0x48-0x4f', '@ih,0,8 0x18-0x37', '@ih,0,8 0x58-0x5f'];
  return {
    udp: [
      ...session.map((form) => `${form} ${known} ${goOn}`),
      `@ih,0,8 0x38 ${reaches(bareReset)} ${known} ${again}`,
      `@ih,0,8 0x50 ${reaches(bareReset)} ${known} ${again}`,
      `@ih,0,8 0x38 ${reaches(authenticatedReset)} ${open}`,
      `@ih,0,8 0x50 ${reaches(encryptedReset)} ${open}`,
      `@ih,0,8 0x38 ${reaches(bareReset + 1)} ${discard}`,
      `@ih,0,8 0x38 @ih,72,40 0x0000000000 ${open}`,
      ...session.map((form) => `${settling} ${form} ${learn}`),
    ],
  };
}

export const openvpnUdp: FilterKind = {
  id: 21,
  name: 'openvpn-udp',
  label: 'OpenVPN over UDP',
  description:
    "Passes packets whose first byte is one of OpenVPN's operations; a source that is not known yet must begin " +
    "with a client's reset, and is known until 5 minutes after its last packet. 200 such sources a second (2,000 at " +
    'once) may begin; each source may send 50 resets and 200,000 packets a second.',
  limits: [
    'Weak: one byte is all there is to recognise in a packet of a known source.',
    copiedOpenings,
    'A client that is silent for 5 minutes is cut off until it connects anew: keepalive (ping) must be shorter.',
    'A client whose address changes while it is connected (float) is discarded until it connects anew.',
    'The destination must be a server: peers with a static key (secret) send no operations, and a client behind the ' +
      "filter does not get its server's answers.",
    'OpenVPN over TCP is not looked at; patches that scramble the first byte are not recognised.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 1194)],
  memory: 'source',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: true,
    // Room for all who may come in that time; servers push a ping of some seconds to two minutes.
    remembers: { seconds: 300, sources: mostRemembered },
    meters: [
      { name: 'source', of: 'source', packetsPerSecond: 200_000, burst: 200_000 },
      { name: 'resets', of: 'source', packetsPerSecond: 50, burst: 200 },
      { name: 'openings', of: 'destination', packetsPerSecond: 200, burst: 2000 },
      learningMeter,
    ],
    judge,
    compile,
    vectors: openvpnUdpVectors,
  },
};
