/** Owns filter kind 16, San Andreas Multiplayer: what it recognises and where, what that is in the kernel, what it cannot do. */
import { copiesPass, type FilterKind, mostRemembered, ownQuestionsLost, to } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { holdsAt, octetsAt } from '../octets.ts';
import { reaches } from '../payload-text.ts';
import { judgeOpening, judgeSession, openingLines, sessionLines, sessionMeters } from '../source-memory.ts';
import { sampVectors } from './samp.vectors.ts';

/**
 * Queries (open.mp's documentation, "SA:MP Query Mechanism", and its server's query.cpp): SAMP, the server's address, its
 * port with the lower octet first, a letter; `p` has four octets more, `x` two lengths and texts.
 *
 * The game (open.mp's RakNet, SAMPRakNet.cpp): a sum whose bits lie in aa, then the packet with each octet exchanged by
 * a table, every second one mixed with the port. A connection begins with a packet of 3 octets, whose number 24 is always
 * sent as 1e; no other packet of 2 or more octets is shorter.
 */
const magic = Buffer.from('SAMP', 'latin1');
const base = 11;
/** Octets of a query by its letter. */
const exact: ReadonlyMap<number, number> = new Map([
  [0x69, base],
  [0x72, base],
  [0x63, base],
  [0x64, base],
  [0x70, base + 4],
]);
const remoteControl = { letter: 0x78, least: base + 2 } as const;
const requestOctets = 4;
const requestNumber = 0x1e;
const outsideSum = 0x55;

function judge(view: FilterView): FilterFinding {
  const { payload, packet } = view;
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  if (holdsAt(payload, 0, magic)) return judgeQuery(payload, packet);
  const [sum = outsideSum, number] = payload;
  if ((sum & outsideSum) !== 0 || payload.length < 3) {
    return { outcome: 'discard', why: `${payload.length} octets that are no packet of the game` };
  }
  if (number === requestNumber && payload.length === requestOctets) return judgeOpening(view, 'a request to connect');
  return judgeSession(view, 'game traffic');
}

function judgeQuery(payload: Uint8Array, { destination, destinationPort = 0 }: FilterView['packet']): FilterFinding {
  const letter = octetsAt(payload, base - 1, 1);
  if (letter === undefined) return { outcome: 'discard', why: `a query of ${payload.length} octets` };
  if (BigInt(octetsAt(payload, 4, 4) ?? 0) !== destination) {
    return { outcome: 'discard', why: 'a query that names another address' };
  }
  if (octetsAt(payload, 8, 2) !== swapped(destinationPort)) {
    return { outcome: 'discard', why: 'a query that names another port' };
  }
  const wanted = exact.get(letter);
  const fits =
    wanted === undefined
      ? letter === remoteControl.letter && payload.length >= remoteControl.least
      : payload.length === wanted;
  if (fits) return { outcome: 'pass', why: 'a query', charges: ['query', 'queries'] };
  return { outcome: 'discard', why: `a query of letter ${letter.toString(16)} and ${payload.length} octets` };
}

function swapped(port: number): number {
  return ((port & 0xff) << 8) | (port >> 8);
}

function compile(text: KindText) {
  const { above, branch, discard, pass } = text;
  const ask = branch('ask', [`${above('query')} ${discard}`, `${above('queries')} ${discard}`, pass]);
  const ofLength = (octets: number) =>
    branch(`query${octets}`, [`${reaches(octets + 1)} ${discard}`, `${reaches(octets)} ${ask}`]);
  const lengths = new Map([...new Set(exact.values())].map((octets) => [octets, ofLength(octets)]));
  const letters = [...exact].map(([letter, octets]) => `@ih,80,8 0x${letter.toString(16)} ${lengths.get(octets)}`);
  const query = branch('query', [
    ...otherAddress(text),
    ...otherPort(text),
    ...letters,
    `@ih,80,8 0x${remoteControl.letter.toString(16)} ${reaches(remoteControl.least)} ${ask}`,
  ]);
  const session = branch('session', sessionLines(text));
  const request = branch('request', [
    `${reaches(requestOctets + 1)} ${session}`,
    `${reaches(requestOctets)} ${branch('open', openingLines(text))}`,
    session,
  ]);
  const game = `@ih,0,24 & 0x${outsideSum.toString(16)}`;
  return {
    udp: [
      `@ih,0,32 0x${magic.toString('hex')} ${query}`,
      `${game}ff00 == 0x00${requestNumber.toString(16)}00 ${request}`,
      `${game}0000 == 0x000000 ${session}`,
    ],
  };
}

/**
 * Nothing in nft 1.0.6 compares two parts of a packet. So what all destinations of the filter share is compared with a
 * number, and of each bit that they do not, two lines say what must not be: 16 lines for a /24, none for one address.
 */
function otherAddress({ discard, filter }: KindText): string[] {
  const { length, value } = filter.dst;
  const lines = [`@ih,32,${length} != 0x${(value >> BigInt(32 - length)).toString(16)} ${discard}`];
  for (let bit = length; bit < 32; bit += 1) lines.push(...differing(128 + bit, 32 + bit, discard));
  return lines;
}

function otherPort({ discard, filter }: KindText): string[] {
  const { start, end } = filter.destinationPorts ?? { start: 7777, end: 7777 };
  if (start === end) return [`@ih,64,16 != 0x${swapped(start).toString(16)} ${discard}`];
  const lines: string[] = [];
  for (let bit = 0; bit < 16; bit += 1) {
    lines.push(...differing(16 + bit, 64 + ((bit + 8) % 16), discard, '@th'));
  }
  return lines;
}

/** A bit of a header, and a bit of the payload that has to be the same. */
function differing(headerBit: number, payloadBit: number, discard: string, header: '@nh' | '@th' = '@nh'): string[] {
  const load = (base: string, bit: number) => `${base},${bit & ~7},8 & 0x${(0x80 >> (bit & 7)).toString(16)}`;
  const [there, here] = [load(header, headerBit), load('@ih', payloadBit)];
  return [`${there} == 0 ${here} != 0 ${discard}`, `${there} != 0 ${here} == 0 ${discard}`];
}

export const samp: FilterKind = {
  id: 16,
  name: 'samp',
  label: 'San Andreas Multiplayer',
  description:
    "Passes queries that name the destination's own address and port and a known request, requests to connect, and the " +
    "game's other packets only from a source that has asked to connect and was last seen within a minute. A source may " +
    'send 20 queries, 50 requests to connect and 2,000 other packets a second; a destination gets 500 queries and 800 new ' +
    'sources a second, with bursts of 3,000.',
  limits: [
    'IPv4 alone: the protocol carries IPv4 addresses.',
    'It takes a /24 at most.',
    'Queries and packets whose destination was translated (NAT) on the way to this router are not recognised.',
    "The game's own packets show four known bits: what a known source sends is bounded, not recognised.",
    copiesPass,
    ownQuestionsLost,
    'Held against gamedig and the published source of open.mp; no server was at hand.',
  ],
  families: [4],
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 7777)],
  memory: 'source',
  needsReturnPath: false,
  shortestPrefix: { 4: 24 },
  enforcement: {
    tracking: 'nothing',
    settles: true,
    // Servers give a silent player up after 10 s.
    remembers: { seconds: 60, sources: mostRemembered },
    meters: [
      { name: 'query', of: 'source', packetsPerSecond: 20, burst: 100 },
      { name: 'queries', of: 'destination', packetsPerSecond: 500, burst: 1000 },
      ...sessionMeters(800),
    ],
    judge,
    compile,
    vectors: sampVectors,
  },
};
