/** Owns filter kind 27, SIP: what it recognises and where, what that is in the kernel, and what it cannot do. */
import { bothFamilies, type FilterKind, mostRemembered, to } from '../filter-kind.ts';
import { hexOf } from '../filter-vector.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { holdsAt, octetsAt } from '../octets.ts';
import { reaches, wholeWords } from '../payload-text.ts';
import { copiedOpenings } from '../source-memory.ts';
import { sipVectors } from './sip.vectors.ts';

/**
 * RFC 3261, 7.1 and 25.1: a request is a method in capitals, a blank and a URI, whose scheme begins with a letter (sip,
 * sips, tel, urn of emergency calls, …); an answer is `SIP/2.0 ` and a code from 100 to 699. The methods of RFC 3261, 3262,
 * 3311, 3428, 3515, 3903, 6086 and 6665, the frequent ones first.
 */
const methods = [
  'REGISTER',
  'INVITE',
  'ACK',
  'BYE',
  'OPTIONS',
  'CANCEL',
  'SUBSCRIBE',
  'NOTIFY',
  'PUBLISH',
  'MESSAGE',
  'INFO',
  'UPDATE',
  'PRACK',
  'REFER',
] as const;
const answer = 'SIP/2.0 ';

/** Empty lines, zeros and the like, none of which is longer; RFC 5626, 4.4.2: STUN. */
const longestKeepAlive = 4;

function judge({ payload, known }: FilterView): FilterFinding {
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  if (isMessage(payload)) {
    const charges = known ? ['source'] : ['source', 'openings'];
    return { outcome: 'pass', why: 'a SIP request or answer', charges, remembers: true };
  }
  const keepAlive = payload.length <= longestKeepAlive || isBinding(payload);
  if (!keepAlive) return { outcome: 'discard', why: 'neither a SIP request nor an answer' };
  if (!known) return { outcome: 'discard', why: 'no SIP was heard from this source' };
  return { outcome: 'pass', why: 'a keep-alive', charges: ['source'], remembers: true };
}

function isMessage(payload: Uint8Array): boolean {
  if (holdsAt(payload, 0, Buffer.from(answer))) return isAmong(octetsAt(payload, answer.length, 1), 0x30, 0x37);
  return methods.some(
    (method) =>
      holdsAt(payload, 0, Buffer.from(`${method} `)) && isAmong(octetsAt(payload, method.length + 1, 1), 0x40, 0x7f),
  );
}

function isAmong(octet: number | undefined, first: number, last: number): boolean {
  return octet !== undefined && octet >= first && octet <= last;
}

/** A STUN Binding request (RFC 8489, 5). */
function isBinding(payload: Uint8Array): boolean {
  const { length } = payload;
  if (length < 20 || length % 4 !== 0 || octetsAt(payload, 0, 2) !== 1) return false;
  return octetsAt(payload, 4, 4) === 0x2112a442;
}

/** `text` at the beginning, and bits of the octet behind it. */
function begins(text: string, mask: string, value: string): string {
  return `@ih,0,${(text.length + 1) * 8} & 0x${'ff'.repeat(text.length)}${mask} == 0x${hexOf(text)}${value}`;
}

function compile({ above, branch, discard, known, pass, remember }: KindText) {
  const message = branch('message', [
    `${above('source')} ${discard}`,
    `${known} ${remember} ${pass}`,
    `${above('openings')} ${discard}`,
    `${remember} ${pass}`,
    // Where no more can be remembered, the packet passes all the same.
    pass,
  ]);
  const keepAlive = branch('alive', [`${above('source')} ${discard}`, `${remember} ${pass}`]);
  const binding = `@ih,0,64 & 0xffff0000ffffffff == 0x000100002112a442 ${wholeWords} ${reaches(20)}`;
  const other = branch('other', [
    `${binding} ${known} ${keepAlive}`,
    `${reaches(longestKeepAlive + 1)} ${discard}`,
    `${known} ${keepAlive}`,
  ]);
  return {
    udp: [
      // What begins with none of the letters A to U is no SIP: one look instead of fifteen.
      `@ih,0,8 != 0x41-0x55 ${other}`,
      `${begins(answer, 'f8', '30')} ${message}`,
      ...methods.map((method) => `${begins(`${method} `, 'c0', '40')} ${message}`),
      other,
    ],
  };
}

export const sip: FilterKind = {
  id: 27,
  name: 'sip',
  label: 'SIP',
  description:
    'Passes SIP over UDP: packets that begin with a request method and a URI, or with SIP/2.0 and a code; and keep-alives ' +
    '(up to 4 bytes, or STUN) of sources whose SIP was heard in the last 2 minutes. Each source may send 1,000 packets a ' +
    'second; sources that were not heard in that time 500 a second together (5,000 at once).',
  limits: [
    copiedOpenings,
    'Scanners that speak correct SIP pass.',
    'Methods that are no part of the standards (RFC 3261 and its extensions) are discarded.',
    'SIP over TCP, TLS and WebSocket is not looked at; nor is media, which rtp is for.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 5060)],
  memory: 'source',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: false,
    remembers: { seconds: 120, sources: mostRemembered },
    meters: [
      { name: 'source', of: 'source', packetsPerSecond: 1000, burst: 2000 },
      { name: 'openings', of: 'destination', packetsPerSecond: 500, burst: 5000 },
    ],
    judge,
    compile,
    vectors: sipVectors,
  },
};
