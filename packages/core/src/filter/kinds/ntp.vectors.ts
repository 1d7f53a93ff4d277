/** Packets that filter kind 26, NTP server, is held to. Data only. */
import { datagram, type FilterVector, type VectorStep } from '../filter-vector.ts';

const rest = `00 06 20 ${'00'.repeat(36)} e9f31c0a4b7d2211`;
/** RFC 5905, 7.3: reference, origin, receive and transmit time. */
const answer = (origin: string) =>
  `24 02 06 e9 00000100 00000200 c0000201 e9f31c0000000000 ${origin} e9f31c0a5b7d2211 e9f31c0a5b8d2211`;
const fromNtp = (payload: string, expect: 'pass' | 'discard'): VectorStep => ({
  ...datagram(payload, expect),
  clientPort: 123,
});

export const ntpVectors: readonly FilterVector[] = [
  {
    says: "clients' questions of versions 4 to 1, with an unsynchronised clock too",
    steps: ['23', 'e3', '1b', '13', '0b'].map((first) => datagram(`${first} ${rest}`, 'pass')),
  },
  { says: "an active peer's question", steps: [datagram(`21 ${rest}`, 'pass'), fromNtp(`21 ${rest}`, 'pass')] },
  {
    says: 'a question with a digest (RFC 5905, 7.3)',
    steps: [datagram(`23 ${rest} 0000000a ${'d6'.repeat(20)}`, 'pass')],
  },
  {
    says: 'a question with extension fields (RFC 7822), as NTS has them',
    steps: [datagram(`23 ${rest} 0104 0024 ${'11'.repeat(32)} 0204 0068 ${'22'.repeat(100)}`, 'pass')],
  },
  { says: "a server's answer", steps: [fromNtp(answer('e9f31c0a4b7d2211'), 'pass')] },
  { says: "a server's answer that is not from port 123", steps: [datagram(answer('e9f31c0a4b7d2211'), 'discard')] },
  { says: "a server's answer to no question", steps: [fromNtp(answer('0000000000000000'), 'discard')] },
  { says: 'a control message (mode 6)', steps: [datagram(`16 02 0001 ${'00'.repeat(44)}`, 'discard')] },
  { says: 'monlist (mode 7)', steps: [datagram(`17 00 03 2a ${'00'.repeat(44)}`, 'discard')] },
  {
    says: 'a broadcast and a passive peer',
    steps: [datagram(`25 ${rest}`, 'discard'), datagram(`22 ${rest}`, 'discard')],
  },
  { says: 'versions 0 and 5', steps: [datagram(`03 ${rest}`, 'discard'), datagram(`2b ${rest}`, 'discard')] },
  { says: 'an octet less than a header', steps: [datagram(`23 ${rest.slice(0, -2)}`, 'discard')] },
  { says: 'an octet more than a header', steps: [datagram(`23 ${rest} 00`, 'discard')] },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
