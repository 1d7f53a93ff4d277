/** Owns filter kind 26, NTP server: what it recognises and where, what that is in the kernel, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, to } from '../filter-kind.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { octetsAt } from '../octets.ts';
import { reaches, wholeWords } from '../payload-text.ts';
import { ntpVectors } from './ntp.vectors.ts';

/**
 * RFC 5905, 7.3: two bits of leap indicator, three of version, three of mode; 48 octets, then extension fields (RFC 7822)
 * and a digest in whole words. An answer comes from port 123 and repeats the time that the question bore (origin, octets
 * 24 to 31), which no client leaves at zero.
 */
const header = 48;
const ntpPort = 123;

function judge({ payload, packet }: FilterView): FilterFinding {
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  const first = octetsAt(payload, 0, 1) ?? 0;
  const version = (first >> 3) & 7;
  const mode = first & 7;
  if (mode !== 1 && mode !== 3 && mode !== 4) return { outcome: 'discard', why: `mode ${mode}, not 1, 3 or 4` };
  if (version < 1 || version > 4) return { outcome: 'discard', why: `version ${version}, not 1 to 4` };
  if (payload.length < header || payload.length % 4 !== 0) {
    return { outcome: 'discard', why: `${payload.length} octets, not 48 or more in whole words` };
  }
  if (mode !== 4) return { outcome: 'pass', why: "a client's or peer's question", charges: ['questions'] };
  if (packet.sourcePort === undefined) return { outcome: 'unknown', why: 'the source port decides' };
  if (packet.sourcePort !== ntpPort) return { outcome: 'discard', why: 'an answer that is not from port 123' };
  if (octetsAt(payload, 24, 4) === 0 && octetsAt(payload, 28, 4) === 0) {
    return { outcome: 'discard', why: 'an answer to a question without a time' };
  }
  return { outcome: 'pass', why: "a server's answer", charges: ['answers', 'answered'] };
}

function compile({ above, branch, discard, pass }: KindText) {
  const within = (...meters: string[]) => [...meters.map((meter) => `${above(meter)} ${discard}`), pass];
  const question = branch('question', within('questions'));
  const answer = branch('answer', within('answers', 'answered'));
  const form = `@ih,0,8 & 0x38 0x08-0x20 ${wholeWords} ${reaches(header)}`;
  return {
    udp: [
      // Modes 1 and 3 differ in the bit that is left out.
      `@ih,0,8 & 0x05 == 0x01 ${form} ${question}`,
      `@ih,0,8 & 0x07 == 0x04 ${form} @th,0,16 ${ntpPort} @ih,192,64 != 0 ${answer}`,
    ],
  };
}

export const ntp: FilterKind = {
  id: 26,
  name: 'ntp',
  label: 'NTP server',
  description:
    'Passes NTP packets of versions 1 to 4, of 48 bytes or more in whole words: from clients and active peers, up to 200 ' +
    "a second from each source, and servers' answers from port 123, up to 20 a second from each source and 1,000 in all. " +
    'Control and private messages, which reflectors are made of, are discarded.',
  limits: [
    copiesPass,
    "Servers' answers that nobody asked for have the right form and pass within those limits. A filter of kind " +
      'udp-amplification beside this one discards them; it lets clients through that ask from port 123 themselves, 1,000 ' +
      'questions a second.',
    'Broadcast and passive peers, clients of the first version that name no mode, and the drafts of version 5 are ' +
      'discarded.',
    'Key exchange for NTS is TCP, which is not looked at.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', ntpPort)],
  memory: 'none',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: false,
    meters: [
      { name: 'questions', of: 'source', packetsPerSecond: 200, burst: 400 },
      { name: 'answers', of: 'source', packetsPerSecond: 20, burst: 50 },
      { name: 'answered', of: 'destination', packetsPerSecond: 1000, burst: 1000 },
    ],
    judge,
    compile,
    vectors: ntpVectors,
  },
};
