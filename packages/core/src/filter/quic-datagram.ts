/**
 * Owns what the kinds for QUIC share: which datagrams a client sends, by their first packet, and the same as lines for the
 * kernel. Never decrypts anything, never looks at packets behind the first.
 *
 * RFC 9000, 17, and RFC 9369, 3.2: octet 0 has the form (0x80) and, of long headers, the type (0x30); the version follows,
 * and the length of the destination's connection id at 5. The fixed bit (0x40) is not asked for: RFC 9287 lets both ends
 * agree to clear it, and a client that was here before do so from its first packet on. (ngtcp2 0.12.1 clears it for whole
 * connections.)
 */
import { type KindMeter, mostRemembered } from './filter-kind.ts';
import type { FilterFinding, FilterView } from './judgement.ts';
import type { KindText } from './kind-text.ts';
import { octetsAt } from './octets.ts';
import { learningMeter } from './settling-meter.ts';

/** RFC 9000, 14.1: a client's datagram with an Initial, padding included. */
const leastInitialBytes = 1200;
/** RFC 9000, 7.2: what a client makes up; the server may choose any length for what follows. */
const leastFirstIdBytes = 8;
const mostIdBytes = 20;
/** RFC 9001, 5.4.2: four octets behind the header's first are skipped, sixteen sampled. */
const leastShortBytes = 21;
const udpHeaderBytes = 8;

/** The two bits of each type; a client sends no Retry. */
const versions = [
  { number: 0x00000001, initial: 0, zeroRtt: 1, handshake: 2 },
  { number: 0x6b3343cf, initial: 1, zeroRtt: 2, handshake: 3 },
] as const;

export const quicNewcomers = 600;

/**
 * Hundreds of users behind one address open their pages; the sum counts those who are not known, and the memory has room for
 * all of them (decision 0100). `packets`: of a known source, some 500 Mbit/s.
 */
export const quicMeters: readonly KindMeter[] = [
  { name: 'opening', of: 'source', packetsPerSecond: 100, burst: 400 },
  { name: 'openings', of: 'destination', packetsPerSecond: quicNewcomers, burst: 8000 },
  { name: 'packets', of: 'source', packetsPerSecond: 50_000, burst: 50_000 },
  learningMeter,
];

/** Browsers give up idle connections after 30 s. */
export const quicMemory = { seconds: 90, sources: mostRemembered } as const;

export function judgeQuic({ packet, payload, known, settling }: FilterView): FilterFinding {
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  const first = octetsAt(payload, 0, 1);
  if (first === undefined) return { outcome: 'discard', why: 'no payload' };
  if ((first & 0x80) === 0) {
    if (payload.length < leastShortBytes) {
      return { outcome: 'discard', why: `${payload.length} octets are too few for a short header's packet` };
    }
    return ofKnownSource('a short header', known, settling);
  }
  const number = octetsAt(payload, 1, 4);
  const version = versions.find((each) => each.number === number);
  const idBytes = octetsAt(payload, 5, 1);
  if (version === undefined || idBytes === undefined)
    return { outcome: 'discard', why: 'a long header of no known version' };
  if (idBytes > mostIdBytes) return { outcome: 'discard', why: `a connection id of ${idBytes} octets` };
  switch ((first >> 4) & 3) {
    case version.initial:
      break;
    case version.zeroRtt:
      return ofKnownSource('0-RTT data', known, settling);
    case version.handshake:
      return ofKnownSource('a Handshake packet', known, settling);
    default:
      return { outcome: 'discard', why: 'a Retry, which clients do not send' };
  }
  if (payload.length < leastInitialBytes) {
    return { outcome: 'discard', why: `an Initial of ${payload.length} octets, not ${leastInitialBytes} or more` };
  }
  const bare = payload.length + udpHeaderBytes + (packet.family === 4 ? 20 : 40);
  if (packet.totalLengthBytes !== undefined && packet.totalLengthBytes !== bare) {
    return { outcome: 'discard', why: 'an Initial behind IP options, which QUIC does not use' };
  }
  if (!known && idBytes < leastFirstIdBytes) {
    return { outcome: 'discard', why: `a first Initial with a connection id of ${idBytes} octets` };
  }
  const charges = known ? ['opening'] : ['opening', 'openings'];
  return { outcome: 'pass', why: 'a QUIC Initial', charges, remembers: true };
}

function ofKnownSource(what: string, known: boolean, settling: boolean): FilterFinding {
  if (known) return { outcome: 'pass', why: `${what} from a known source`, charges: ['packets'], remembers: true };
  if (!settling) return { outcome: 'discard', why: `${what} from an unknown source` };
  const why = `${what}, perhaps of a connection that ran before the filter`;
  return { outcome: 'pass', why, charges: [learningMeter.name], remembers: true };
}

/** A memory that is full must not discard what it has no room for: `pass` follows `remember` alone. */
export function compileQuic({ above, branch, discard, family, known, pass, remember, settling }: KindText): string[] {
  const remembered = [`${remember} ${pass}`, pass];
  const opening = branch('opening', [
    `${above('opening')} ${discard}`,
    `${known} ${remember} ${pass}`,
    `${above('openings')} ${discard}`,
    ...remembered,
  ]);
  const going = branch('going', [`${above('packets')} ${discard}`, ...remembered]);
  const running = branch('running', [`${above(learningMeter.name)} ${discard}`, ...remembered]);
  const large = isBareOf(leastInitialBytes, family);
  const initial = branch('initial', [
    `@ih,40,8 >= ${leastFirstIdBytes} ${large} ${opening}`,
    `${known} ${large} ${opening}`,
  ]);
  const vouched = branch('vouched', [`${known} ${going}`, `${settling} ${running}`]);
  const long = branch('long', [
    ...versions.map((version) => `${isType(version.number, version.initial)} ${initial}`),
    ...versions.map((version) => `${isType(version.number, version.handshake)} ${vouched}`),
    ...versions.map((version) => `${isType(version.number, version.zeroRtt)} ${vouched}`),
  ]);
  // A load of one octet that reaches to the least length: its value is free.
  const short = `@ih,${(leastShortBytes - 1) * 8},8 & 0 == 0`;
  return [
    `@ih,0,8 < 0x80 ${short} ${known} ${going}`,
    // A mask, as nft lists two comparisons in a row as a range.
    `@ih,0,8 & 0x80 == 0x80 @ih,40,8 <= ${mostIdBytes} ${long}`,
    `@ih,0,8 < 0x80 ${short} ${settling} ${running}`,
  ];
}

/** Octets 0 to 4: form and type, version. */
function isType(version: number, type: number): string {
  return `@ih,0,40 & 0xb0ffffffff == 0x${(0x80 | (type << 4)).toString(16)}${version.toString(16).padStart(8, '0')}`;
}

/**
 * By the length of the IP header that has no options or extensions, as UDP's own may say more than is there, and a payload
 * cannot be loaded beyond its 255th octet before kernel 6.18.
 */
function isBareOf(payloadBytes: number, family: 4 | 6): string {
  const least = payloadBytes + udpHeaderBytes;
  return family === 4 ? `@nh,0,8 0x45 @nh,16,16 >= ${least + 20}` : `@nh,48,8 17 @nh,32,16 >= ${least}`;
}
