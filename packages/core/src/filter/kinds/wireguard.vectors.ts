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
  {
    says: 'a session of wireguard-go 0.0.20220316: initiation and data',
    steps: [
      datagram(
        `
        010000009fe40ee688fb33a6c3b543a34f5bace0eed0b985b5bdcfdb56a7ffd83f0b75ed38925423515456e38a799d9129207e10
        ff4f702d5a67a10c2d8b36244834eb76b0422918089316e10768429e58543647073d75a552d57422d1809084b033ac05f5235441
        a8dd03067c63a8cdf5745f405b443015fc6943559103701c1c6173d200000000000000000000000000000000`,
        'pass',
      ),
      datagram(
        `
        04000000471d402a00000000000000009013f45251d0c72f785d78517d8cfd2923e9bf9439c9768b20b322994e2b0c4cf636678f
        bdc97c14260223ef0f5410b4`,
        'pass',
      ),
      datagram(
        `
        04000000471d402a010000000000000005448b5d2af7959a03c09bdd0fee833f1c2bb6ebef61664b06a72dccfe6a58a2593e47b0
        89eaaab7988481744ffb8b61`,
        'pass',
      ),
      datagram(
        `
        04000000471d402a02000000000000001ebce9a5c3c46f1919cf515f6a0ee5811777fa8b8c639651c43ed6c42034be1007321640
        804f15191bafa72a639892337b6fd5850e2611634e929a422c65de4b`,
        'pass',
      ),
    ],
  },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
