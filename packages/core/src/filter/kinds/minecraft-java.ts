/** Owns filter kind 11, Minecraft: Java Edition: what it recognises and where, what that is in the kernel, what it cannot do. */
import { bothFamilies, type FilterKind, mostRemembered, to } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { octetsAt } from '../octets.ts';
import { reaches } from '../payload-text.ts';
import { settlingMeter } from '../settling-meter.ts';
import { gameSyns, synSum } from '../syn-meters.ts';
import { hasFlags, isOpening, tcpFlag } from '../tcp-segment.ts';
import { minecraftJavaVectors } from './minecraft-java.vectors.ts';

/**
 * The protocol's description (wiki.vg, "Protocol", "Server List Ping"): a client begins with the handshake, a packet of
 * number 0 behind its length, a VarInt: six octets at least, with version (1 to 5 octets), address, port and intent. A player's
 * address has 255 characters at most. Proxies (BungeeCord, Waterfall, Velocity's "legacy" forwarding) write the player's
 * address, number and signed skin behind it, and servers read 32 767 characters: up to three octets of length, the third of
 * which is 0 to 2. Clients before 1.7 ask with fe 01, older ones with fe alone. Some write the length by itself, so that TCP sends it alone: the rest then begins with the number.
 * What comes later is encrypted or compressed, and belongs to a flow that began well.
 */
const shortest = 6;
const legacyPing = 0xfe;
const restOctets = 6;
const mostThird = 2;
const { ack, fin, rst, syn } = tcpFlag;

type Beginning = 'handshake' | 'part' | 'wrong';

function beginningOf(payload: Uint8Array): Beginning {
  const [first = 0, second, third, fourth] = payload;
  if (second === undefined) return (first >= shortest && first < 0x80) || first === legacyPing ? 'part' : 'wrong';
  if (first >= shortest && first < 0x80 && second === 0) return 'handshake';
  if (first >= 0x80 && second >= 1 && second < 0x80 && third === 0) return 'handshake';
  if (first >= 0x80 && second >= 0x80 && third !== undefined && third <= mostThird && fourth === 0) return 'handshake';
  if (first === legacyPing && second === 1) return 'handshake';
  return first === 0 && octetsAt(payload, restOctets - 1, 1) !== undefined ? 'handshake' : 'wrong';
}

function judge({ packet, payload, established, known, settling }: FilterView): FilterFinding {
  if (known) return { outcome: 'pass', why: 'part of a connection that began well', remembers: true };
  if (isOpening(packet.tcpFlags ?? 0)) {
    if ((payload?.length ?? 0) > 0) return { outcome: 'discard', why: 'a SYN with data' };
    return { outcome: 'pass', why: 'a new connection', charges: ['connections', 'sum'] };
  }
  if (settling && (established || ((packet.tcpFlags ?? 0) & (ack | syn)) === ack)) {
    const why = 'perhaps part of a connection that ran before the filter';
    return established
      ? { outcome: 'pass', why, charges: ['beginnings'], remembers: true }
      : { outcome: 'pass', why, charges: [settlingMeter.name] };
  }
  if (!established) return { outcome: 'discard', why: 'part of no known connection' };
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  if (payload.length === 0) return { outcome: 'pass', why: 'no data of a known connection' };
  switch (beginningOf(payload)) {
    case 'handshake':
      return { outcome: 'pass', why: 'a handshake or ping', charges: ['beginnings'], remembers: true };
    case 'part':
      return { outcome: 'pass', why: 'the first octet of a handshake' };
    case 'wrong':
      return { outcome: 'discard', why: 'a connection that begins neither with a handshake nor with a ping' };
  }
}

/** Conntrack has judged the header: of what it calls established, the payload's place is as the header says. */
function compile({ above, branch, discard, established, known, pass, remember, settling }: KindText) {
  const begin = branch('begin', [`${above('beginnings')} ${discard}`, `${remember} ${pass}`, pass]);
  const data = branch('data', [
    `@ih,0,8 0x06-0x7f @ih,8,8 0x00 ${begin}`,
    `@ih,0,8 0x80-0xff @ih,8,8 0x01-0x7f @ih,16,8 0x00 ${begin}`,
    `@ih,0,16 & 0x8080 == 0x8080 @ih,16,8 0x00-0x0${mostThird} @ih,24,8 0x00 ${begin}`,
    `@ih,0,16 0xfe01 ${begin}`,
    `@ih,0,8 0x00 ${reaches(restOctets)} ${begin}`,
    `${reaches(2)} ${discard}`,
    `@ih,0,8 0x06-0x7f ${pass}`,
    `@ih,0,8 0xfe ${pass}`,
    `${reaches(1)} ${discard}`,
    pass,
  ]);
  const connect = branch('connect', [
    `${reaches(1)} ${discard}`,
    `${above('connections')} ${discard}`,
    `${above('sum')} ${discard}`,
    pass,
  ]);
  const unseen = branch('settling', [`${above(settlingMeter.name)} ${discard}`, pass]);
  return {
    tcp: [
      `${known} ${remember} ${pass}`,
      `${hasFlags(syn, ack | fin | rst)} ${connect}`,
      `${settling} ${established} ${begin}`,
      `${settling} ${hasFlags(ack, syn)} ${unseen}`,
      `${established} ${data}`,
    ],
  };
}

export const minecraftJava: FilterKind = {
  id: 11,
  name: 'minecraft-java',
  label: 'Minecraft: Java Edition',
  description:
    "Passes TCP connections whose first data is the game's handshake or the server list ping of old clients, and " +
    'bounds the new connections of each source: 20 a second, 100 at once. 400 connections a second may begin at a ' +
    'destination, 10,000 at once.',
  limits: [
    'Bots that speak the protocol pass: who may join is for the server to say.',
    'A connection that begins with a PROXY protocol header is not recognised.',
    'All players of a proxy (BungeeCord, Velocity) come from its address and share its limit: a rule that accepts it lets them past ' +
      'the filter.',
    'A connection that ran before the filter and is silent in its first 10 seconds, or one that sends nothing for 2 minutes, ' +
      'has to begin anew; the game itself gives up after 30 seconds.',
  ],
  families: bothFamilies,
  transports: ['tcp'],
  destinationPorts: 'optional',
  defaultPorts: [to('tcp', 25565)],
  memory: 'connection',
  needsReturnPath: true,
  enforcement: {
    tracking: 'flows',
    settles: true,
    // Room for all that the meter lets begin in that time.
    remembers: { seconds: 120, flows: mostRemembered },
    meters: [
      { name: 'connections', of: 'source', packetsPerSecond: 20, burst: 100 },
      { name: 'beginnings', of: 'destination', packetsPerSecond: 400, burst: 10_000 },
      synSum(gameSyns),
      settlingMeter,
    ],
    judge,
    compile,
    vectors: minecraftJavaVectors,
  },
};
