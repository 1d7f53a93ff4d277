/** Owns filter kind 14, FiveM and RedM: what it recognises and where, what that is in the kernel, what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';
import { datagram, type FilterVector, hexOf, type VectorStep } from '../filter-vector.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { holdsAt, octetsAt } from '../octets.ts';
import { reaches } from '../payload-text.ts';
import { settlingMeter } from '../settling-meter.ts';
import { gameSyns, synSum } from '../syn-meters.ts';
import { hasFlags, isOpening, tcpFlag } from '../tcp-segment.ts';

/**
 * The published source of client and server (NetLibrary, NetLibraryImplV2, GameServerNet.ENet, outofbandhandlers): words
 * behind four octets of ones are asked outside of a session, which is ENet's, without checksum and compression. ENet 1.3
 * (protocol.h): two octets of peer number, all twelve bits set before there is one, with the bit for two octets of
 * time; then CONNECT (2, acknowledged: 82) on channel ff, the first of its sequence, 52 octets in all. Its client sends
 * something at least every tenth of a second, well within the time that conntrack remembers a flow.
 */
const outside = 0xffffffff;
const words = ['getinfo', 'getstatus', 'connect'].map((word) => Buffer.from(word, 'latin1'));
const connectOctets = 52;
const { ack, fin, rst, syn } = tcpFlag;

function judge(view: FilterView): FilterFinding {
  return view.transport === 'tcp' ? judgeConnection(view) : judgeDatagram(view);
}

function judgeConnection({ packet, established, settling }: FilterView): FilterFinding {
  if (isOpening(packet.tcpFlags ?? 0))
    return { outcome: 'pass', why: 'a new connection', charges: ['connections', 'sum'] };
  if (established) return { outcome: 'pass', why: 'part of a known connection' };
  const flags = packet.tcpFlags ?? 0;
  return judgeUnknown(settling && (flags & (ack | syn)) === ack, 'connection');
}

function judgeDatagram({ payload, established, settling }: FilterView): FilterFinding {
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  const first = octetsAt(payload, 0, 4);
  if (first === undefined) return { outcome: 'discard', why: `${payload.length} octets: no packet is that short` };
  if (first === outside) {
    if (words.some((word) => holdsAt(payload, 4, word))) {
      return { outcome: 'pass', why: 'a question outside of a session', charges: ['query', 'queries'] };
    }
    return { outcome: 'discard', why: 'a question that players do not ask' };
  }
  if (established) return { outcome: 'pass', why: 'a packet of a known session', charges: ['session'] };
  const connects = octetsAt(payload, 0, 2) === 0x8fff && octetsAt(payload, 4, 4) === 0x82ff0001;
  if (connects && payload.length === connectOctets) {
    return { outcome: 'pass', why: 'the opening of a session', charges: ['query', 'openings'] };
  }
  return judgeUnknown(settling, 'session');
}

function judgeUnknown(settling: boolean, what: string): FilterFinding {
  if (!settling) return { outcome: 'discard', why: `part of no known ${what}` };
  return {
    outcome: 'pass',
    why: `perhaps part of a ${what} that ran before the filter`,
    charges: [settlingMeter.name],
  };
}

function compile({ above, branch, discard, established, pass, settling }: KindText) {
  const go = (name: string, of: readonly string[]) =>
    branch(name, [...of.map((meter) => `${above(meter)} ${discard}`), pass]);
  const unseen = go('settling', [settlingMeter.name]);
  const query = go('query', ['query', 'queries']);
  const open = go('open', ['query', 'openings']);
  const connect = '@ih,0,16 0x8fff @ih,32,32 0x82ff0001';
  return {
    tcp: [
      `${hasFlags(syn, ack | fin | rst)} ${go('connect', ['connections', 'sum'])}`,
      `${established} ${pass}`,
      `${settling} ${hasFlags(ack, syn)} ${unseen}`,
    ],
    udp: [
      `@ih,0,32 != 0xffffffff ${established} ${go('session', ['session'])}`,
      ...words.map((word) => `@ih,0,32 0xffffffff @ih,32,${word.length * 8} 0x${word.toString('hex')} ${query}`),
      `@ih,0,32 0xffffffff ${discard}`,
      `${connect} ${reaches(connectOctets)} ${branch('exact', [
        `${reaches(connectOctets + 1)} ${branch('longer', [`${settling} ${unseen}`])}`,
        open,
      ])}`,
      `${reaches(4)} ${settling} ${unseen}`,
    ],
  };
}

const outsideOf = (text: string) => `ffffffff ${hexOf(text)}`;
const connect =
  '8fff 6e96 82ff0001 0000 ff ff 00000578 00010000 00000002 00000000 00000000 00001388 00000002 00000002 516b4b91 00000000';
const verify =
  '0000 6e96 83ff0001 0000 00 00 00000514 00010000 00000002 00000000 00000000 00001388 00000002 00000002 516b4b91';
