/** Owns filter kind 12, minecraft-bedrock: what it recognises and where, what that is in the kernel, what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, mostRemembered, ownQuestionsLost, to } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { holdsAt, octetsAt } from '../octets.ts';
import { reaches } from '../payload-text.ts';
import { judgeOpening, judgeSession, openingLines, sessionLines, sessionMeters } from '../source-memory.ts';
import { minecraftBedrockVectors } from './minecraft-bedrock.vectors.ts';

/**
 * RakNet 4 (its published source: RakPeer.cpp, ReliabilityLayer.cpp). Messages outside of a session carry 16 fixed octets:
 * pings behind number and time, requests to connect behind the number. The second request names the server's address,
 * the size of packets and the client's number: 34 octets over IPv4. In a session the first octet has bits: valid (80),
 * acknowledgement (40, of which 20 says that rates follow), missing packets (20), and three of the sender's.
 */
const fixed = Buffer.from('00ffff00fefefefefdfdfdfd12345678', 'hex');
const message = { ping: 0x01, pingIfOpen: 0x02, firstRequest: 0x05, secondRequest: 0x07 } as const;
const secondRequestOctets = 34;

function judge(view: FilterView): FilterFinding {
  const { payload } = view;
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  const first = octetsAt(payload, 0, 1);
  if (first === undefined) return { outcome: 'discard', why: 'no payload' };
  switch (first) {
    case message.ping:
    case message.pingIfOpen:
      if (!holdsAt(payload, 9, fixed)) return { outcome: 'discard', why: "a ping without RakNet's fixed octets" };
      return { outcome: 'pass', why: 'a ping', charges: ['ping', 'pings'] };
    case message.firstRequest:
      if (!holdsAt(payload, 1, fixed) || payload.length < 18) break;
      return { outcome: 'pass', why: 'a first request to connect', charges: ['opening', 'requests'] };
    case message.secondRequest:
      if (!holdsAt(payload, 1, fixed) || payload.length < secondRequestOctets) break;
      return judgeOpening(view, 'a second request to connect');
  }
  const bits = first & 0x1f;
  const inSession = first >= 0x80 && (first < 0xa0 || bits === 0) && payload.length >= 4;
  if (inSession) return judgeSession(view, "a session's packet");
  return { outcome: 'discard', why: `message ${first.toString(16)} of ${payload.length} octets is none of RakNet's` };
}

function compile(text: KindText) {
  const { above, branch, discard, pass } = text;
  const go = (of: readonly string[]) => [...of.map((meter) => `${above(meter)} ${discard}`), pass];
  const session = branch('session', sessionLines(text));
  const ping = branch('ping', go(['ping', 'pings']));
  const octets = `0x${fixed.toString('hex')}`;
  return {
    udp: [
      `@ih,0,32 0x80000000-0x9fffffff ${session}`,
      `@ih,0,8 0xc0 ${reaches(4)} ${session}`,
      `@ih,0,8 0xa0 ${reaches(4)} ${session}`,
      `@ih,0,8 0xe0 ${reaches(4)} ${session}`,
      `@ih,0,8 0x01-0x02 @ih,72,128 ${octets} ${ping}`,
      `@ih,0,8 0x05 @ih,8,128 ${octets} ${reaches(18)} ${branch('request', go(['opening', 'requests']))}`,
      `@ih,0,8 0x07 @ih,8,128 ${octets} ${reaches(secondRequestOctets)} ${branch('open', openingLines(text))}`,
    ],
  };
}

export const minecraftBedrock: FilterKind = {
  id: 12,
  name: 'minecraft-bedrock',
  label: 'Minecraft: Bedrock Edition and other RakNet games',
  description:
    "Passes RakNet's pings and connection requests, which carry a fixed sequence of 16 bytes, and packets of a " +
    'running session only from a source that has asked for one and was last seen within a minute. A source may send ' +
    '20 pings, 50 requests and 2,000 packets of sessions a second; a destination gets 1,000 pings and 1,000 first ' +
    'requests a second, and 800 new sources a second with bursts of 3,000.',
  limits: [
    copiesPass,
    ownQuestionsLost,
    'A packet of a session shows three known bits: what a known source sends is bounded, not recognised.',
    "Games that changed RakNet's message numbers or its fixed bytes are not recognised.",
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 19132, 19133)],
  memory: 'source',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: true,
    // RakNet gives a silent peer up after 10 s by default; games set up to 30.
    remembers: { seconds: 60, sources: mostRemembered },
    meters: [
      { name: 'ping', of: 'source', packetsPerSecond: 20, burst: 100 },
      { name: 'pings', of: 'destination', packetsPerSecond: 1000, burst: 2000 },
      { name: 'requests', of: 'destination', packetsPerSecond: 1000, burst: 4000 },
      ...sessionMeters(800),
    ],
    judge,
    compile,
    vectors: minecraftBedrockVectors,
  },
};
