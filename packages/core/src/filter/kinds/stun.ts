/** Owns filter kind 25, STUN: what it recognises and where, what that is in the kernel, and what it cannot do. */
import { bothFamilies, type FilterKind, mostRemembered, to } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { octetsAt } from '../octets.ts';
import { reaches, wholeWords } from '../payload-text.ts';
import { learningMeter } from '../settling-meter.ts';
import { copiedOpenings } from '../source-memory.ts';
import { stunVectors } from './stun.vectors.ts';

/**
 * RFC 8489, 5: two zero bits, a type of 14, a length in whole words, the magic cookie, a transaction's id: 20 octets. The
 * type's bits 0x0110 are the class: zero in requests. RFC 8656, 5 and 12.4: methods of TURN; what a relay's client sends
 * to a peer goes as channel data, which has the channel's number and a length. RFC 8656 has numbers up to 0x4fff alone,
 * coturn 4.6 and others that go by RFC 5766 choose from all with the first bits 01.
 */
const header = 20;
const cookie = 0x2112a442;
const turnRequests: readonly number[] = [0x0003, 0x0004, 0x0008, 0x0009];
const channelHeader = 4;

function judge({ payload, known, settling }: FilterView): FilterFinding {
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  const channelData = ((octetsAt(payload, 0, 1) ?? 0) & 0xc0) === 0x40 && payload.length >= channelHeader;
  if (!channelData && !isMessage(payload))
    return { outcome: 'discard', why: 'neither a STUN message nor channel data' };
  const type = octetsAt(payload, 0, 2) ?? 0;
  if (!channelData && (type & 0x0110) === 0) {
    const why = 'a STUN request';
    if (known) return { outcome: 'pass', why, charges: ['requests'], remembers: true };
    if (!turnRequests.includes(type)) return { outcome: 'pass', why, charges: ['requests'] };
    return { outcome: 'pass', why: 'a request to a relay', charges: ['requests', 'openings'], remembers: true };
  }
  if (known) return { outcome: 'pass', why: "a relay's client", charges: ['relayed'], remembers: true };
  if (settling) {
    const why = 'what known sources may send, while the filter settles';
    return { outcome: 'pass', why, charges: ['relayed', learningMeter.name], remembers: true };
  }
  const what = channelData ? 'channel data' : 'a STUN answer or indication';
  return { outcome: 'discard', why: `${what} of a source that has asked for no relay` };
}

function isMessage(payload: Uint8Array): boolean {
  return (
    payload.length >= header &&
    payload.length % 4 === 0 &&
    (octetsAt(payload, 0, 1) ?? 255) < 0x40 &&
    (octetsAt(payload, 2, 2) ?? 1) % 4 === 0 &&
    octetsAt(payload, 4, 4) === cookie
  );
}

function compile({ above, branch, discard, known, pass, remember, settling }: KindText) {
  // Where no more can be remembered, the packet passes all the same.
  const remembered = [`${remember} ${pass}`, pass];
  const go = (...meters: string[]) => [...meters.map((meter) => `${above(meter)} ${discard}`), ...remembered];
  const client = branch('client', go('relayed'));
  const learn = branch('learn', go('relayed', learningMeter.name));
  const open = branch('open', go('openings'));
  const request = branch('request', [
    `${above('requests')} ${discard}`,
    `${known} ${remember} ${pass}`,
    ...turnRequests.map((type) => `@ih,0,16 0x${type.toString(16).padStart(4, '0')} ${open}`),
    pass,
  ]);
  const channelData = `@ih,0,8 0x40-0x7f ${reaches(channelHeader)}`;
  const message = `@ih,0,64 & 0xc0000003ffffffff == 0x000000002112a442 ${wholeWords} ${reaches(header)}`;
  return {
    udp: [
      `${channelData} ${known} ${client}`,
      `@ih,0,64 & 0xc1100003ffffffff == 0x000000002112a442 ${wholeWords} ${reaches(header)} ${request}`,
      `${message} ${known} ${client}`,
      `${settling} ${message} ${learn}`,
      `${settling} ${channelData} ${learn}`,
    ],
  };
}

export const stun: FilterKind = {
  id: 25,
  name: 'stun',
  label: 'STUN and TURN',
  description:
    "Passes STUN requests: two zero bits, the protocol's magic cookie, whole words. A source that asked for a relay " +
    '(TURN) is known until 10 minutes after its last packet: its channel data and indications pass too. 100 such sources ' +
    'a second (2,000 at once) may begin; each source may send 500 requests and, when it is known, 50,000 other packets a second.',
  limits: [
    copiedOpenings,
    "STUN answers pass from known sources only: an agent's own port (ICE, WebRTC) needs rtp instead.",
    "Whether a message's length fits its datagram is not compared.",
    "A relay's own addresses, where peers send to, are not its port: they carry whatever the peers send.",
    'TURN over TCP, TLS and DTLS is not looked at.',
    'Clients older than RFC 5389, which send no cookie, are refused.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 3478)],
  memory: 'source',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: true,
    remembers: { seconds: 600, sources: mostRemembered },
    meters: [
      { name: 'requests', of: 'source', packetsPerSecond: 500, burst: 1000 },
      { name: 'relayed', of: 'source', packetsPerSecond: 50_000, burst: 50_000 },
      { name: 'openings', of: 'destination', packetsPerSecond: 100, burst: 2000 },
      learningMeter,
    ],
    judge,
    compile,
    vectors: stunVectors,
  },
};
