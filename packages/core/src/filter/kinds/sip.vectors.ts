/** Packets that filter kind 27, SIP, is held to. Data only. */
import { datagram, type FilterVector, hexOf } from '../filter-vector.ts';

const sent = (text: string, expect: 'pass' | 'discard') => datagram(hexOf(text), expect);
const rest = '\r\nVia: SIP/2.0/UDP 192.0.2.2:5060;branch=z9hG4bK-1\r\nContent-Length: 0\r\n\r\n';
const register = `REGISTER sip:example.com SIP/2.0${rest}`;
const binding = '0001 0000 2112a442 8f3ad1029bb5c07e44d6a921';

const standard = [
  'INVITE sip:alice@example.com',
  'ACK sip:alice@192.0.2.9:5060',
  'BYE sip:alice@192.0.2.9',
  'CANCEL sips:alice@example.com',
  'OPTIONS sip:example.com',
  'REGISTER SIP:example.com',
  'PRACK sip:alice@example.com',
  'SUBSCRIBE pres:alice@example.com',
  'NOTIFY sip:alice@example.com',
  'UPDATE sip:alice@example.com',
  'MESSAGE im:alice@example.com',
  'REFER sip:alice@example.com',
  'PUBLISH sip:alice@example.com',
  'INFO sip:alice@example.com',
  'INVITE tel:+1-201-555-0123',
  'INVITE urn:service:sos',
];

export const sipVectors: readonly FilterVector[] = [
  { says: 'requests of each standard method', steps: standard.map((line) => sent(`${line} SIP/2.0${rest}`, 'pass')) },
  {
    says: 'answers',
    steps: ['100 Trying', '200 OK', '401 Unauthorized', '603 Decline'].map((code) =>
      sent(`SIP/2.0 ${code}${rest}`, 'pass'),
    ),
  },
  {
    says: 'keep-alives of a source whose SIP was heard',
    steps: [
      sent(register, 'pass'),
      sent('\r\n\r\n', 'pass'),
      datagram('00', 'pass'),
      datagram('00000000', 'pass'),
      datagram('', 'pass'),
      sent('jaK\0', 'pass'),
      datagram(binding, 'pass'),
      datagram('0000000000', 'discard'),
      datagram(`0101${binding.slice(4)}`, 'discard'),
      datagram(`${binding} 00`, 'discard'),
    ],
  },
  {
    says: 'keep-alives of a source that has said nothing yet',
    steps: [sent('\r\n\r\n', 'discard'), datagram('', 'discard'), datagram(binding, 'discard')],
  },
  { says: 'a method in small letters', steps: [sent(register.replace('REGISTER', 'register'), 'discard')] },
  {
    says: 'a method that is longer than it should be',
    steps: [sent(register.replace('REGISTER', 'REGISTERS'), 'discard')],
  },
  { says: 'a method without an address', steps: [sent('INVITE ', 'discard'), sent('INVITE 1234', 'discard')] },
  { says: 'HTTP', steps: [sent('GET / HTTP/1.1\r\n\r\n', 'discard'), sent('OPTIONS / HTTP/1.1\r\n\r\n', 'discard')] },
  {
    says: 'an answer of another version, and one without a code',
    steps: [sent('SIP/1.0 200 OK', 'discard'), sent('SIP/2.0 OK', 'discard'), sent('SIP/2.0 800 x', 'discard')],
  },
  { says: 'an answer cut off before its code', steps: [sent('SIP/2.0 ', 'discard')] },
];
