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
      datagram('7ffe 0000', 'pass'),
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
  {
    says: 'questions of the STUN client of coturn 4.6.1',
    steps: [
      datagram('000100002112a44280f5aed033a99f609a3d113d', 'pass'),
      datagram('000100102112a44237b49ba23d3b66fb944e88b000270004a5f200000003000400000006', 'pass'),
    ],
  },
  {
    says: 'a client of coturn 4.6.1: allocation, channel, data on a channel outside the range of RFC 8656',
    steps: [
      datagram(
        `
        000300202112a442a570cb1fe053fe66d411dd910019000411000000000d0004000003090018000100000000802800046e1186c6`,
        'pass',
      ),
      datagram(
        `
        000900642112a442334b2254730d15590cc92a9c000c000454930000001200080001cfccea12d54500060005616c696365000000
        00150010633534646235656231643861623739330014000b6578616d706c652e636f6d0000080014cde1c0e274b3f0138b0f47a8
        28fa302b6c31866d802800045974e611`,
        'pass',
      ),
      datagram(
        `
        549300640000000007070707fa110000000000000707070707070707070707070707070707070707070707070707070707070707
        07070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707`,
        'pass',
      ),
    ],
  },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
