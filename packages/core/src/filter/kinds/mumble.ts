/** Owns filter kind 17, Mumble: what it recognises and where, what that is in the kernel, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, mostRemembered, to } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { octetsAt } from '../octets.ts';
import { ofExactly, reaches } from '../payload-text.ts';
import { settlingMeter } from '../settling-meter.ts';
import { gameSyns, synSum } from '../syn-meters.ts';
import { mumbleVectors } from './mumble.vectors.ts';

/**
 * Mumble's protocol documentation and MumbleUDP.proto (1.5). Voice is encrypted (4 octets, then at least one that nobody can
 * read on the way), so that it goes by the TCP session alone. What the server list asks is not: 12 octets, four of them
 * zero, or since 1.5 an octet 1 and a protobuf message that begins with the time (field 1), at most 14 octets.
 */
const leastVoice = 5;
const oldPing = 12;
const mostNewPing = 14;

/** RFC 9293, 3.1. */
const flag = { fin: 1, syn: 2, rst: 4, ack: 16 } as const;
const openingFlags = flag.fin | flag.syn | flag.rst | flag.ack;
const sessionFlags = flag.syn | flag.rst | flag.ack;

function judge(view: FilterView): FilterFinding {
  return view.transport === 'tcp' ? judgeSession(view) : judgeDatagram(view);
}

/** A SYN sent twice is part of a connection too, once the server has answered the first: only what acknowledges counts. */
function judgeSession({ packet, established, settling }: FilterView): FilterFinding {
  const { tcpFlags, payload } = packet;
  if (tcpFlags === undefined) {
    if (payload === undefined) return { outcome: 'unknown', why: 'the TCP flags decide' };
    return { outcome: 'discard', why: 'a TCP header that is cut off' };
  }
  if (established) {
    const inside = (tcpFlags & sessionFlags) === flag.ack;
    return { outcome: 'pass', why: 'part of a TCP session', ...(inside && { remembers: true }) };
  }
  if ((tcpFlags & openingFlags) === flag.syn) {
    return { outcome: 'pass', why: 'a new TCP connection', charges: ['connections', 'sum'] };
  }
  if (settling) {
    return {
      outcome: 'pass',
      why: 'TCP of a session that may be older than the filter',
      charges: [settlingMeter.name],
    };
  }
  return { outcome: 'discard', why: 'part of no TCP session' };
}

function judgeDatagram({ payload, known, settling }: FilterView): FilterFinding {
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  const { length } = payload;
  const voiceLength = length >= leastVoice;
  if (known) {
    if (voiceLength) return { outcome: 'pass', why: 'voice of a source with a TCP session', charges: ['voice'] };
    return { outcome: 'discard', why: `${length} octets are too few for voice` };
  }
  const asOld = length === oldPing && octetsAt(payload, 0, 4) === 0;
  const asNew = length >= leastVoice && length <= mostNewPing && octetsAt(payload, 0, 2) === 0x0108;
  if (asOld || asNew) return { outcome: 'pass', why: "the server list's ping", charges: ['pings', 'strangers'] };
  if (settling && voiceLength) {
    const why = 'voice of a session that may be older than the filter';
    return { outcome: 'pass', why, charges: ['voice', settlingMeter.name] };
  }
  return { outcome: 'discard', why: 'no ping, and the source has no TCP session' };
}

function compile({ above, branch, discard, established, known, pass, remember, settling }: KindText) {
  const within = (...meters: string[]) => [...meters.map((meter) => `${above(meter)} ${discard}`), pass];
  // Where no more can be remembered, the packet passes all the same.
  const inside = branch('inside', [`${remember} ${pass}`, pass]);
  const connection = branch('connection', within('connections', 'sum'));
  const voice = branch('voice', within('voice'));
  const ping = branch('ping', within('pings', 'strangers'));
  const older = branch('older', [
    `${settling} ${reaches(leastVoice)} ${branch('unheard', within('voice', settlingMeter.name))}`,
  ]);
  return {
    tcp: [
      `${established} @th,88,24 & ${sessionFlags} == ${flag.ack} ${inside}`,
      `${established} @th,88,24 & ${sessionFlags} != ${flag.ack} ${pass}`,
      `@th,88,24 & ${openingFlags} == ${flag.syn} ${connection}`,
      `${settling} @th,88,24 & 0x0 == 0x0 ${branch('settling', within(settlingMeter.name))}`,
    ],
    udp: [
      `${known} ${reaches(leastVoice)} ${voice}`,
      ...ofExactly(oldPing, '@ih,0,32 0x00000000', ping, older),
      `@ih,0,16 0x0108 ${reaches(mostNewPing + 1)} ${older}`,
      `@ih,0,16 0x0108 ${reaches(leastVoice)} ${ping}`,
      older,
    ],
  };
}

export const mumble: FilterKind = {
  id: 17,
  name: 'mumble',
  label: 'Mumble',
  description:
    "Passes the server list's pings in both forms (12 bytes, the first four zero; Mumble 1.5's), and voice over UDP only " +
    'from addresses that have a TCP session open with the destination. Each source may ask 20 pings, begin 20 TCP ' +
    'connections and send 5,000 packets of voice a second; all together may ask 2,000 pings.',
  limits: [
    'Clients behind one address share what one of them has opened; it is known until a minute after its last TCP packet.',
    'Voice is encrypted: but for its least length of 5 bytes nothing of it is judged.',
    'The TCP session itself is not judged: tcp-syn-protect does that.',
    copiesPass,
  ],
  families: bothFamilies,
  transports: ['tcp', 'udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('tcp', 64738), to('udp', 64738)],
  memory: 'connection',
  needsReturnPath: true,
  enforcement: {
    tracking: 'flows',
    // Voice goes by its source's TCP session, and pings by their form.
    tracks: ['tcp'],
    settles: true,
    remembers: { seconds: 60, sources: mostRemembered },
    meters: [
      { name: 'voice', of: 'source', packetsPerSecond: 5000, burst: 5000 },
      { name: 'pings', of: 'source', packetsPerSecond: 20, burst: 50 },
      { name: 'strangers', of: 'destination', packetsPerSecond: 2000, burst: 2000 },
      { name: 'connections', of: 'source', packetsPerSecond: 20, burst: 100 },
      synSum(gameSyns),
      settlingMeter,
    ],
    judge,
    compile,
    vectors: mumbleVectors,
  },
};
