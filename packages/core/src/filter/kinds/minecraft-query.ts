/** Owns filter kind 13, Minecraft server query: what it recognises and where, what that is in the kernel, what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, ownQuestionsLost, to } from '../filter-kind.ts';
import { datagram, type FilterVector } from '../filter-vector.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { octetsAt } from '../octets.ts';
import { reaches } from '../payload-text.ts';

/**
 * The protocol's description (wiki.vg, "Query"): fe fd, then 9 for a handshake or 0 for a question; a session number of
 * which the upper half of each octet is 0; a question goes on with the token that the handshake gave, and for the full
 * list with four more octets. gamedig 5.3.3 puts four behind the handshake too, and ff ff ff 01 behind the token.
 */
const upperHalves = 0xf0f0f0f0;
const handshake = { type: 9, lengths: [7, 11] } as const;
const question = { type: 0, lengths: [11, 15] } as const;

function judge({ payload }: FilterView): FilterFinding {
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  const session = octetsAt(payload, 3, 4);
  if (octetsAt(payload, 0, 2) !== 0xfefd || session === undefined) {
    return { outcome: 'discard', why: `${payload.length} octets that are no query` };
  }
  const type = octetsAt(payload, 2, 1);
  const form = [handshake, question].find((each) => each.type === type);
  if (form === undefined) return { outcome: 'discard', why: `type ${type} is no request` };
  if ((session & upperHalves) !== 0) return { outcome: 'discard', why: 'a session number that is not masked' };
  if (!form.lengths.some((length) => length === payload.length)) {
    return { outcome: 'discard', why: `a request of ${payload.length} octets, not ${form.lengths.join(' or ')}` };
  }
  const why = form === handshake ? 'a handshake' : 'a question with a token';
  return { outcome: 'pass', why, charges: ['source', 'destination'] };
}

function compile({ above, branch, discard, pass }: KindText) {
  const go = branch('go', [`${above('source')} ${discard}`, `${above('destination')} ${discard}`, pass]);
  const lengths = (name: string, [short, long]: readonly [number, number]) =>
    branch(name, [
      `${reaches(long + 1)} ${discard}`,
      `${reaches(long)} ${go}`,
      `${reaches(short + 1)} ${discard}`,
      `${reaches(short)} ${go}`,
    ]);
  const begins = (type: number) => `@ih,0,56 & 0xfffffff0f0f0f0 == 0xfefd0${type}00000000`;
  return {
    udp: [
      `${begins(handshake.type)} ${lengths('handshake', handshake.lengths)}`,
      `${begins(question.type)} ${lengths('question', question.lengths)}`,
    ],
  };
}

const fromGamedig = 'from gamedig 5.3.3';

const vectors: readonly FilterVector[] = [
  { says: `a handshake, ${fromGamedig}`, steps: [datagram('fefd 09 00000001 00000000', 'pass')] },
  {
    says: `a question for the full list, ${fromGamedig}`,
    steps: [datagram('fefd 00 00000001 0091295b ffffff01', 'pass')],
  },
  { says: 'a handshake (wiki.vg)', steps: [datagram('fefd 09 00000001', 'pass')] },
  { says: 'a basic question (wiki.vg)', steps: [datagram('fefd 00 0f0f0f0f 0091295b', 'pass')] },
  {
    says: 'a full question, padded with zeros (wiki.vg)',
    steps: [datagram('fefd 00 00000001 0091295b 00000000', 'pass')],
  },
  { says: 'a session number that is not masked', steps: [datagram('fefd 09 00000010', 'discard')] },
  { says: 'a type that no client sends', steps: [datagram('fefd 01 00000001', 'discard')] },
  { says: "a server's answer", steps: [datagram('09 00000001 39353133333037 00', 'discard')] },
  { says: 'a handshake of 8 octets', steps: [datagram('fefd 09 00000001 00', 'discard')] },
  { says: 'a handshake of 15 octets', steps: [datagram('fefd 09 00000001 0091295b 00000000', 'discard')] },
  { says: 'a question without a token', steps: [datagram('fefd 00 00000001', 'discard')] },
  { says: 'a question of 16 octets', steps: [datagram('fefd 00 00000001 0091295b 00000000 00', 'discard')] },
  { says: 'six octets', steps: [datagram('fefd 09 000000', 'discard')] },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];

export const minecraftQuery: FilterKind = {
  id: 13,
  name: 'minecraft-query',
  label: 'Minecraft server query',
  description:
    "Passes the query protocol's handshake and status requests: fe fd, 00 or 09, a session number as the protocol wants " +
    'it, and one of two lengths for each. A source may send 20 a second, a destination gets 500.',
  limits: [
    'Weak: five bytes are all there is to recognise.',
    copiesPass,
    ownQuestionsLost,
    'A flood of well-formed queries takes up the 500 a second: lists of servers may then show none.',
    'Clients that do not mask their session number, as the protocol asks, are not recognised.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 25565)],
  memory: 'none',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: false,
    meters: [
      { name: 'source', of: 'source', packetsPerSecond: 20, burst: 100 },
      { name: 'destination', of: 'destination', packetsPerSecond: 500, burst: 1000 },
    ],
    judge,
    compile,
    vectors,
  },
};
