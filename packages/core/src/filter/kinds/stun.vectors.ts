/** Packets that filter kind 25, STUN and TURN, is held to. Data only. */
import { datagram, type FilterVector } from '../filter-vector.ts';

const cookie = '2112a442';
const transaction = '8f3ad1029bb5c07e44d6a921';
const bare = (type: string) => `${type} 0000 ${cookie} ${transaction}`;
const binding = bare('0001');
const allocate = `0003 0008 ${cookie} ${transaction} 0019 0004 11000000`;
const channelData = `4000 000c ${'80'.repeat(12)}`;

export const stunVectors: readonly FilterVector[] = [
  { says: 'a Binding request without attributes', steps: [datagram(binding, 'pass')] },
  {
    says: 'a request for a relay, and what its client sends then',
    steps: [
      datagram(allocate, 'pass'),
      datagram(bare('0009'), 'pass'),
      datagram(channelData, 'pass'),
      datagram('4fff 0001 ff', 'pass'),
      datagram(`6c3a 0004 ${'80'.repeat(4)}`, 'pass'),
      datagram(`0016 0008 ${cookie} ${transaction} 0013 0004 aabbccdd`, 'pass'),
      datagram(bare('0011'), 'pass'),
      datagram(bare('0101'), 'pass'),
      datagram(binding, 'pass'),
    ],
  },
  { says: 'a request for a permission', steps: [datagram(bare('0008'), 'pass'), datagram(channelData, 'pass')] },
  {
    says: 'channel data of a source without a relay',
    steps: [datagram(binding, 'pass'), datagram(channelData, 'discard')],
  },
  { says: 'an answer, as reflectors send it', steps: [datagram(bare('0101'), 'discard')] },
  { says: 'an indication to send, from a source without a relay', steps: [datagram(bare('0016'), 'discard')] },
  {
    says: 'a request without the cookie (RFC 3489)',
    steps: [datagram(`0001 0000 00000000 ${transaction}`, 'discard')],
  },
  { says: 'a length that is no whole words', steps: [datagram(`0001 0002 ${cookie} ${transaction}`, 'discard')] },
  { says: 'a payload that is no whole words', steps: [datagram(`${binding} 00`, 'discard')] },
  { says: 'a header cut off', steps: [datagram(binding.slice(0, -8), 'discard')] },
  { says: 'the first two bits set', steps: [datagram(bare('8001'), 'discard'), datagram(bare('4001'), 'discard')] },
  {
    says: 'what is no channel, and channel data cut off, of a known source',
    steps: [
      datagram(allocate, 'pass'),
      datagram(`8000 000c ${'80'.repeat(12)}`, 'discard'),
      datagram('4000 00', 'discard'),
    ],
  },
  {
    says: 'relays in use are learnt while the filter settles',
    settling: true,
    steps: [
      datagram(channelData, 'pass'),
      { ...datagram(bare('0016'), 'pass'), client: 2 },
      datagram('8000 0000', 'discard'),
    ],
  },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
