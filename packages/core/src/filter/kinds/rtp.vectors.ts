/** Packets that filter kind 28, RTP, is held to. Data only. */
import { datagram, type FilterVector } from '../filter-vector.ts';

/** RFC 3550, 5.1: version, padding, extension, sources; marker and type; number; time; source. */
const rtp = (first: string, second: string) => `${first}${second} 1a2b 00012c00 5eedc0de ${'d5'.repeat(160)}`;
const receiverReport = '80c9 0001 5eedc0de';
const stun = '0001 0000 2112a442 8f3ad1029bb5c07e44d6a921';
const clientHello = `16 fefd 0000 000000000000 0036 01 00002a 0000 000000 00002a fefd ${'5a'.repeat(40)}`;
const zrtpHello = `1000 6c3f 5a525450 5eedc0de 505a 001d ${'48'.repeat(60)}`;

export const rtpVectors: readonly FilterVector[] = [
  {
    says: 'G.711, with the marker, with an extension, and dynamic types',
    steps: [rtp('80', '00'), rtp('80', '80'), rtp('90', '6f'), rtp('90', 'ef'), rtp('b5', '7f')].map((packet) =>
      datagram(packet, 'pass'),
    ),
  },
  {
    says: 'reports of RTCP',
    steps: [datagram(receiverReport, 'pass'), datagram(`81c8 0006 5eedc0de ${'00'.repeat(20)}`, 'pass')],
  },
  {
    says: 'WebRTC: STUN first, then DTLS, then media',
    steps: [
      datagram(stun, 'pass'),
      datagram(clientHello, 'pass'),
      datagram(`2e 41 ${'c7'.repeat(32)}`, 'pass'),
      datagram(rtp('90', '6f'), 'pass'),
      datagram(`0101${stun.slice(4)}`, 'pass'),
    ],
  },
  { says: 'DTLS of a source that has sent nothing else', steps: [datagram(clientHello, 'discard')] },
  { says: 'ZRTP', steps: [datagram(zrtpHello, 'pass')] },
  { says: 'ZRTP without its cookie', steps: [datagram(zrtpHello.replace('5a525450', '00000000'), 'discard')] },
  { says: 'versions 1 and 3', steps: [datagram(rtp('40', '00'), 'discard'), datagram(rtp('c0', '00'), 'discard')] },
  { says: 'a type that RTP leaves to RTCP', steps: [datagram(rtp('80', '48'), 'discard')] },
  {
    says: 'RTP and RTCP with an octet less than their headers',
    steps: [datagram('8000 1a2b 00012c00 5eedc0', 'discard'), datagram('80c9 0001 5eedc0', 'discard')],
  },
  {
    says: 'what else shares a port, of a known source',
    steps: [
      datagram(rtp('80', '00'), 'pass'),
      datagram(`4000 000c ${'80'.repeat(12)}`, 'discard'),
      datagram(`0001 0000 00000000 8f3ad1029bb5c07e44d6a921`, 'discard'),
      datagram(`17 0303 0001 000000000001 0020 ${'c7'.repeat(32)}`, 'discard'),
    ],
  },
  {
    says: 'G.711 as sipp 3.6 plays its recording',
    steps: [
      datagram(
        `
        8088e6fd000000f0dee0ee8fd5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5
        d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5
        d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5
        d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5
        d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5`,
        'pass',
      ),
    ],
  },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
