/**
 * Packets that filter kind 23, QUIC, is held to. Data only. Headers are those that gtlsclient 0.12.1 (ngtcp2) sent over
 * loopback while it fetched a file from gtlsserver, with zeros for what is encrypted; of version 2, RFC 9369, appendix A.
 */
import { datagram, type FilterVector } from '../filter-vector.ts';

/** Zeros up to that many octets. */
const filled = (header: string, octets: number) => {
  const digits = header.replaceAll(' ', '');
  return digits + '00'.repeat(octets - digits.length / 2);
};

const initialHeader =
  'cb 00000001 12 ecaf6ef95f639e1de5033f1fc653c31f8b90 11 8ae8d0273a541d170612bcc66be62b5642 00 8000';
const initial = filled(initialHeader, 1200);
const handshake = filled(
  'ef 00000001 12 1b1e58a1336cfaba1ef5fb290b402dc58760 11 8ae8d0273a541d170612bcc66be62b5642 8000 0019',
  71,
);
const zeroRtt = filled(
  'd3 00000001 12 ecaf6ef95f639e1de5033f1fc653c31f8b90 11 8ae8d0273a541d170612bcc66be62b5642',
  900,
);
const short = filled('5d 1b1e58a1336cfaba1ef5fb290b402dc58760', 44);
/** The fixed bit cleared, as that client does when the server has said that it may (RFC 9287). */
const greased = filled('0d 60eaf77639a0aeebd2006bb894281530a47e', 44);

/** RFC 9369, 3.2: the four types are each one further than in version 1. */
const initial2 = filled('d7 6b3343cf 08 8394c8f03e515708 00 00 449e', 1200);
const handshake2 = filled('fd 6b3343cf 08 f067a5502a4262b5 00 4050', 90);
const retry2 = filled('cf 6b3343cf 00 08 f067a5502a4262b5 746f6b656e', 40);

export const quicVectors: readonly FilterVector[] = [
  {
    says: 'a connection: Initial, Handshake, and what follows with short headers, the fixed bit set or cleared',
    steps: [
      datagram(initial, 'pass'),
      datagram(handshake, 'pass'),
      datagram(short, 'pass'),
      datagram(greased, 'pass'),
      datagram(filled('5a 1b1e58a1336cfaba1ef5fb290b402dc58760', 1444), 'pass'),
    ],
  },
  {
    says: 'a connection of version 2 (RFC 9369, A.2; the types of 3.2)',
    steps: [datagram(initial2, 'pass'), datagram(handshake2, 'pass'), datagram(short, 'pass')],
  },
  { says: '0-RTT data behind the Initial', steps: [datagram(initial, 'pass'), datagram(zeroRtt, 'pass')] },
  {
    says: 'an Initial of 1357 octets with the fixed bit cleared, as a client that was here before may (RFC 9287, 3.1)',
    steps: [datagram(filled(initialHeader.replace('cb', '8b'), 1357), 'pass')],
  },
  {
    says: 'the next Initial names the id that the server chose, which may be short or none',
    steps: [
      datagram(initial, 'pass'),
      datagram(filled('c1 00000001 00 11 8ae8d0273a541d170612bcc66be62b5642 00 4482', 1200), 'pass'),
      datagram(filled('c1 00000001 04 aabbccdd 00 00 4482', 1200), 'pass'),
    ],
  },
  {
    says: 'the same port is not needed: a client behind a NAT that has forgotten it goes on',
    steps: [datagram(initial, 'pass'), { ...datagram(short, 'pass'), clientPort: 40001 }],
  },
  {
    says: 'what an unknown source sends beside an Initial',
    steps: [datagram(short, 'discard'), datagram(handshake, 'discard'), datagram(zeroRtt, 'discard')],
  },
  {
    says: "another source's Initial opens nothing",
    steps: [datagram(initial, 'pass'), { ...datagram(short, 'discard'), client: 2 }],
  },
  {
    says: 'an Initial that does not fill 1200 octets (RFC 9000, 14.1)',
    steps: [datagram(filled(initialHeader, 1199), 'discard')],
  },
  {
    says: 'a first Initial with an id of 7 octets (RFC 9000, 7.2)',
    steps: [datagram(filled('c1 00000001 07 01020304050607 00 00 4482', 1200), 'discard')],
  },
  {
    says: 'an id of 21 octets (RFC 9000, 17.2)',
    steps: [datagram(filled(`c1 00000001 15 ${'ab'.repeat(21)} 00 00 4482`, 1200), 'discard')],
  },
  {
    says: 'Retry and version negotiation, which servers send',
    steps: [
      datagram(initial, 'pass'),
      datagram(filled('ff 00000001 00 08 f067a5502a4262b5 746f6b656e', 36), 'discard'),
      datagram(retry2, 'discard'),
      datagram(`8a 00000000 08 8394c8f03e515708 00 00000001 6b3343cf`, 'discard'),
    ],
  },
  {
    says: 'draft 29, the draft of version 2 that ngtcp2 0.12.1 calls v2draft, and Google QUIC 50',
    steps: [
      datagram(filled('c3 ff00001d 08 8394c8f03e515708 00 00 449e', 1200), 'discard'),
      datagram(filled('d3 709a50c4 08 8394c8f03e515708 00 00 449e', 1200), 'discard'),
      datagram(filled('c3 51303530 08 8394c8f03e515708 00 00 449e', 1350), 'discard'),
    ],
  },
  {
    says: 'a short header with nothing to sample (RFC 9001, 5.4.2), and the least that has it',
    steps: [datagram(initial, 'pass'), datagram(filled('41', 20), 'discard'), datagram(filled('41', 21), 'pass')],
  },
  { says: 'a long header cut off behind its version', steps: [datagram('c3 00000001', 'discard')] },
  { says: 'no payload', steps: [datagram('', 'discard')] },
  {
    says: 'while it settles, connections that ran before go on and are known from then on; other forms are not',
    settling: true,
    steps: [
      datagram(filled('41', 20), 'discard'),
      datagram(filled(initialHeader, 1199), 'discard'),
      datagram(short, 'pass'),
      { ...datagram(handshake, 'pass'), client: 2 },
      { ...datagram(greased, 'pass'), client: 3 },
    ],
  },
];
