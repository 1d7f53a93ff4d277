/** Owns filter kind 28, RTP: what it recognises and where, what that is in the kernel, and what it cannot do. */
import { bothFamilies, type FilterKind, mostRemembered } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { octetsAt } from '../octets.ts';
import { reaches, wholeWords } from '../payload-text.ts';
import { copiedOpenings } from '../source-memory.ts';
import { rtpVectors } from './rtp.vectors.ts';

/**
 * RFC 7983, 7: what shares a port is told apart by the first octet. RFC 3550, 5.1 and 6.4: version 2, 12 octets of RTP,
 * at least 8 of RTCP; RFC 5761, 4: RTCP's types are 192 to 223, and RTP uses none that look like them. RFC 8489: STUN.
 * RFC 6347: DTLS, which in WebRTC comes after STUN. RFC 6189, 5: ZRTP, by its cookie.
 */
const rtpHeader = 12;
const rtcpHeader = 8;
const zrtpHeader = 12;

function judge({ payload, known }: FilterView): FilterFinding {
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  const what = opening(payload);
  if (what !== undefined) {
    return { outcome: 'pass', why: what, charges: known ? ['source'] : ['source', 'openings'], remembers: true };
  }
  if (!isDtls(payload)) return { outcome: 'discard', why: 'nothing that belongs to a media session' };
  if (known) return { outcome: 'pass', why: 'DTLS of a known source', charges: ['source'], remembers: true };
  return { outcome: 'discard', why: 'DTLS of a source that has sent neither STUN nor media' };
}

function opening(payload: Uint8Array): string | undefined {
  const first = octetsAt(payload, 0, 1) ?? 0;
  const second = octetsAt(payload, 1, 1) ?? 0;
  const { length } = payload;
  if (first >> 6 === 2) {
    if (second >= 192 && second <= 223) return length >= rtcpHeader ? 'RTCP' : undefined;
    // Without the marker, the first of its bits, those are 64 to 95.
    return length >= rtpHeader && (second < 64 || second > 95) ? 'RTP' : undefined;
  }
  if (first >> 6 === 0 && octetsAt(payload, 4, 4) === 0x2112a442) {
    const whole = length % 4 === 0 && (octetsAt(payload, 2, 2) ?? 1) % 4 === 0;
    return length >= 20 && whole ? 'STUN' : undefined;
  }
  if (first >> 4 === 1 && octetsAt(payload, 4, 4) === 0x5a525450) return length >= zrtpHeader ? 'ZRTP' : undefined;
  return undefined;
}

/** Records of DTLS 1.0 to 1.2 with their version, or encrypted ones of 1.3, which begin with the bits 001. */
function isDtls(payload: Uint8Array): boolean {
  const type = octetsAt(payload, 0, 1) ?? 0;
  const version = octetsAt(payload, 1, 2);
  if (type >= 20 && type <= 26) return (version === 0xfefd || version === 0xfeff) && payload.length >= 13;
  return type >= 0x20 && type <= 0x3f && payload.length >= 18;
}

function compile({ above, branch, discard, known, pass, remember }: KindText) {
  const media = branch('media', [
    `${above('source')} ${discard}`,
    `${known} ${remember} ${pass}`,
    `${above('openings')} ${discard}`,
    `${remember} ${pass}`,
    // Where no more can be remembered, the packet passes all the same.
    pass,
  ]);
  return {
    udp: [
      `@ih,0,16 & 0xc0e0 == 0x80c0 ${reaches(rtcpHeader)} ${media}`,
      `@ih,0,8 & 0xc0 == 0x80 @ih,8,8 & 0xe0 != 0x40 @ih,8,8 & 0xe0 != 0xc0 ${reaches(rtpHeader)} ${media}`,
      `@ih,0,64 & 0xc0000003ffffffff == 0x000000002112a442 ${wholeWords} ${reaches(20)} ${media}`,
      `@ih,0,64 & 0xf0000000ffffffff == 0x100000005a525450 ${reaches(zrtpHeader)} ${media}`,
      // fefd and feff differ in one bit.
      `@ih,0,8 20-26 @ih,8,16 & 0xfffd == 0xfefd ${reaches(13)} ${known} ${media}`,
      `@ih,0,8 0x20-0x3f ${reaches(18)} ${known} ${media}`,
    ],
  };
}

export const rtp: FilterKind = {
  id: 28,
  name: 'rtp',
  label: 'RTP and WebRTC media',
  description:
    'Passes RTP, SRTP and RTCP, which begin with version 2, and what shares their port: STUN with its cookie, ZRTP, and ' +
    'DTLS of sources known by one of them. A source is known until a minute after its last packet. Each may send 20,000 ' +
    'packets a second; sources that are not known yet 1,000 a second together (4,000 at once).',
  limits: [
    'Weak: two bits are all there is to recognise; the limits on each source and on new ones do most of the work.',
    copiedOpenings,
    'A trunk with more than 400 calls from one address needs a rule that accepts it.',
    "TURN's channel data and QUIC on the same port are discarded.",
    'It has no port of its own: port.dst must say where it is spoken.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'required',
  defaultPorts: [],
  memory: 'source',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: false,
    remembers: { seconds: 60, sources: mostRemembered },
    meters: [
      { name: 'source', of: 'source', packetsPerSecond: 20_000, burst: 20_000 },
      { name: 'openings', of: 'destination', packetsPerSecond: 1000, burst: 4000 },
    ],
    judge,
    compile,
    vectors: rtpVectors,
  },
};
