/** Packets that filter kind 20, WireGuard, is held to. Data only. */
import { datagram, type FilterVector } from '../filter-vector.ts';

const initiation = `01000000 39f8c1a2 ${'5c'.repeat(108)} ${'e1'.repeat(16)} ${'00'.repeat(16)}`;
const response = `02000000 7b00ff12 39f8c1a2 ${'a7'.repeat(48)} ${'e1'.repeat(16)} ${'00'.repeat(16)}`;
const cookie = `03000000 39f8c1a2 ${'44'.repeat(24)} ${'9d'.repeat(32)}`;
const data = (counter: string, octets: number) => `04000000 39f8c1a2 ${counter} ${'b6'.repeat(octets)}`;

export const wireguardVectors: readonly FilterVector[] = [
  {
    says: 'an initiation, a keep-alive, and data of any length',
    steps: [
      datagram(initiation, 'pass'),
      datagram(data('0000000000000000', 16), 'pass'),
      datagram(data('0100000000000000', 96), 'pass'),
      datagram(data('ffffffffff000000', 17), 'pass'),
    ],
  },
  { says: 'a full packet at the default MTU of 1420', steps: [datagram(data('0200000000000000', 1436), 'pass')] },
  { says: 'a response, as a server that begins receives it', steps: [datagram(response, 'pass')] },
  { says: 'a cookie reply', steps: [datagram(cookie, 'pass')] },
  { says: 'an initiation with an octet more', steps: [datagram(`${initiation}00`, 'discard')] },
  { says: 'an initiation with an octet less', steps: [datagram(initiation.slice(0, -2), 'discard')] },
  { says: 'data with an octet less than a keep-alive', steps: [datagram(data('0000000000000000', 15), 'discard')] },
  { says: 'data with a counter at random', steps: [datagram(data('19a4e73f00c85b01', 96), 'discard')] },
  { says: 'a reserved octet set, as AmneziaWG does', steps: [datagram(`01000100${initiation.slice(8)}`, 'discard')] },
  {
    says: 'a type that there is none of',
    steps: [datagram(`05000000${data('0000000000000000', 96).slice(8)}`, 'discard')],
  },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