const sent = '8000 6ea0 86000001 0008 0100000061626364';
const answer = (payload: string): VectorStep => ({ from: 'server', transport: 'udp', payload });
const segment = (flags: number, expect: 'pass' | 'discard', payload = ''): VectorStep => ({
  from: 'client',
  transport: 'tcp',
  flags,
  payload,
  expect,
});

const vectors: readonly FilterVector[] = [
  { says: 'getinfo, from gamedig 5.3.3', steps: [datagram(outsideOf('getinfo xxx\0'), 'pass')] },
  { says: 'getinfo as the game asks (NetLibrary.cpp)', steps: [datagram(outsideOf('getinfo xyz'), 'pass')] },
  { says: 'getstatus', steps: [datagram(outsideOf('getstatus'), 'pass')] },
  {
    says: "connect, of the game's first versions (NetLibrary.cpp)",
    steps: [datagram(outsideOf('connect token=a&guid=1'), 'pass')],
  },
  {
    says: 'a session from its opening on, the octets from ENet 1.3',
    steps: [datagram(connect, 'pass'), answer(verify), datagram(sent, 'pass')],
  },
  {
    says: 'no session before the server answered, nor from another port',
    steps: [
      datagram(connect, 'pass'),
      datagram(sent, 'discard'),
      answer(verify),
      { ...datagram(sent, 'discard'), clientPort: 40_001 },
    ],
  },
  { says: 'a running session while the filter settles', settling: true, steps: [datagram(sent, 'pass')] },
  {
    says: 'a TCP connection, as the game loads resources',
    steps: [
      segment(0x02, 'pass'),
      { from: 'server', transport: 'tcp', flags: 0x12 },
      segment(0x10, 'pass'),
      segment(0x18, 'pass', hexOf('POST /client HTTP/1.1\r\n')),
    ],
  },
  { says: 'a running TCP connection while the filter settles', settling: true, steps: [segment(0x18, 'pass', '00')] },
  {
    says: 'TCP data, SYN-ACK and reset of no connection',
    steps: [segment(0x18, 'discard', '00'), segment(0x12, 'discard'), segment(0x04, 'discard')],
  },
  { says: 'session traffic of no session', steps: [datagram(sent, 'discard')] },
  { says: 'rcon', steps: [datagram(outsideOf('rcon secret status'), 'discard')] },
  {
    says: "a server's answer, as a reflection brings it",
    steps: [datagram(outsideOf('infoResponse\n\\sv_maxclients\\32'), 'discard')],
  },
  {
    says: 'rcon, while the filter settles, and on a known flow',
    settling: true,
    steps: [datagram(connect, 'pass'), answer(verify), datagram(outsideOf('rcon secret status'), 'discard')],
  },
  { says: 'an opening of a peer that has a number', steps: [datagram(connect.replace('8fff', '8001'), 'discard')] },
  { says: 'an opening that is cut off', steps: [datagram(connect.slice(0, -2), 'discard')] },
  { says: 'an opening with something behind it', steps: [datagram(`${connect} 00`, 'discard')] },
  { says: 'three octets, while the filter settles', settling: true, steps: [datagram('8fff00', 'discard')] },
];

export const fivem: FilterKind = {
  id: 14,
  name: 'fivem',
  label: 'FiveM and RedM',
  description:
    'Passes information and status queries, connection requests and the opening of a session over UDP, session ' +
    'traffic only of flows that the server has answered, and TCP connections of clients that load resources from the ' +
    'same port. A source may send 20 queries or openings and 2,000 packets of sessions a second and begin 50 TCP ' +
    'connections; a destination gets 500 queries and 500 openings a second.',
  limits: [
    copiesPass,
    'What is asked over TCP is not looked at.',
    'Remote control (rcon) over UDP is discarded: let it through by a rule that accepts the address of whoever uses it.',
    "The words of queries are taken from the published source of FiveM, the session's opening was held against ENet 1.3; " +
      'no server of FiveM was at hand.',
  ],
  families: bothFamilies,
  transports: ['tcp', 'udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('tcp', 30120), to('udp', 30120)],
  memory: 'connection',
  needsReturnPath: true,
  enforcement: {
    tracking: 'flows',
    settles: true,
    meters: [
      { name: 'query', of: 'source', packetsPerSecond: 20, burst: 100 },
      { name: 'queries', of: 'destination', packetsPerSecond: 500, burst: 1000 },
      { name: 'openings', of: 'destination', packetsPerSecond: 500, burst: 2000 },
      { name: 'session', of: 'source', packetsPerSecond: 2000, burst: 4000 },
      { name: 'connections', of: 'source', packetsPerSecond: 50, burst: 200 },
      synSum(gameSyns),
      settlingMeter,
    ],
    judge,
    compile,
    vectors,
  },
};
