/** Packets that filter kind 10 is held to. */
import { datagram, type FilterVector, hexOf } from '../filter-vector.ts';

const info = `ffffffff 54 ${hexOf('Source Engine Query\0')}`;
const sockets = `20 1000 0d a1b2c3d4 19 0102030405060708 200a ${'00'.repeat(493)}`;
const game = '2a000000 11000000 00 a3 51 2800 7f';

export const sourceEngineVectors: readonly FilterVector[] = [
  { says: 'A2S_INFO, as gamedig 5.3.3 asks', steps: [datagram(info, 'pass')] },
  { says: 'A2S_INFO with the challenge, as gamedig 5.3.3 asks again', steps: [datagram(`${info} 01020304`, 'pass')] },
  { says: 'A2S_PLAYER with the challenge, from gamedig 5.3.3', steps: [datagram('ffffffff 55 01020304', 'pass')] },
  { says: 'A2S_RULES that asks for a challenge (wiki)', steps: [datagram('ffffffff 56 ffffffff', 'pass')] },
  { says: 'A2S_SERVERQUERY_GETCHALLENGE (wiki)', steps: [datagram('ffffffff 57', 'pass')] },
  {
    says: "a Source client's request (A2S_GETCHALLENGE of the published SDK), its connect, and the game",
    steps: [
      datagram(`ffffffff 71 5b1c0a0b ${hexOf('0000000000\0')}`, 'pass'),
      datagram('ffffffff 6b 18000000 03000000 11223344 5b1c0a0b', 'pass'),
      datagram(game, 'pass'),
      datagram('feffffff 01000000 0201 d004 aabbccdd', 'pass'),
    ],
  },
  {
    says: "a request in the later form with text, then the game from the source's other port",
    steps: [
      datagram(`ffffffff 71 ${hexOf('connect0x00000000\0')}`, 'pass'),
      { ...datagram(game, 'pass'), clientPort: 40_001 },
    ],
  },
  {
    says: "GoldSource's request and the game",
    steps: [datagram(`ffffffff ${hexOf('getchallenge steam\n')}`, 'pass'), datagram(game, 'pass')],
  },
  {
    says: 'the game after a query, but not from another source',
    steps: [datagram(info, 'pass'), datagram(game, 'pass'), { ...datagram(game, 'discard'), client: 2 }],
  },
  {
    says: "GameNetworkingSockets' request for a challenge (its published source), and what follows",
    steps: [datagram(sockets, 'pass'), datagram(`84 ${'5e'.repeat(60)}`, 'pass')],
  },
  {
    says: 'the same without its filling, and with other fields',
    steps: [datagram(sockets.slice(0, 79), 'discard'), datagram(sockets.replace('0d', '0a'), 'discard')],
  },
  { says: 'the game from a source that opened nothing', steps: [datagram(game, 'discard')] },
  { says: 'a running game while the filter settles', settling: true, steps: [datagram(game, 'pass')] },
  {
    says: 'a query that is not well formed, while the filter settles',
    settling: true,
    steps: [datagram(`${info} 01`, 'discard')],
  },
  {
    says: 'connect (k) from a source that asked for no challenge',
    steps: [datagram('ffffffff 6b 18000000 03000000 11223344 5b1c0a0b', 'discard')],
  },
  {
    says: 'GoldSource RCON from a source that opened nothing',
    steps: [datagram(`ffffffff ${hexOf('rcon 1 "secret" status\n')}`, 'discard')],
  },
  {
    says: "a server's answer (S2A_INFO_SRC), as a reflection brings it",
    steps: [datagram(`ffffffff 49 11 ${hexOf('name\0map\0')}`, 'discard')],
  },
  { says: 'A2S_INFO without the text', steps: [datagram('ffffffff 54', 'discard')] },
  { says: 'A2S_INFO with half a challenge', steps: [datagram(`${info} 0102`, 'discard')] },
  { says: 'A2S_INFO with octets behind the challenge', steps: [datagram(`${info} 01020304 00`, 'discard')] },
  {
    says: 'a query that is not well formed, from a known source',
    steps: [datagram(info, 'pass'), datagram('ffffffff 55 0102', 'discard')],
  },
  { says: 'A2S_PLAYER without a challenge', steps: [datagram('ffffffff 55', 'discard')] },
  { says: 'a request for a challenge that is too short', steps: [datagram('ffffffff 71 00', 'discard')] },
  {
    says: 'a request for a challenge of 65 octets',
    steps: [datagram(`ffffffff 71 ${'00'.repeat(60)}`, 'discard')],
  },
  { says: 'three octets', steps: [datagram('ffffff', 'discard')] },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
