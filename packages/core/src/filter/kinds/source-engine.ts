/** Owns filter kind 10, Source engine games: what it recognises and where, what that is in the kernel, what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, mostRemembered, ownQuestionsLost, to } from '../filter-kind.ts';
import { hexOf } from '../filter-vector.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { holdsAt, octetsAt } from '../octets.ts';
import { reaches } from '../payload-text.ts';
import {
  judgeOpening,
  judgeSession,
  newcomersAtOnce,
  openingLines,
  sessionLines,
  sessionMeters,
} from '../source-memory.ts';
import { sourceEngineVectors } from './source-engine.vectors.ts';

/**
 * Valve's developer wiki, "Server queries": a message outside of a session begins with four octets of ones and a letter.
 * A2S_INFO (T) carries a fixed text, and since 2020 the challenge when it is asked again; A2S_PLAYER (U) and A2S_RULES (V)
 * carry one always, A2S_SERVERQUERY_GETCHALLENGE (W) may. A session begins with a request for a challenge: `q` and a number
 * or text of 20 to 23 octets in all (Source), `getchallenge steam` (GoldSource).
 *
 * Counter-Strike 2 speaks Valve's published GameNetworkingSockets (steamnetworkingsockets_udp.cpp): a session begins with octet
 * 20, two of length and a protobuf message (its connection's number as field 1, the time as field 3), filled up to 512. No
 * octet of a packet of its session is ff four times.
 */
const outside = 0xffffffff;
const question = Buffer.from('Source Engine Query\0', 'latin1');
const getChallenge = Buffer.from('getchallenge', 'latin1');
const longestRequest = 64;
const socketsRequest = { number: 0x20, at: 3, connection: 0x0d, time: 0x19 } as const;
const letter = { info: 0x54, player: 0x55, rules: 0x56, challenge: 0x57, request: 0x71 } as const;

function judge(view: FilterView): FilterFinding {
  const { payload } = view;
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  const first = octetsAt(payload, 0, 4);
  if (first === undefined) return { outcome: 'discard', why: `${payload.length} octets: no message is that short` };
  if (first !== outside) {
    return isSocketsRequest(payload)
      ? judgeOpening(view, 'a request for a challenge of GameNetworkingSockets')
      : judgeSession(view, 'game traffic');
  }
  const kind = octetsAt(payload, 4, 1);
  const { length } = payload;
  const query = (fits: boolean): FilterFinding => {
    if (!fits) return { outcome: 'discard', why: `a query of kind ${kind?.toString(16)} that is not well formed` };
    return judgeOpening(view, 'a query', ['query', 'queries']);
  };
  if (kind === letter.info) return query(holdsAt(payload, 5, question) && (length === 25 || length === 29));
  if (kind === letter.player || kind === letter.rules) return query(length === 9);
  if (kind === letter.challenge) return query(length === 5 || length === 9);
  if (kind === letter.request || holdsAt(payload, 4, getChallenge)) {
    if (length >= 9 && length <= longestRequest) return judgeOpening(view, 'the beginning of a connection');
    return { outcome: 'discard', why: `a request for a challenge of ${length} octets` };
  }
  return judgeSession(view, 'a message outside of the game');
}

/** The 256th octet is the last that every kernel loads: of the 512, half are asked for. */
function isSocketsRequest(payload: Uint8Array): boolean {
  const { number, at, connection, time } = socketsRequest;
  if (octetsAt(payload, 0, 1) !== number || payload.length < 256) return false;
  return octetsAt(payload, at, 1) === connection && octetsAt(payload, at + 5, 1) === time;
}

function compile(text: KindText) {
  const { branch, discard } = text;
  const session = branch('session', sessionLines(text));
  const query = branch('query', openingLines(text, ['query', 'queries']));
  const open = branch('open', openingLines(text));
  const info = branch('info', [
    `${reaches(30)} ${discard}`,
    `${reaches(29)} ${query}`,
    `${reaches(26)} ${discard}`,
    query,
  ]);
  const short = branch('short', [
    `${reaches(10)} ${discard}`,
    `${reaches(9)} ${query}`,
    `@ih,32,8 != 0x57 ${discard}`,
    `${reaches(6)} ${discard}`,
    query,
  ]);
  const request = branch('request', [`${reaches(longestRequest + 1)} ${discard}`, `${reaches(9)} ${open}`]);
  const fixed = `54${question.toString('hex')}`;
  const connectionless = branch('outside', [
    `@ih,32,128 0x${fixed.slice(0, 32)} @ih,160,40 0x${fixed.slice(32)} ${info}`,
    `@ih,32,8 0x54 ${discard}`,
    `@ih,32,8 0x55-0x57 ${short}`,
    `@ih,32,8 0x71 ${request}`,
    `@ih,32,96 0x${hexOf('getchallenge')} ${request}`,
    session,
  ]);
  const { number, at, connection, time } = socketsRequest;
  const octet = (value: number) => value.toString(16).padStart(2, '0');
  const form = `0x${octet(number)}0000${octet(connection)}00000000${octet(time)}`;
  const sockets = `@ih,0,${(at + 6) * 8} & 0xff0000ff00000000ff == ${form} ${reaches(256)} ${open}`;
  return {
    udp: [sockets, `@ih,0,32 != 0xffffffff ${session}`, `@ih,0,32 0xffffffff ${connectionless}`],
  };
}

export const sourceEngine: FilterKind = {
  id: 10,
  name: 'source-engine',
  label: 'Source engine games',
  description:
    "Passes well-formed queries of Valve's server protocol (information, players, rules, challenges) and requests to " +
    'connect, and game traffic only from a source that has queried or connected before and was last seen within 70 ' +
    'seconds. A source may send 20 queries, 50 requests to connect and 2,000 packets of the game a second; a ' +
    'destination is told of 400 new sources a second by queries and as many by connections, with bursts of 3,000.',
  limits: [
    copiesPass,
    'A source that has queried may send anything as game traffic, within its limit.',
    ownQuestionsLost,
    'Remote control (RCON) over TCP is not looked at.',
    "Counter-Strike 2 is recognised by the opening of Valve's published GameNetworkingSockets, of which no server was at hand. " +
      "Players who come through Valve's relays (SDR) come from the addresses of those, which share the limits of one source.",
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 27015)],
  memory: 'source',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: true,
    // A server lets go of a silent player after 65 s (sv_timeout).
    remembers: { seconds: 70, sources: mostRemembered },
    meters: [
      { name: 'query', of: 'source', packetsPerSecond: 20, burst: 100 },
      { name: 'queries', of: 'destination', packetsPerSecond: 400, burst: newcomersAtOnce },
      ...sessionMeters(400),
    ],
    judge,
    compile,
    vectors: sourceEngineVectors,
  },
};
