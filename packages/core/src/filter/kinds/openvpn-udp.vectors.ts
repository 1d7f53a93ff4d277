/** Packets that filter kind 21, OpenVPN over UDP, is held to. Data only. */
import { datagram, type FilterVector } from '../filter-vector.ts';

const session = '6f1e0b92a4c35d78';
const bareReset = `38 ${session} 00 00000000`;
const acknowledgement = `28 ${session} 01 00000000 91b0d27c44fe03a5`;
const data = `48 000000 00000001 ${'c3'.repeat(60)}`;

export const openvpnUdpVectors: readonly FilterVector[] = [
  {
    says: "a client's bare reset, and what it sends then",
    steps: [
      datagram(bareReset, 'pass'),
      datagram(acknowledgement, 'pass'),
      datagram(`20 ${session} 00 00000001 160301`, 'pass'),
      datagram(data, 'pass'),
      datagram(`30 ${'c3'.repeat(60)}`, 'pass'),
      datagram(`19 ${session} 00 00000000`, 'pass'),
      datagram(`58 ${session} ${'77'.repeat(80)}`, 'pass'),
      datagram(bareReset, 'pass'),
      datagram(`38 ${session} 01 00000000 91b0d27c44fe03a5 00000001`, 'pass'),
    ],
  },
  {
    says: 'resets with tls-auth and tls-crypt',
    steps: [
      datagram(`38 ${session} ${'1d'.repeat(20)} 00000001 65f1c2d3 00 00000000`, 'pass'),
      { ...datagram(`38 ${session} 00000001 65f1c2d3 ${'2e'.repeat(32)} ${'3f'.repeat(5)}`, 'pass'), client: 2 },
    ],
  },
  {
    says: 'a reset with tls-crypt-v2 and its wrapped key',
    steps: [datagram(`50 ${session} 00000001 65f1c2d3 ${'2e'.repeat(32)} ${'3f'.repeat(300)}`, 'pass')],
  },
  { says: 'data of a source that has not begun', steps: [datagram(data, 'discard')] },
  { says: 'an acknowledgement of a source that has not begun', steps: [datagram(acknowledgement, 'discard')] },
  {
    says: 'data of another source than the one that has begun',
    steps: [datagram(bareReset, 'pass'), { ...datagram(data, 'discard'), client: 2 }],
  },
  {
    says: "a server's operations, and those of no version, from a known source",
    steps: [
      datagram(bareReset, 'pass'),
      datagram(`40 ${session} 01 00000000 91b0d27c44fe03a5 00000000`, 'discard'),
      datagram(`08 ${session} 00 00000000`, 'discard'),
      datagram(`60 ${session} 00 00000000`, 'discard'),
    ],
  },
  { says: 'a reset under another key id', steps: [datagram(`39 ${session} 00 00000000`, 'discard')] },
  { says: 'a bare reset with a packet id', steps: [datagram(`38 ${session} 00 00000001`, 'discard')] },
  { says: 'a bare reset with an octet more', steps: [datagram(`${bareReset} 00`, 'discard')] },
  { says: 'a bare reset cut off', steps: [datagram(`38 ${session} 00 000000`, 'discard')] },
  { says: 'a reset of the third version, too short', steps: [datagram(`50 ${session} ${'2e'.repeat(44)}`, 'discard')] },
  {
    says: 'a running session is learnt while the filter settles',
    settling: true,
    steps: [datagram(data, 'pass'), datagram(acknowledgement, 'pass'), datagram('40', 'discard')],
  },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
