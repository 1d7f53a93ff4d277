/** Owns filter kind 15, TeamSpeak 3: what it recognises and where, what that is in the kernel, what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, mostRemembered, ownQuestionsLost, to } from '../filter-kind.ts';
import { datagram, type FilterVector, hexOf } from '../filter-vector.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { holdsAt, octetsAt } from '../octets.ts';
import { reaches } from '../payload-text.ts';
import { judgeOpening, judgeSession, openingLines, sessionLines, sessionMeters } from '../source-memory.ts';

/**
 * ReSpeak's description of the protocol (tsdeclarations, ts3protocol.md): a client's packet has a code of 8 octets, packet
 * number, client number, and an octet of four flags and four bits of type, 500 octets in all at most. Opening packets
 * are of type 8, number 101, of no client yet, with a fixed code; then come four octets of version and the step: 0, 2
 * or 4. The shortest has 34 octets. The flags for not encrypted (80) and the new protocol (20) are free there: TeamSpeak's
 * clients set the first, the description wants both, @honeybbq/teamspeak-client 0.2.3 sets none.
 */
const opening = Buffer.from('545333494e49543100650000', 'hex');
const openingFlags = 0x5f;
const header = 13;
const shortestOpening = 34;
const longest = 500;

function judge(view: FilterView): FilterFinding {
  const { payload } = view;
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  const { length } = payload;
  const type = octetsAt(payload, header - 1, 1);
  if (type === undefined) return { outcome: 'discard', why: `${length} octets hold no header, which has ${header}` };
  if (length > longest) return { outcome: 'discard', why: `${length} octets: a packet has ${longest} at most` };
  if ((type & 8) === 0) return judgeSession(view, "a session's packet");
  const step = octetsAt(payload, header + 4, 1);
  if (
    holdsAt(payload, 0, opening) &&
    (type & openingFlags) === 8 &&
    length >= shortestOpening &&
    (step === 0 || step === 2 || step === 4)
  ) {
    return judgeOpening(view, `opening packet ${step}`);
  }
  return { outcome: 'discard', why: `type ${type & 15} that is no opening packet` };
}

function compile(text: KindText) {
  const { branch, discard } = text;
  const open = branch('open', openingLines(text));
  const fixed = `@ih,0,104 & 0x${'ff'.repeat(12)}5f == 0x${opening.toString('hex')}08 ${reaches(shortestOpening)}`;
  return {
    udp: [
      // UDP's length field, which counts its header: octet 500 cannot be loaded by kernels before 6.18.
      `@th,32,16 > ${8 + longest} ${discard}`,
      `@ih,96,8 & 0x08 == 0x00 ${branch('session', sessionLines(text))}`,
      `${fixed} @ih,136,8 & 0xfb == 0x00 ${open}`,
      `${fixed} @ih,136,8 0x02 ${open}`,
    ],
  };
}

const first = `${hexOf('TS3INIT1')} 0065 0000 08`;
const step0 = `${first} 5d653630 00 6b0074f5 17d83e99 0000000000000000`;
const step2 = `${first} 5d653630 02 000102030405060708090a0b0c0d0e0f 993ed817`;
const step4 = `${first} 5d653630 04 ${'35'.repeat(128)} 00000001 ${'09'.repeat(100)} ${'00'.repeat(64)} ${hexOf(
  'clientinitiv alpha=1qEDxL1Byc5rEw== omega=MEsDAgcAAgEgAiAbVNujSaeywUojPSrmqI7X2NaV5ME ot=1 ip=',
)}`;
const pong = '0000000000000000 0000 0000 85 0001';
const ping = '9b0d3f21c4a7e658 0001 0007 84';
const voice = `9b0d3f21c4a7e658 0102 0007 80 0102 04 ${'a5'.repeat(60)}`;
const command = `0011223344556677 0002 0007 22 ${'c3'.repeat(120)}`;
const client = 'from @honeybbq/teamspeak-client 0.2.3';

