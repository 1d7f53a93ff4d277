/** Packets that filter kind 24, DTLS, is held to. Data only. */
import { datagram, type FilterVector } from '../filter-vector.ts';

/** RFC 6347, 4.2.2: type, length, message sequence, fragment offset and length. */
const hello = (version: string) =>
  `16 ${version} 0000 000000000000 0036 01 00002a 0000 000000 00002a fefd ${'5a'.repeat(40)}`;
const applicationData = `17 fefd 0001 000000000001 0020 ${'c7'.repeat(32)}`;
const encrypted = `2e 41 ${'c7'.repeat(32)}`;

export const dtlsVectors: readonly FilterVector[] = [
  {
    says: 'a ClientHello, and the records of the session',
    steps: [
      datagram(hello('feff'), 'pass'),
      datagram(hello('fefd'), 'pass'),
      datagram('14 fefd 0000 000000000002 0001 01', 'pass'),
      datagram(`16 fefd 0001 000000000000 0028 ${'c7'.repeat(40)}`, 'pass'),
      datagram(applicationData, 'pass'),
      datagram(`15 fefd 0001 000000000002 0012 ${'c7'.repeat(18)}`, 'pass'),
      datagram(encrypted, 'pass'),
    ],
  },
  { says: 'a record of a source that has not begun', steps: [datagram(applicationData, 'discard')] },
  { says: 'an encrypted record of DTLS 1.3 of a source that has not begun', steps: [datagram(encrypted, 'discard')] },
  {
    says: 'a record with a connection id from a new address (RFC 9146), and then any',
    steps: [
      datagram(`19 fefd 0001 00000000000a 5c11 0020 ${'c7'.repeat(32)}`, 'pass'),
      datagram(applicationData, 'pass'),
    ],
  },
  {
    says: 'what a known source may not send',
    steps: [
      datagram(hello('fefd'), 'pass'),
      datagram(`17 0303 0001 000000000001 0020 ${'c7'.repeat(32)}`, 'discard'),
      datagram(`1b fefd 0001 000000000001 0020 ${'c7'.repeat(32)}`, 'discard'),
      datagram('17 fefd 0001 000000000001 00', 'discard'),
      datagram(`2e 41 ${'c7'.repeat(15)}`, 'discard'),
      datagram('8000 0001 00000000 00000000', 'discard'),
    ],
  },
  { says: 'a Finished message first', steps: [datagram(hello('fefd').replace('0036 01', '0036 14'), 'discard')] },
  { says: 'a ClientHello of a later epoch', steps: [datagram(hello('fefd').replace('0000 ', '0001 '), 'discard')] },
  { says: 'a ClientHello of TLS', steps: [datagram(`16 0301 0036 01 000032 0303 ${'5a'.repeat(48)}`, 'discard')] },
  { says: 'a handshake header cut off', steps: [datagram(hello('fefd').replace(/ /g, '').slice(0, 48), 'discard')] },
  {
    says: 'running sessions are learnt while the filter settles',
    settling: true,
    steps: [
      datagram(applicationData, 'pass'),
      { ...datagram(encrypted, 'pass'), client: 2 },
      datagram('8000', 'discard'),
    ],
  },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
