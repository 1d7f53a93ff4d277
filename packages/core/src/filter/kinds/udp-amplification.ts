/** Owns filter kind 3, UDP amplification: what it recognises and where, and what it cannot do. */
import { bothFamilies, type FilterKind } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { octetsAt } from '../octets.ts';
import { reaches } from '../payload-text.ts';
import { udpAmplificationVectors } from './udp-amplification.vectors.ts';

/**
 * Of services that answer a small question with a large answer, to whoever is named as the asker: those of CISA's alert
 * TA14-017A that have a port of their own, and what was abused since (427 SLP, 1434 SQL Server's browser, 3283 Apple
 * Remote Desktop, 3389 RDP, 3702 WS-Discovery, 5683 CoAP, 10001 Ubiquiti, 11211 memcached). None from the range of which
 * Linux takes clients' ports (32768 to 60999).
 */
const reflectorPorts = [
  17, 19, 53, 69, 111, 123, 137, 161, 389, 427, 520, 1434, 1900, 3283, 3389, 3702, 5353, 5683, 10001, 11211, 27960,
];

/**
 * NTP's servers ask each other from port 123, and so do ntpd and network gear as clients. RFC 5905, 7.3: modes 1 and 3 ask,
 * 6 and 7 are what reflectors are made of, which nobody answers from port 123 to port 123.
 */
const ntpPort = 123;
const ntpHeader = 48;

function judge(view: FilterView): FilterFinding {
  const { established, packet, payload } = view;
  if (packet.sourcePort === ntpPort && packet.destinationPort === ntpPort) {
    if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides between servers of NTP' };
    const mode = (octetsAt(payload, 0, 1) ?? 0) & 7;
    if (mode >= 6) return { outcome: 'discard', why: `mode ${mode}, which servers of NTP do not send each other` };
    if (!established && (mode === 1 || mode === 3) && payload.length >= ntpHeader) {
      return { outcome: 'pass', why: 'a question of NTP from its own port', charges: ['questions', 'asked'] };
    }
  }
  if (established) return { outcome: 'pass', why: 'of a flow that the router has seen in both directions' };
  return { outcome: 'discard', why: "from a reflector's port, and no answer to anything" };
}

/** Fragments are put together before they get here, as the destination's flows are seen. */
function compile({ above, branch, discard, established, pass }: KindText) {
  const question = branch('question', [`${above('questions')} ${discard}`, `${above('asked')} ${discard}`, pass]);
  const betweenServers = `@th,0,32 0x${ntpPort.toString(16).padStart(4, '0').repeat(2)}`;
  return {
    udp: [
      `${betweenServers} @ih,0,8 & 0x06 == 0x06 ${discard}`,
      `${established} ${pass}`,
      `${betweenServers} @ih,0,8 & 0x05 == 0x01 ${reaches(ntpHeader)} ${question}`,
    ],
  };
}

export const udpAmplification: FilterKind = {
  id: 3,
  name: 'udp-amplification',
  label: 'UDP amplification',
  description:
    'Discards UDP packets from the ports of services that are abused as reflectors, such as DNS, NTP, SSDP, CLDAP ' +
    'and memcached, unless they answer what the destination asked; and UDP fragments whose datagram is not complete.',
  limits: [
    'Reflectors on other ports pass; port.src names the ports to look at.',
    'A client that sends from one of these ports is taken for a reflector, such as players of games with an engine of Quake ' +
      '(27960) and old DNS forwarders (53): port.src says which ports to look at. Questions of NTP from port 123 to port 123 ' +
      'pass, 200 a second of each source and 1,000 in all.',
    'What the destination asked before the filter was switched on has to be asked again: a flood is met at once.',
    'The router keeps fragments until their datagram is complete, within its own bounds: during a flood of them wanted ' +
      'fragments are lost too.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: reflectorPorts.map((port) => ({ side: 'src', transport: 'udp', start: port, end: port })),
  memory: 'connection',
  needsReturnPath: true,
  enforcement: {
    tracking: 'flows',
    // An answer that is lost is asked for again within seconds, while a reflected flood would pass for as long.
    settles: false,
    // No other flow can be had without the destination's asking: its own questions are the bound.
    meters: [
      { name: 'questions', of: 'source', packetsPerSecond: 200, burst: 400 },
      { name: 'asked', of: 'destination', packetsPerSecond: 1000, burst: 1000 },
    ],
    judge,
    compile,
    vectors: udpAmplificationVectors,
  },
};
