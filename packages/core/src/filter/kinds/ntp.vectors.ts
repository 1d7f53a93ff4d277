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
  {
    says: "a server's answer, also to clients that fill half of the time only",
    steps: ['e9f31c0a4b7d2211', '0000000000000001', '0100000000000000'].map((origin) =>
      fromNtp(answer(origin), 'pass'),
    ),
  },
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
  {
    says: 'questions of chrony 4.3: with a key, of version 3, plain, with NTS; and its answer',
    steps: [
      datagram(
        `
        23000620000000000000000000000000000000000000000000000000000000000000000000000000418305ef580e39ad00000007
        2fed6fa13547162e8ed639a60c81fa35ae857696`,
        'pass',
      ),
      datagram(
        `
        1b0006200000000000000000000000000000000000000000000000000000000000000000000000001785218f9f129f9c`,
        'pass',
      ),
      datagram(
        `
        23000620000000000000000000000000000000000000000000000000000000000000000000000000ac7d92f77f950011`,
        'pass',
      ),
      datagram(
        `
        23000620000000000000000000000000000000000000000000000000000000000000000000000000b173e47c3f1c6f3801040024
        ef2b769e222eec0227ea9f0741ca6032490203c67fd0c42dae10e723a324743f02040068ac6656c75692a99b5d54273ee5e05f50
        404b70849077aaacb146380cc74a3772f135b1aad2010ce903e9c9895c3d2e9b74784af97d141627ea10102b90c9c76724c0a075
        15a70aa8b561a8497b66465dec43384b4bb6d2d01c2d4429fe154b0a26a8ed850404002800100010f97aa792be3d2d6cbe0e86e4
        a9d3360a90a2a7a880d789e5fe6f319528e02ca6`,
        'pass',
      ),
      fromNtp(
        `
        240206e600000000000000007f7f0101eeaaf7febb32ce91e8fa46bee7717d56eeaaf8004dfc83b1eeaaf8004e0088f0`,
        'pass',
      ),
    ],
  },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
