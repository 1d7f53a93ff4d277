/** Owns filter kind 24, DTLS: what it recognises and where, what that is in the kernel, and what it cannot do. */
import { bothFamilies, type FilterKind, mostRemembered } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { octetsAt } from '../octets.ts';
import { reaches } from '../payload-text.ts';
import { learningMeter } from '../settling-meter.ts';
import { copiedOpenings } from '../source-memory.ts';
import { dtlsVectors } from './dtls.vectors.ts';

/**
 * RFC 6347, 4.1: content type, version, epoch (2), sequence number (6), length (2): 13 octets. RFC 9146: type 25 has a
 * connection id in front of the length. RFC 9147, 4: encrypted records of DTLS 1.3 begin with the bits 001 and have at
 * least a sequence number of one octet and 16 of ciphertext behind that.
 */
const recordHeader = 13;
const handshakeHeader = 12;
const shortestEncrypted = 18;
const withConnectionId = 25;

function judge({ payload, known, settling }: FilterView): FilterFinding {
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  if (isFirstFlight(payload)) {
    const charges = known ? ['handshakes'] : ['handshakes', 'openings'];
    return { outcome: 'pass', why: "a handshake's first flight", charges, remembers: true };
  }
  const type = octetsAt(payload, 0, 1) ?? 0;
  const record = type >= 20 && type <= 26 && isVersion(octetsAt(payload, 1, 2)) && payload.length >= recordHeader;
  const encrypted = type >= 0x20 && type <= 0x3f && payload.length >= shortestEncrypted;
  if (!record && !encrypted) return { outcome: 'discard', why: 'no DTLS record' };
  if (known) return { outcome: 'pass', why: 'a record of a known source', charges: ['source'], remembers: true };
  if (record && type === withConnectionId) {
    const why = 'a record with a connection id, from a new source';
    return { outcome: 'pass', why, charges: ['source', 'openings'], remembers: true };
  }
  if (settling) {
    const charges = ['source', learningMeter.name];
    return { outcome: 'pass', why: 'a record, while the filter settles', charges, remembers: true };
  }
  return { outcome: 'discard', why: 'an unknown source must begin with a handshake' };
}

/**
 * Epoch 0, a sequence number below 2^32, a handshake message that begins a session (HelloRequest, ClientHello, ServerHello,
 * HelloVerifyRequest) and is shorter than 65536 octets: RFC 6347, 4.2.2, the same in DTLS 1.3.
 */
function isFirstFlight(payload: Uint8Array): boolean {
  return (
    payload.length >= recordHeader + handshakeHeader &&
    octetsAt(payload, 0, 1) === 22 &&
    isVersion(octetsAt(payload, 1, 2)) &&
    octetsAt(payload, 3, 4) === 0 &&
    (octetsAt(payload, 13, 1) ?? 255) <= 3 &&
    octetsAt(payload, 14, 1) === 0
  );
}

/** DTLS 1.0 and 1.2; 1.3 bears the number of 1.2. */
function isVersion(version: number | undefined): boolean {
  return version === 0xfeff || version === 0xfefd;
}

function compile({ above, branch, discard, known, pass, remember, settling }: KindText) {
  // Where no more can be remembered, the packet passes all the same.
  const remembered = [`${remember} ${pass}`, pass];
  const go = (...meters: string[]) => [...meters.map((meter) => `${above(meter)} ${discard}`), ...remembered];
  const session = branch('session', go('source'));
  const moved = branch('moved', go('source', 'openings'));
  const learn = branch('learn', go('source', learningMeter.name));
  const open = branch('open', [`${above('handshakes')} ${discard}`, `${known} ${remember} ${pass}`, ...go('openings')]);
  // fefd and feff differ in one bit.
  const record = `@ih,0,8 20-26 @ih,8,16 & 0xfffd == 0xfefd ${reaches(recordHeader)}`;
  const encrypted = `@ih,0,8 0x20-0x3f ${reaches(shortestEncrypted)}`;
  const firstFlight = '@ih,0,128 & 0xfffffdffffffff000000000000fcff00 == 0x16fefd00000000000000000000000000';
  return {
    udp: [
      `@ih,0,24 & 0xfffffd == 0x17fefd ${reaches(recordHeader)} ${known} ${session}`,
      `${encrypted} ${known} ${session}`,
      `${firstFlight} ${reaches(recordHeader + handshakeHeader)} ${open}`,
      `${record} ${known} ${session}`,
      `@ih,0,24 & 0xfffffd == 0x19fefd ${reaches(recordHeader)} ${moved}`,
      `${settling} ${record} ${learn}`,
      `${settling} ${encrypted} ${learn}`,
    ],
  };
}

export const dtls: FilterKind = {
  id: 24,
  name: 'dtls',
  label: 'DTLS',
  description:
    'Passes records of DTLS 1.0 to 1.3. A source that is not known yet must begin with the first flight of a handshake, ' +
    'or send a record with a connection id (RFC 9146), and is known until 10 minutes after its last packet. 100 such ' +
    'sources a second (2,000 at once) may begin; each source may send 100 such flights and 100,000 records a second.',
  limits: [
    'Weak once a source is known: three bytes are all there is to recognise, of an encrypted record of DTLS 1.3 three ' +
      'bits; whether a length fits its datagram is not compared.',
    copiedOpenings,
    'A session that was silent for more than 10 minutes, or that has moved to another address without a connection id, ' +
      'has to begin anew.',
    'The version that old AnyConnect servers speak (0x0100) is discarded.',
    'It has no port of its own: port.dst must say where it is spoken. For media of WebRTC there is rtp.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'required',
  defaultPorts: [],
  memory: 'source',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: true,
    remembers: { seconds: 600, sources: mostRemembered },
    meters: [
      { name: 'source', of: 'source', packetsPerSecond: 100_000, burst: 100_000 },
      { name: 'handshakes', of: 'source', packetsPerSecond: 100, burst: 400 },
      { name: 'openings', of: 'destination', packetsPerSecond: 100, burst: 2000 },
      learningMeter,
    ],
    judge,
    compile,
    vectors: dtlsVectors,
  },
};
