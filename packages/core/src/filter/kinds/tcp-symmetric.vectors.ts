/** Packets that filter kind 2, TCP only of known connections, is held to. Data only; flags by RFC 9293, 3.1. */
import { type FilterVector, segment, sentBack } from '../filter-vector.ts';

const [finAck, syn, rst, synAck, ack, pushAck] = [0x11, 0x02, 0x04, 0x12, 0x10, 0x18];
const request = '474554202f20485454502f312e310d0a0d0a';

export const tcpSymmetricVectors: readonly FilterVector[] = [
  {
    says: 'a connection from its SYN to its end (RFC 9293, 3.5 and 3.6)',
    steps: [
      segment(syn, 'pass'),
      sentBack(synAck),
      segment(ack, 'pass'),
      segment(pushAck, 'pass', request),
      sentBack(pushAck, request),
      segment(finAck, 'pass'),
    ],
  },
  {
    says: 'a connection that the destination has opened',
    steps: [sentBack(syn), segment(synAck, 'pass'), sentBack(ack), segment(pushAck, 'pass', request)],
  },
  {
    says: 'a connection that ran before, of which the destination sends first',
    steps: [sentBack(pushAck, request), segment(ack, 'pass')],
  },
  { says: 'a SYN with ECE and CWR (RFC 3168, 6.1.1)', steps: [segment(0xc2, 'pass')] },
  { says: 'a SYN that nobody has answered opens nothing', steps: [segment(syn, 'pass'), segment(ack, 'discard')] },
  { says: 'an ACK of no known connection', steps: [segment(ack, 'discard')] },
  { says: 'data of no known connection', steps: [segment(pushAck, 'discard', request)] },
  { says: 'a SYN-ACK that answers no SYN', steps: [segment(synAck, 'discard')] },
  { says: 'a reset of no known connection', steps: [segment(rst, 'discard'), segment(0x14, 'discard')] },
  { says: 'a FIN of no known connection', steps: [segment(finAck, 'discard')] },
  { says: 'no flags at all', steps: [segment(0x00, 'discard')] },
  { says: 'SYN with FIN', steps: [segment(0x03, 'discard')] },
  { says: 'SYN with RST', steps: [segment(0x06, 'discard')] },
  { says: 'FIN, PSH and URG without ACK', steps: [segment(0x29, 'discard')] },
  {
    says: 'while it settles, what may be part of a connection that ran before passes',
    settling: true,
    steps: [
      { ...segment(synAck, 'pass'), client: 4 },
      { ...segment(rst, 'pass'), client: 5 },
      { ...segment(finAck, 'pass'), client: 6 },
      { ...segment(0x29, 'discard'), client: 7 },
      { ...segment(ack, 'pass'), client: 8 },
      segment(pushAck, 'pass', request),
      sentBack(ack),
      segment(ack, 'pass'),
    ],
  },
];
