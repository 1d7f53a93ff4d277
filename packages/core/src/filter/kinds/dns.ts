/** Owns filter kind 22, DNS server: what it recognises and where, what that is in the kernel, and what it cannot do. */
import { bothFamilies, copiesPass, type FilterKind, ownQuestionsLost, to } from '../filter-kind.ts';
import { datagram, hexOf } from '../filter-vector.ts';
import type { FilterFinding, FilterView } from '../judgement.ts';
import type { KindText } from '../kind-text.ts';
import { octetsAt } from '../octets.ts';

/**
 * RFC 1035, 4.1.1: QR, then four bits of opcode, in the third octet; counts of the four sections from the fifth on. The
 * additional section is free: EDNS (RFC 6891) and TSIG stand there.
 */
function judge({ payload }: FilterView): FilterFinding {
  if (payload === undefined) return { outcome: 'unknown', why: 'the payload decides' };
  const third = octetsAt(payload, 2, 1);
  if (third === undefined || octetsAt(payload, 10, 2) === undefined) {
    return { outcome: 'discard', why: `${payload.length} octets hold no DNS header, which has 12` };
  }
  if ((third & 0x80) !== 0) return { outcome: 'discard', why: 'an answer, not a question' };
  if ((third & 0x78) !== 0) return { outcome: 'discard', why: `opcode ${(third >> 3) & 15}, not a standard query` };
  if (octetsAt(payload, 4, 2) !== 1) return { outcome: 'discard', why: `${octetsAt(payload, 4, 2)} questions, not 1` };
  if (octetsAt(payload, 6, 4) !== 0) return { outcome: 'discard', why: 'a question with answer or authority records' };
  return { outcome: 'pass', why: 'a DNS question', charges: ['source'] };
}

/** The load of 96 bits fails where the header is cut off. */
function compile({ above, discard, pass }: KindText) {
  const header = '@ih,0,96 & 0x0000f800ffffffffffff0000 == 0x000000000001000000000000';
  return { udp: [`${header} ${above('source')} ${discard}`, `${header} ${pass}`] };
}

const question = `${hexOf('\x07example\x03com\x00')} 0001 0001`;

export const dns: FilterKind = {
  id: 22,
  name: 'dns',
  label: 'DNS server',
  description:
    'Passes DNS questions over UDP: a standard query with exactly one question and no answer or authority records.',
  limits: [
    copiesPass,
    'Floods of well-formed questions, for random names too, pass within the limits.',
    'NOTIFY, dynamic updates and incremental transfers over UDP are discarded: let them through by a rule that ' +
      "accepts the peer's address.",
    'Questions that ask for a cookie alone (RFC 7873, 5.4) are discarded: clients ask them seldom, and ask anew with a name.',
    ownQuestionsLost,
    'DNS over TCP, TLS, HTTPS and QUIC is not looked at.',
  ],
  families: bothFamilies,
  transports: ['udp'],
  destinationPorts: 'optional',
  defaultPorts: [to('udp', 53)],
  memory: 'none',
  needsReturnPath: false,
  enforcement: {
    tracking: 'nothing',
    settles: false,
    meters: [{ name: 'source', of: 'source', packetsPerSecond: 1000, burst: 2000 }],
    judge,
    compile,
    vectors: [
      { says: 'a question for example.com A', steps: [datagram(`4d31 0100 0001 0000 0000 0000 ${question}`, 'pass')] },
      {
        says: 'the same with EDNS and a cookie, as dig 9.18 asks',
        steps: [
          datagram(
            `4d31 0120 0001 0000 0000 0001 ${question} 00 0029 04d0 0000 0000 000c 000a 0008 0123456789abcdef`,
            'pass',
          ),
        ],
      },
      {
        says: 'a question of another resolver, for the name servers of the root, without recursion (RFC 1035, 4.1.1)',
        steps: [datagram('9c40 0000 0001 0000 0000 0000 00 0002 0001', 'pass')],
      },
      {
        says: 'a question of dig 9.18 for DNSSEC, the name of the server, a subnet and padding',
        steps: [
          datagram(
            `
          97910120000100000000000103777777076578616d706c6503636f6d000001000100002904d0000080000054000300000008
          000700011800c00002000a000849334ba6f05fdc90000c003500000000000000000000000000000000000000000000000000
          00000000000000000000000000000000000000000000000000000000`,
            'pass',
          ),
        ],
      },
      { says: 'an answer', steps: [datagram(`4d31 8180 0001 0000 0000 0000 ${question}`, 'discard')] },
      { says: 'NOTIFY (opcode 4)', steps: [datagram(`4d31 2400 0001 0000 0000 0000 ${question}`, 'discard')] },
      { says: 'two questions', steps: [datagram(`4d31 0100 0002 0000 0000 0000 ${question}${question}`, 'discard')] },
      {
        says: 'an authority record, as in IXFR',
        steps: [datagram(`4d31 0000 0001 0000 0001 0000 ${question}`, 'discard')],
      },
      { says: 'a header cut off in its last octet', steps: [datagram('4d31 0100 0001 0000 0000 00', 'discard')] },
      { says: 'no payload', steps: [datagram('', 'discard')] },
    ],
  },
};
