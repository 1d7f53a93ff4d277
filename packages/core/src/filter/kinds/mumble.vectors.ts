/** Packets that filter kind 17, Mumble, is held to. Data only. */
import { datagram, type FilterVector, type VectorStep } from '../filter-vector.ts';

const [fin, syn, rst, ack] = [0x01, 0x02, 0x04, 0x10];
const tcp = (flags: number, expect: 'pass' | 'discard'): VectorStep => ({
  from: 'client',
  transport: 'tcp',
  flags,
  expect,
});
const serverTcp = (flags: number): VectorStep => ({ from: 'server', transport: 'tcp', flags });
const session: readonly VectorStep[] = [tcp(syn, 'pass'), serverTcp(syn | ack), tcp(ack, 'pass')];

const oldPing = '00000000 0123456789abcdef';
const newPing = '01 08 d2849cb1aa31 1001';
const voice = `7c a91f03 ${'5e'.repeat(70)}`;

export const mumbleVectors: readonly FilterVector[] = [
  {
    says: 'voice of a source with a TCP session, of any port, unless it is too short',
    steps: [
      ...session,
      datagram(voice, 'pass'),
      { ...datagram(voice, 'pass'), clientPort: 51_000 },
      datagram('7ca91f03 5e', 'pass'),
      datagram('7ca91f03', 'discard'),
      datagram('5e'.repeat(1024), 'pass'),
      datagram(oldPing, 'pass'),
    ],
  },
  { says: 'voice of a source without a TCP session', steps: [datagram(voice, 'discard')] },
  {
    says: 'voice of a source that has only asked for a connection',
    steps: [tcp(syn, 'pass'), datagram(voice, 'discard'), serverTcp(syn | ack), datagram(voice, 'discard')],
  },
  {
    says: "voice of another source than the session's",
    steps: [...session, { ...datagram(voice, 'discard'), client: 2 }],
  },
  { says: "the server list's ping, as long as there has been one", steps: [datagram(oldPing, 'pass')] },
  { says: "the server list's ping of Mumble 1.5", steps: [datagram(newPing, 'pass')] },
  { says: 'the old ping with an octet more', steps: [datagram(`${oldPing}00`, 'discard')] },
  { says: 'the old ping with an octet less', steps: [datagram(oldPing.slice(0, -2), 'discard')] },
  { says: 'the new ping, too long', steps: [datagram(`0108 ${'ff'.repeat(9)}01 100100`, 'discard')] },
  { says: 'the new ping, too short', steps: [datagram('01080010', 'discard')] },
  {
    says: 'TCP that belongs to no session',
    steps: [tcp(ack, 'discard'), tcp(rst, 'discard'), tcp(fin | ack, 'discard')],
  },
  {
    says: 'a SYN with FIN, and one with an acknowledgement',
    steps: [tcp(syn | fin, 'discard'), tcp(syn | ack, 'discard')],
  },
  {
    says: 'sessions older than the filter go on while it settles',
    settling: true,
    steps: [
      tcp(ack, 'pass'),
      datagram(voice, 'pass'),
      datagram(`${oldPing}00`, 'pass'),
      datagram('7ca91f03', 'discard'),
    ],
  },
  {
    says: 'an encrypted ping that mumble-server 1.3.4 answered',
    steps: [...session, datagram('91e9f192c829', 'pass')],
  },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
