/** Packets that filter kind 16 is held to. */
import { datagram, type FilterVector, hexOf } from '../filter-vector.ts';

const to7777 = `${hexOf('SAMP')} {server} 611e`;
const ask = (letter: string, more = '') => `${to7777} ${hexOf(letter)} ${more}`;
/** Number 24 and a cookie of 0 in the form for port 7777, and with the cookie that a server gave. */
const request = '08 1e 77da';
const withCookie = '8a 1e 3fc1';
const game = '88 a4 19c0 5b e3 77 02';

export const sampVectors: readonly FilterVector[] = [
  { says: 'information, as gamedig 5.3.3 asks', steps: [datagram(ask('i'), 'pass')] },
  {
    says: 'rules, players and their details, as gamedig 5.3.3 asks',
    steps: ['r', 'c', 'd'].map((letter) => datagram(ask(letter), 'pass')),
  },
  { says: 'a ping (open.mp, query.cpp)', steps: [datagram(ask('p', '01020304'), 'pass')] },
  {
    says: 'remote control (open.mp, query.cpp)',
    steps: [datagram(ask('x', `0600 ${hexOf('secret')} 0700 ${hexOf('players')}`), 'pass')],
  },
  {
    says: "both requests to connect and the game (open.mp's RakNet)",
    steps: [datagram(request, 'pass'), datagram(withCookie, 'pass'), datagram(game, 'pass')],
  },
  {
    says: 'the game from a known source, but not from another',
    steps: [
      datagram(request, 'pass'),
      { ...datagram(game, 'pass'), clientPort: 40_001 },
      { ...datagram(game, 'discard'), client: 2 },
    ],
  },
  { says: 'a running game while the filter settles', settling: true, steps: [datagram(game, 'pass')] },
  { says: 'the game from a source that opened nothing', steps: [datagram(game, 'discard')] },
  { says: 'the game after a query', steps: [datagram(ask('i'), 'pass'), datagram(game, 'discard')] },
  { says: 'a query that names another address', steps: [datagram(`${hexOf('SAMP')} cb007108 611e 69`, 'discard')] },
  { says: 'a query that names another port', steps: [datagram(`${hexOf('SAMP')} {server} 621e 69`, 'discard')] },
  {
    says: 'a query that names the port in network order',
    steps: [datagram(`${hexOf('SAMP')} {server} 1e61 69`, 'discard')],
  },
  { says: 'a query of another letter', steps: [datagram(ask('z'), 'discard')] },
  { says: 'information with something behind it', steps: [datagram(ask('i', '00'), 'discard')] },
  { says: 'a ping without its number', steps: [datagram(ask('p', '010203'), 'discard')] },
  { says: 'remote control that is cut off', steps: [datagram(ask('x', '06'), 'discard')] },
  {
    says: 'a query that is cut off, from a known source',
    steps: [datagram(request, 'pass'), datagram(to7777, 'discard')],
  },
  {
    says: 'a sum that no packet has, from a known source',
    steps: [datagram(request, 'pass'), datagram(`89${game.slice(2)}`, 'discard')],
  },
  { says: 'a request to connect of five octets', steps: [datagram(`${request} 00`, 'discard')] },
  { says: 'two octets, while the filter settles', settling: true, steps: [datagram('88a4', 'discard')] },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
