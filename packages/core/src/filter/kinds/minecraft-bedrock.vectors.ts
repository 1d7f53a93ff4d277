/** Packets that filter kind 12 is held to. */
import { datagram, type FilterVector } from '../filter-vector.ts';

const fixed = '00ffff00fefefefefdfdfdfd12345678';
const ping = `01 1122334455667788 ${fixed} 0000000000000000`;
/** RakNet fills it up to the size of packets that it tries. */
const firstRequest = `05 ${fixed} 0b ${'00'.repeat(1446)}`;
const secondRequest = `07 ${fixed} 04 34ff8ef8 4abc 0578 0000000012345678`;
/** ID_CONNECTION_REQUEST, reliable. */
const frame = '84 000000 40 0090 000000 09 0000000012345678 00000000000003e8 00';
const acknowledgement = 'c0 0001 01 000000';
const missing = 'a0 0001 01 000000';

export const minecraftBedrockVectors: readonly FilterVector[] = [
  { says: 'a ping, from gamedig 5.3.3', steps: [datagram(ping, 'pass')] },
  { says: 'a ping for open servers (RakPeer.cpp)', steps: [datagram(`02${ping.slice(2)}`, 'pass')] },
  { says: 'a ping without a client number, as old clients send it', steps: [datagram(ping.slice(0, -17), 'pass')] },
  {
    says: 'both requests, then a session with acknowledgements (RakPeer.cpp, ReliabilityLayer.cpp)',
    steps: [
      datagram(firstRequest, 'pass'),
      datagram(secondRequest, 'pass'),
      datagram(frame, 'pass'),
      datagram(acknowledgement, 'pass'),
      datagram(missing, 'pass'),
      datagram('e0 00000001 0001 01 000000', 'pass'),
      datagram('9c 000001 00 0008 ff', 'pass'),
    ],
  },
  {
    says: 'a second request over IPv6',
    steps: [
      datagram(
        `07 ${fixed} 06 000a 4abc 00000000 20010db8000000000000000000000007 00000000 0578 0000000012345678`,
        'pass',
      ),
    ],
  },
  {
    says: 'a session after a second request alone, but not from another source',
    steps: [
      datagram(secondRequest, 'pass'),
      datagram(frame, 'pass'),
      { ...datagram(frame, 'discard'), client: 2 },
      { ...datagram(frame, 'pass'), clientPort: 40_001 },
    ],
  },
  { says: 'a running session while the filter settles', settling: true, steps: [datagram(frame, 'pass')] },
  {
    says: 'no session after a ping or a first request',
    steps: [datagram(ping, 'pass'), datagram(firstRequest, 'pass'), datagram(frame, 'discard')],
  },
  { says: 'an acknowledgement of no session', steps: [datagram(acknowledgement, 'discard')] },
  { says: 'a ping with another sequence', steps: [datagram(ping.replace('12345678', '12345679'), 'discard')] },
  { says: 'a ping that is cut off', steps: [datagram(ping.slice(0, -19), 'discard')] },
  {
    says: "a server's answer (pong), as a reflection brings it",
    steps: [datagram(`1c 1122334455667788 0000000000000001 ${fixed} 0000`, 'discard')],
  },
  { says: 'a request with the sequence at the wrong place', steps: [datagram(`05 00 ${fixed} 0b`, 'discard')] },
  { says: 'a second request that is too short', steps: [datagram(secondRequest.slice(0, -2), 'discard')] },
  {
    says: 'an acknowledgement with bits that none has, from a known source',
    steps: [datagram(secondRequest, 'pass'), datagram('c4 0001 01 000000', 'discard')],
  },
  {
    says: 'a packet without the valid bit, while the filter settles',
    settling: true,
    steps: [datagram(`04${frame.slice(2)}`, 'discard')],
  },
  {
    says: 'three octets from a known source',
    steps: [datagram(secondRequest, 'pass'), datagram('840000', 'discard')],
  },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
