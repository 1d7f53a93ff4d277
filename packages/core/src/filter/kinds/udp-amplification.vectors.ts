/** Packets that filter kind 3, UDP amplification, is held to. Data only: the flow decides, and of NTP what is said in it. */
import type { FilterVector, VectorStep } from '../filter-vector.ts';

/** RFC 1035: the answer and the question for example.com A; RFC 5905: an NTP answer's first octets. */
const dnsQuestion = '4d31 0100 0001 0000 0000 0000 076578616d706c6503636f6d00 0001 0001';
const dnsAnswer = '4d31 8180 0001 0000 0000 0000 076578616d706c6503636f6d00 0001 0001';
const ntpMonlist = 'd7 00 03 2a 0006 0048';
const ntpQuestion = (first: string) => `${first} ${'00'.repeat(47)}`;

const fromPort = (clientPort: number, payload: string, expect: 'pass' | 'discard'): VectorStep => {
  return { from: 'client', transport: 'udp', clientPort, serverPort: 40_000, payload, expect };
};
const betweenServers = (payload: string, expect: 'pass' | 'discard'): VectorStep => {
  return { ...fromPort(123, payload, expect), serverPort: 123 };
};
const question = (clientPort: number, payload: string): VectorStep => {
  return { from: 'server', transport: 'udp', clientPort, serverPort: 40_000, payload };
};

export const udpAmplificationVectors: readonly FilterVector[] = [
  {
    says: 'an answer to what the destination asked, and another one',
    steps: [question(53, dnsQuestion), fromPort(53, dnsAnswer, 'pass'), fromPort(53, dnsAnswer, 'pass')],
  },
  { says: 'the same of NTP', steps: [question(123, '23'), fromPort(123, '24', 'pass')] },
  { says: 'what does not come from a reflector, such as a game', steps: [fromPort(50_000, dnsAnswer, 'pass')] },
  { says: 'DNS answers that nobody asked for', steps: [fromPort(53, dnsAnswer, 'discard')] },
  { says: 'lists of an NTP server (mode 7, CVE-2013-5211)', steps: [fromPort(123, ntpMonlist, 'discard')] },
  {
    says: 'an answer from a server that was not asked',
    steps: [question(53, dnsQuestion), { ...fromPort(53, dnsAnswer, 'discard'), client: 2 }],
  },
  {
    says: 'an answer to a port that did not ask',
    steps: [question(53, dnsQuestion), { ...fromPort(53, dnsAnswer, 'discard'), serverPort: 40_001 }],
  },
  {
    says: 'questions of NTP from its own port (RFC 5905: ntpd as a client, a symmetric peer)',
    steps: [betweenServers(ntpQuestion('23'), 'pass'), betweenServers(ntpQuestion('21'), 'pass')],
  },
  {
    says: 'an answer, a broadcast and a list of NTP from its own port, and a question that is cut off',
    steps: ['24', '25']
      .map((first) => betweenServers(ntpQuestion(first), 'discard'))
      .concat(betweenServers(ntpMonlist, 'discard'), betweenServers(ntpQuestion('23').slice(0, -2), 'discard')),
  },
  {
    says: 'a question from port 123 to another port, and from another one to port 123',
    steps: [
      fromPort(123, ntpQuestion('23'), 'discard'),
      { ...betweenServers(ntpQuestion('23'), 'discard'), clientPort: 53 },
    ],
  },
  {
    says: 'servers of NTP that ask each other, one of which is had to reflect lists',
    steps: [
      { from: 'server', transport: 'udp', clientPort: 123, serverPort: 123, payload: ntpQuestion('21') },
      betweenServers(ntpQuestion('24'), 'pass'),
      betweenServers(ntpQuestion('21'), 'pass'),
      betweenServers(ntpMonlist, 'discard'),
      betweenServers('16020001', 'discard'),
    ],
  },
  { says: 'SSDP', steps: [fromPort(1900, '485454502f312e3120323030204f4b0d0a', 'discard')] },
  {
    says: 'memcached (RFC-less, its protocol.txt: a frame of 8 octets)',
    steps: [fromPort(11211, '0000000000010000', 'discard')],
  },
  { says: 'CLDAP', steps: [fromPort(389, '3084000000', 'discard')] },
  { says: 'CharGEN (RFC 864)', steps: [fromPort(19, '2122232425262728', 'discard')] },
  { says: 'nothing in it', steps: [fromPort(53, '', 'discard')] },
];
