/** Packets that the SYN proxy's kinds are held to. Data only; flags by RFC 9293, 3.1. */
import { type FilterVector, segment, sentBack } from '../filter-vector.ts';

const [finAck, syn, rst, synAck, ack, pushAck] = [0x11, 0x02, 0x04, 0x12, 0x10, 0x18];
const request = '474554202f20485454502f312e310d0a0d0a';

export const tcpSynProtectVectors: readonly FilterVector[] = [
  { says: 'a SYN is answered by the router', steps: [segment(syn, 'challenge')] },
  {
    says: 'a connection that the router completes for the client (RFC 4987, 3.6 and 3.8): its cookie comes back, and data',
    steps: [
      segment(syn, 'challenge'),
      segment(ack, 'challenge'),
      sentBack(synAck),
      segment(pushAck, 'pass', request),
      sentBack(pushAck, request),
      segment(ack, 'pass'),
      segment(finAck, 'pass'),
    ],
  },
  {
    says: 'a SYN with ECE and CWR (RFC 3168, 6.1.1), and one again after it',
    steps: [segment(0xc2, 'challenge'), segment(syn, 'challenge')],
  },
  {
    says: 'a connection that the destination has opened',
    steps: [
      sentBack(syn),
      segment(synAck, 'pass'),
      sentBack(ack),
      segment(pushAck, 'pass', request),
      segment(ack, 'pass'),
      segment(finAck, 'pass'),
    ],
  },
  {
    says: 'a connection that ran before, of which the destination sends first',
    steps: [sentBack(pushAck, request), segment(ack, 'pass'), segment(pushAck, 'pass', request)],
  },
  { says: 'an ACK that brings back no cookie', steps: [segment(ack, 'challenge')] },
  { says: 'data of no known connection, without a cookie', steps: [segment(pushAck, 'challenge', request)] },
  { says: 'a FIN of no known connection', steps: [segment(finAck, 'discard')] },
  { says: 'a reset of no known connection', steps: [segment(rst, 'discard'), segment(0x14, 'discard')] },
  { says: 'a SYN-ACK that answers no SYN', steps: [segment(synAck, 'discard')] },
  { says: 'no flags at all', steps: [segment(0x00, 'discard')] },
  { says: 'SYN with FIN', steps: [segment(0x03, 'discard')] },
  { says: 'SYN with RST', steps: [segment(0x06, 'discard')] },
  { says: 'FIN, PSH and URG without ACK', steps: [segment(0x29, 'discard')] },
  { says: 'all flags', steps: [segment(0x3f, 'discard')] },
  {
    says: 'a combination that no TCP sends, within a known connection',
    steps: [sentBack(syn), segment(synAck, 'pass'), sentBack(ack), segment(0x01, 'discard'), segment(0x19, 'pass')],
  },
  {
    says: 'while it settles, what may be part of a connection that ran before passes, but for what opens one',
    settling: true,
    steps: [
      { ...segment(syn, 'challenge'), client: 2 },
      { ...segment(ack, 'challenge'), client: 3 },
      { ...segment(synAck, 'pass'), client: 4 },
      { ...segment(rst, 'pass'), client: 5 },
      { ...segment(finAck, 'pass'), client: 6 },
      { ...segment(0x29, 'discard'), client: 7 },
      segment(pushAck, 'pass', request),
      sentBack(ack),
      segment(ack, 'pass'),
    ],
  },
];