const vectors: readonly FilterVector[] = [
  { says: `the first opening packet, ${client}`, steps: [datagram(step0, 'pass')] },
  {
    says: "the same with the flags of TeamSpeak's own clients, and of ReSpeak's description",
    steps: ['88', 'a8'].map((flags) => datagram(step0.replace('0000 08', `0000 ${flags}`), 'pass')),
  },
  {
    says: 'the same with the flag of compression',
    steps: [datagram(step0.replace('0000 08', '0000 c8'), 'discard')],
  },
  {
    says: `a whole opening and the answer to a ping, ${client}; then command, ping and voice, as ReSpeak describes them`,
    steps: [
      datagram(step0, 'pass'),
      datagram(step2, 'pass'),
      datagram(step4, 'pass'),
      datagram(pong, 'pass'),
      datagram(command, 'pass'),
      datagram(ping, 'pass'),
      datagram(voice, 'pass'),
    ],
  },
  {
    says: 'a session from another port of a source that opened one, but not from another source',
    steps: [
      datagram(step2, 'pass'),
      { ...datagram(voice, 'pass'), clientPort: 40_001 },
      { ...datagram(voice, 'discard'), client: 2 },
    ],
  },
  {
    says: 'a packet of 500 octets in a session, and one of 501',
    steps: [
      datagram(step0, 'pass'),
      datagram(`0011223344556677 0002 0007 22 ${'c3'.repeat(487)}`, 'pass'),
      datagram(`0011223344556677 0002 0007 22 ${'c3'.repeat(488)}`, 'discard'),
    ],
  },
  { says: 'a running session while the filter settles', settling: true, steps: [datagram(voice, 'pass')] },
  { says: 'voice from a source that opened nothing', steps: [datagram(voice, 'discard')] },
  { says: 'a ping from a source that opened nothing', steps: [datagram(ping, 'discard')] },
  {
    says: "a server's answer to the first packet",
    steps: [datagram(`${hexOf('TS3INIT1')} 0065 88 01 ${'00'.repeat(20)}`, 'discard')],
  },
  { says: 'an opening packet with another code', steps: [datagram(step0.replace('54533349', '54533348'), 'discard')] },
  {
    says: 'an opening packet of a client with a number',
    steps: [datagram(step0.replace('0065 0000', '0065 0001'), 'discard')],
  },
  { says: 'an opening packet of step 3', steps: [datagram(step2.replace('5d653630 02', '5d653630 03'), 'discard')] },
  { says: 'an opening packet that is cut off', steps: [datagram(step0.slice(0, -2), 'discard')] },
  {
    says: 'type 9, from a known source',
    steps: [datagram(step0, 'pass'), datagram('0011223344556677 0002 0007 29', 'discard')],
  },
  {
    says: 'a packet without a whole header, while the filter settles',
    settling: true,
    steps: [datagram('9b0d3f21c4a7e658 0001 0007', 'discard')],
  },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];

export const teamspeak3: FilterKind = {
  id: 15,
  name: 'teamspeak3',
  label: 'TeamSpeak 3',
  description:
    "Passes the client's opening packets, which begin with TS3INIT1, and client packets with a known type and at " +
    'most 500 bytes only from a source that has sent one and was last seen within a minute. A source may send 50 opening ' +
    'packets and 2,000 others a second; a destination gets 800 new sources a second, with bursts of 3,000.',
  limits: [
    'A running session shows one known bit a packet: what a known source sends is bounded, not recognised.',
    copiesPass,
    ownQuestionsLost,
    'File transfer and server query over TCP are not looked at.',
    'Held against a published client library and a description of the protocol; no server was at hand.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 9987)],
  memory: 'source',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: true,
    // Clients ping every second, and a silent one is given up after half a minute.
    remembers: { seconds: 60, sources: mostRemembered },
    meters: sessionMeters(800),
    judge,
    compile,
    vectors,
  },
};
